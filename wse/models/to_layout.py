"""The dense and convolution layers of a graph, as `wse.layout` describes them."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from jax.extend import core

from wse.graph.equations import Weight, depends, needs, variables
from wse.graph.flops import RAGGED, flops, inner_programs
from wse.graph.layers import Graph, Layer
from wse.graph.trace import indexed
from wse.layout import Shape, dense

GROUPS = ("feature_group_count", "batch_group_count")


def of_graph(graph: Graph) -> tuple[Shape, ...]:
    """Products and convolutions with weights, in the order of the forward pass.

    A product with a matrix of weights is a dense layer, all other axes its batch: samples, tokens.
    Products of several matrices at once, as of experts, are as many dense layers: each has weights
    of its own. Products of activations alone, as of attention, are not laid out. One-dimensional
    convolutions get a height of 1. Each has the name of its weights, as `called` gives it; the
    second product of the same weights in a visit has its number too.

    Args:
        graph: from `wse.trace`.

    Raises:
        ValueError: a convolution of several groups, whose filters do not see all channels, or
            weights in a loop or a branch, which run more than once or not at all.

    >>> import jax.numpy as jnp
    >>> from wse.graph.trace import trace
    >>> def loss(w, x):
    ...     return jnp.mean(jnp.tanh(x @ w))
    >>> (shape,) = of_graph(trace(loss, jnp.ones((3, 2)), jnp.ones((8, 3))))
    >>> shape.batch, shape.channels, shape.filters
    (8, 3, 2)
    """
    return tuple(shape for layer in graph.layers for shape in of_layer(layer))


def of_layer(layer: Layer) -> tuple[Shape, ...]:
    """Those of one layer.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> [shape.filters for shape in wse.kernels.of_layer(graph.layers[0])]
    [2]
    """
    if why := unlaid(layer):
        raise ValueError(f"{layer.name!r} {why}")
    return tuple(_shapes(layer))


def unlaid(layer: Layer) -> str:
    """Why no layout is known of a layer, and what to do; empty where one is."""
    jaxpr = layer.jaxpr.jaxpr
    weights, reads = jaxpr.invars[: len(layer.weights)], jaxpr.invars[len(layer.weights) :]
    held = depends(jaxpr, weights) - depends(jaxpr, reads)
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == RAGGED:
            return "is a ragged product, whose groups data know: lay out one as a wse.layout.dense"
        groups = max(eqn.params.get(name, 1) for name in GROUPS)
        if groups > 1:
            return (
                f"is a convolution of {groups} groups, and layouts are known of one: leave it out, "
                "or lay out one group as a wse.layout.Shape of its channels and filters"
            )
        matrix = any(x in held and len(_shape(x)) > 1 for x in variables(eqn.invars))
        if matrix and any(map(flops, inner_programs(eqn))):
            return (
                f"multiplies by weights within a {eqn.primitive.name}, of which no layout is "
                "known: leave it out, or lay out its product as a wse.layout.dense"
            )
    return ""


def called(layer: Layer) -> dict[Weight, str]:
    """What the user calls the matrices of a visit: each as its parent, if that holds one.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, x = [{"w": jnp.ones((4, 9))}, {"w": jnp.ones((9, 2))}], jnp.ones((5, 4))
    >>> graph = wse.trace(lambda p, x: jnp.sum(x @ p[0]["w"] @ p[1]["w"]), params, x)
    >>> [[*called(layer).values()] for layer in graph.layers]
    [['0'], ['1']]
    """
    program = zip(layer.jaxpr.jaxpr.invars, layer.weights, layer.parameters, strict=False)
    own = [(weight, path) for var, weight, path in program if len(_shape(var)) > 1]
    plain = [path.removesuffix(indexed("", weight.index)) for weight, path in own]
    parents = [path.rpartition(".")[0] or path for path in plain]
    return {
        weight: path if parents.count(parent) > 1 else indexed(parent, weight.index)
        for (weight, path), parent in zip(own, parents, strict=True)
    }


def _shapes(layer: Layer) -> Iterator[Shape]:
    jaxpr = layer.jaxpr.jaxpr
    moving = depends(jaxpr, jaxpr.invars[len(layer.weights) :])
    weights = dict(zip(jaxpr.invars, layer.weights, strict=False))
    names, (_, mark, number) = called(layer), layer.name.rpartition("#")
    visit = mark + number if mark else ""
    seen = Counter[str]()
    for eqn in jaxpr.eqns:
        fixed = [x not in moving for x in variables(eqn.invars)]
        if eqn.primitive.name not in _READ or sum(fixed) != 1 or len(fixed) != 2:
            continue
        held = needs(jaxpr, [variables(eqn.invars)[fixed.index(True)]])
        found = [names[w] for var, w in weights.items() if var in held and w in names]
        name = found[0] + visit if len(found) == 1 else layer.name
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}/{seen[name]}"
        yield from _READ[eqn.primitive.name](eqn, name, fixed.index(True))


def _product(eqn: core.JaxprEqn, name: str, weight: int) -> Iterator[Shape]:
    contracted, batched = eqn.params["dimension_numbers"]
    shape = _shape(eqn.invars[weight])
    inputs = prod(shape[axis] for axis in contracted[weight])
    groups = prod(shape[axis] for axis in batched[weight])
    outputs = prod(shape) // inputs // groups
    batch = prod(_shape(eqn.outvars[0])) // outputs // groups
    for i in range(groups):
        yield dense(f"{name}[{i}]" if groups > 1 else name, batch, inputs, outputs)


def _convolution(eqn: core.JaxprEqn, name: str, weight: int) -> Iterator[Shape]:
    del weight
    params: Any = eqn.params
    numbers = params["dimension_numbers"]
    image, kernel = _shape(eqn.invars[0]), _shape(eqn.invars[1])
    size = tuple(image[axis] for axis in numbers.lhs_spec[2:])
    taps = tuple(kernel[axis] for axis in numbers.rhs_spec[2:])
    flat = (1,) * max(0, 2 - len(size))
    yield Shape(
        name,
        image[numbers.lhs_spec[0]],
        (*flat, *size),
        kernel[numbers.rhs_spec[1]],
        kernel[numbers.rhs_spec[0]],
        (*flat, *taps),
        stride=max(params["window_strides"]),
        upsample=max(params["lhs_dilation"]),
    )


def _shape(atom: Any) -> tuple[int, ...]:
    return atom.aval.shape


_READ = {"dot_general": _product, "conv_general_dilated": _convolution}
