"""What blocks are made of: products, norms, and features that are turned by their position."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Tree = dict[str, Any]


def leaf(*shape: int) -> jax.ShapeDtypeStruct:
    """The shape of a parameter; no number is made."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def linear_shapes(n: int, m: int, bias: bool = True) -> Tree:
    """Shapes of a dense layer."""
    return {"kernel": leaf(n, m), **({"bias": leaf(m)} if bias else {})}


def linear(p: Tree, x: Float[Array, "*batch n"]) -> Array:
    """Kernel and bias."""
    y = x @ p["kernel"]
    return y + p["bias"] if "bias" in p else y


def scale_and_shift(d: int) -> Tree:
    """Shapes of a norm over d features with scale and shift."""
    return {"scale": leaf(d), "shift": leaf(d)}


def norm(p: Tree, x: Float[Array, "*batch n"], epsilon: float = 1e-5) -> Array:
    """Mean out, unless there is a scale alone; spread to one; scale, which is a gain without it."""
    if "shift" in p or "scale" not in p:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
    y = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon)
    for name in p.keys() & {"scale", "gain"}:
        y = y * p[name]
    return y + p["shift"] if "shift" in p else y


def rotated(x: Float[Array, "b s heads width"], base: float = 1e4, turned: int = 0) -> Array:
    """Pairs of features turned by an angle that grows with the position; those behind stay."""
    half = (turned or x.shape[-1]) // 2
    turns = base ** (-jnp.arange(half) / half)
    angles = (jnp.arange(x.shape[1])[:, None] * turns)[:, None, :]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    pair = [first * cos - second * sin, second * cos + first * sin, rest]
    return jnp.concatenate(pair, axis=-1)
