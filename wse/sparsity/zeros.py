"""Zeros among activations, which a machine that skips products with zero need not compute."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from wse.graph.equations import depends, program, variables
from wse.graph.flops import products
from wse.graph.layers import Graph, Layer
from wse.graph.walk import walk

if TYPE_CHECKING:
    import xarray as xr


def activation_zeros(graph: Graph, params: Any, batch: Any) -> "xr.Dataset":
    """Count exact zeros among what enters each layer's products and convolutions, forward.

    Of each product the operand that depends on the batch is looked at; of two such operands the
    first. With F its FLOPs and ρ its share of zeros, a layer's share is Σ F ρ / Σ F: the part of
    its FLOPs that meet a zero. Rectifiers make exact zeros, swish and tanh make none.

    Args:
        graph: of the training function, from `wse.trace`.
        params: its parameters, the tree that was traced.
        batch: samples, a tree of the shapes that were traced.

    Returns:
        `share`, and `zeros` among `values`, along `layer`; layers without products are left out.

    Raises:
        ValueError: parameters or a batch of other shapes than the graph's.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import wse
    >>> def loss(params, x):
    ...     return jnp.sum(jax.nn.relu(x @ params["a"]["w"]) @ params["b"]["w"])
    >>> params = {"a": {"w": -jnp.ones((4, 4))}, "b": {"w": jnp.ones((4, 1))}}
    >>> graph = wse.trace(loss, params, jnp.ones((2, 4)))
    >>> wse.sparsity.activation_zeros(graph, params, jnp.ones((2, 4))).share.values.tolist()
    [0.0, 1.0]
    """
    import xarray as xr

    leaves, given = jax.tree.leaves(params), jax.tree.leaves(batch)
    _check("params", leaves, graph.shapes)
    _check("batch", given, [graph.values[place] for place in graph.inputs])
    programs: dict[int, Any] = {}
    found: dict[str, tuple[int, int, float]] = {}

    def visit(layer: Layer, args: Sequence[Any]) -> Sequence[Any]:
        if layer.program not in programs:
            programs[layer.program] = _counting(layer)
        run, sizes, flops = programs[layer.program]
        results = run(*args)
        zeros = [int(count) for count in results[len(layer.writes) :]]
        meet = sum(f * z / n for f, z, n in zip(flops, zeros, sizes, strict=True) if n)
        found[layer.name] = (sum(zeros), sum(sizes), meet / max(1, sum(flops)))
        return results[: len(layer.writes)]

    walk(graph, [jnp.asarray(leaf) for leaf in leaves], given, visit)
    rows = [(name, *row) for name, row in found.items() if row[1]]
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.array([])] * 4
    table: Any = {
        "share": ("layer", columns[3].astype(float)),
        "zeros": ("layer", columns[1].astype(int)),
        "values": ("layer", columns[2].astype(int)),
    }
    return xr.Dataset(table, coords={"layer": columns[0].astype(str)})


def _counting(layer: Layer) -> tuple[Any, list[int], list[int]]:
    """A layer's program that also counts zeros, the sizes of what it looks at, and the FLOPs."""
    jaxpr = layer.jaxpr.jaxpr
    moving = depends(jaxpr, jaxpr.invars[len(layer.weights) :])
    pairs = [
        (next((x for x in variables(eqn.invars) if x in moving), None), flops)
        for eqn, flops in products(jaxpr)
    ]
    operands: list[Any] = [(x, flops) for x, flops in pairs if x is not None]
    outputs = [*jaxpr.outvars, *(x for x, _ in operands)]
    whole = core.jaxpr_as_fun(program(jaxpr.invars, outputs, jaxpr.eqns))
    count = len(jaxpr.outvars)

    def run(*args: Any) -> list[Any]:
        results = whole(*args)
        return [*results[:count], *(x.size - jnp.count_nonzero(x) for x in results[count:])]

    return jax.jit(run), [prod(x.aval.shape) for x, _ in operands], [flops for _, flops in operands]


def _check(name: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    shapes = [tuple(np.shape(x)) for x in found], [tuple(x.shape) for x in wanted]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name} has the shapes {shapes[0]}; the graph was traced on {shapes[1]}: "
            "trace it again on these"
        )
