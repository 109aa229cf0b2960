"""A function of dense weights, computed on packed ones."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import Array

from wse.graph.equations import Flat, alone, fresh
from wse.sparsity.packing import PackedMatrix, is_packed, unpacked


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for packed weights: zeros between blocks are neither read nor multiplied.

    With b the block, x_i the blocks of the inputs and W_ij those of the matrix, a product is
    y_j = Σ_i x_i W_ij over the i that column j keeps: the x_i are gathered, and one batched
    product adds them up. JAX differentiates that; gradients exist for kept blocks alone. What else
    a function does with a packed matrix is done with the dense one: right, but not faster.

    Args:
        function: `function(params, *args)` of arrays, as a loss or a net's forward pass.

    Returns:
        A function of (weights, *args), for weights from `packed`. It can be differentiated and
        compiled; compile it, since every call traces `function` anew.

    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from wse.sparsity import Rule, Static, blockwise, packed
    >>> params = {"w": np.ones((64, 32), "f4")}
    >>> method = Static(0.75, rule=Rule(keep_last=False), block=16)
    >>> product = blockwise(lambda params, x: x @ params["w"])
    >>> float(product(packed(params, method), jnp.ones((1, 64)))[0, 0])  # 16 inputs, rescaled by 2
    32.0
    """

    @wraps(function)
    def run(weights: Any, *args: Any) -> Any:
        leaves, structure = jax.tree.flatten(weights, is_leaf=is_packed)
        dense = jax.tree.unflatten(structure, [_shape(leaf) for leaf in leaves])
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(dense, *args)
        found = _walk(traced, [*leaves, *jax.tree.leaves(args)])
        return jax.tree.unflatten(jax.tree.structure(shapes), found)

    return run


def _shape(leaf: Any) -> Any:
    if is_packed(leaf):
        return jax.ShapeDtypeStruct(leaf.layout.shape, jnp.result_type(leaf.values))
    return leaf


def _walk(traced: core.ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """Evaluate a program on values, some of them packed."""
    flat = Flat({}, ())
    inputs = [fresh(var.aval) for var in traced.jaxpr.invars]
    outputs = flat.inline(traced, inputs)
    env: dict[Any, Any] = {**flat.constants, **dict(zip(inputs, values, strict=True))}
    for eqn in flat.equations:
        given = [x.val if isinstance(x, core.Literal) else env[x] for x in eqn.invars]
        found = _by_blocks(eqn, given)
        if found is None:
            reads, run = alone(eqn)
            results = run(*(unpacked(env[x]) for x in reads))
        else:
            results = [found]
        env.update(zip(eqn.outvars, results, strict=True))
    return [unpacked(x.val if isinstance(x, core.Literal) else env[x]) for x in outputs]


def _by_blocks(eqn: core.JaxprEqn, given: Sequence[Any]) -> Any:
    """What an equation makes of a packed matrix as such; None: it needs the dense one."""
    name, params = eqn.primitive.name, eqn.params
    if name == "convert_element_type" and is_packed(given[0]):
        values = jax.lax.convert_element_type(given[0].values, params["new_dtype"])
        return replace(given[0], values=values)
    if name != "dot_general" or is_packed(given[0]) or not is_packed(given[1]):
        return None
    (of_x, of_matrix), batched = params["dimension_numbers"]
    if of_matrix != (0,) or any(batched):
        return None
    how = {name: params[name] for name in ("precision", "preferred_element_type")}
    return _product(jnp.moveaxis(given[0], of_x[0], -1), given[1], how)


def _product(x: Array, matrix: PackedMatrix, how: dict[str, Any]) -> Array:
    rows = matrix.layout.times(x.reshape(-1, x.shape[-1]), matrix.values, **how)
    return rows.reshape(*x.shape[:-1], rows.shape[-1])
