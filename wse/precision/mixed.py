"""A training function whose weights, activations and gradients are held in half precision.

The graph of `wse.trace` says what is held: weights that are brought in, values that go from one
layer to another, samples that enter a product, and the gradients of all of these. Inside a layer,
products are summed, and what follows is computed, in the type of the arrays.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import Array, Inexact

from wse.graph.derivatives import is_float
from wse.graph.equations import needs, structs, variables
from wse.graph.flops import products
from wse.graph.layers import Graph, Layer
from wse.graph.trace import trace
from wse.graph.walk import walk
from wse.precision.format import Format


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def halved(value: Inexact[Array, "..."], half: Format) -> Inexact[Array, "..."]:
    """Round a value on its way forward, and its gradient on its way back."""
    return half.round(value)


def _forward(value: Any, half: Format) -> tuple[Any, None]:
    return half.round(value), None


def _backward(half: Format, _: None, cotangent: Any) -> tuple[Any]:
    return (half.round(cotangent),)


halved.defvjp(_forward, _backward)


def rounded(graph: Graph, half: Format, weights: bool = True) -> Graph:
    """The graph with half precision at the borders of its layers.

    Args:
        graph: from `wse.trace`.
        half: the format.
        weights: whether the layers round weights, and their gradients at each visit, too; without,
            whoever runs them does.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> len(wse.precision.rounded(graph, wse.precision.BFLOAT16).layers)
    1
    """
    read = {value for layer in graph.layers for value in layer.reads}
    numbers: dict[Any, int] = {}
    made: dict[int, core.ClosedJaxpr] = {}
    layers: list[Layer] = []
    for layer in graph.layers:
        flags = tuple(value in read for value in layer.writes)
        number = numbers.setdefault((layer.program, flags), len(numbers))
        if number not in made:
            made[number] = _program(layer, flags, half, weights)
        layers.append(replace(layer, jaxpr=made[number], program=number))
    return replace(graph, layers=tuple(layers))


def mixed(
    loss: Callable[..., Any], params: Any, batch: Any, half: Format, *, has_aux: bool = False
) -> Callable[[Any, Any], Any]:
    """The training function in plain JAX, with half precision where the machine has it.

    Args:
        loss: `loss(params, batch)`, as for `wse.trace`.
        params: a tree of floating-point arrays, or of their shapes.
        batch: a tree of arrays, or of their shapes; the result takes batches of these.
        half: the format.
        has_aux: whether `loss` returns (scalar, auxiliary outputs).

    Returns:
        A function of (params, batch) with the same results but for rounding, which can be
        differentiated, compiled and scanned.

    Raises:
        ValueError: what `wse.trace` refuses.

    >>> import jax.numpy as jnp
    >>> from wse.precision import BFLOAT16, mixed
    >>> def loss(params, x):
    ...     return jnp.sum(x * params["w"])
    >>> params = {"w": jnp.float32(1.001)}
    >>> float(mixed(loss, params, jnp.ones(2), BFLOAT16)(params, jnp.ones(2)))
    2.0
    """
    graph = rounded(trace(loss, params, batch, has_aux=has_aux), half)

    def run(params: Any, batch: Any) -> Any:
        leaves = [halved(jnp.asarray(leaf), half) for leaf in jax.tree.leaves(params)]
        found = walk(graph, leaves, jax.tree.leaves(batch))
        if not has_aux:
            return found[0]
        return found[0], jax.tree.unflatten(graph.auxiliary, found[1:])

    return run


def _program(
    layer: Layer, flags: tuple[bool, ...], half: Format, weights: bool
) -> core.ClosedJaxpr:
    jaxpr, count = layer.jaxpr.jaxpr, len(layer.weights)
    entering = needs(jaxpr, [x for eqn, _ in products(jaxpr) for x in variables(eqn.invars)])
    held = [weights if i < count else x in entering for i, x in enumerate(jaxpr.invars)]

    def within(values: Sequence[Any], flags: Sequence[bool], atoms: Sequence[Any]) -> list[Any]:
        wide = [is_float(x) and x.aval.dtype.itemsize > 2 for x in atoms]
        each = zip(values, flags, wide, strict=True)
        return [halved(x, half) if flag and carried else x for x, flag, carried in each]

    def run(*args: Any) -> list[Any]:
        writes = core.jaxpr_as_fun(layer.jaxpr)(*within(args, held, jaxpr.invars))
        return within(writes, flags, jaxpr.outvars)

    return jax.make_jaxpr(run)(*structs(jaxpr.invars))
