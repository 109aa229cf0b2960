"""The largest and the least numbers along axes, with gradients that survive being compiled."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _largest(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.max(x, axis=axes, keepdims=keepdims)


@_largest.defjvp
def _largest_jvp(axes: tuple[int, ...], keepdims: bool, primals: Any, tangents: Any) -> Any:
    """All that are largest have the same share, and one of them always has one.

    JAX asks which numbers equal the largest. Compiled, x may be computed twice and differ by a
    rounding: none equals it then, and the gradient is 0 / 0.
    """
    (x,), (dx,) = primals, tangents
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    lead = tuple(x.shape[i] for i in rest)
    rows = jnp.transpose(x, rest + axes).reshape(*lead, -1)
    at = jnp.argmax(rows, axis=-1, keepdims=True)
    tied = rows == jnp.take_along_axis(rows, at, axis=-1)
    tied = tied | (jnp.arange(rows.shape[-1]) == at)
    moved = jnp.transpose(dx, rest + axes).reshape(*lead, -1)
    d = jnp.sum(jnp.where(tied, moved, 0), axis=-1) / jnp.sum(tied, axis=-1).astype(x.dtype)
    y = _largest(x, axes, keepdims)
    return y, d.reshape(y.shape)


def largest(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest over some axes, or all."""
    dims = range(x.ndim) if dim is None or dim == [] else dim if isinstance(dim, list) else [dim]
    axes = tuple(sorted(i % x.ndim for i in dims))
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.max(x, axis=axes, keepdims=keepdim)
    return _largest(x, axes, keepdim)


def least(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The least over some axes, or all."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        axes = tuple(dim) if isinstance(dim, list) and dim else None
        return jnp.min(x, axis=axes, keepdims=keepdim)
    return -largest(-x, dim, keepdim)
