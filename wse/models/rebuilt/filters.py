"""Convolutions as functions of their parameters, in any number of axes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.rebuilt.blocks import Tree, leaf


def filter_shapes(
    taps: int, c: int, k: int, *, axes: int = 2, bias: bool = False, normed: bool = False
) -> Tree:
    """Shapes of k filters of so many taps to a side of an image, with a norm or without."""
    return {
        "kernel": leaf(*(taps,) * axes, c, k),
        **({"bias": leaf(k)} if bias else {}),
        **({"scale": leaf(k), "shift": leaf(k)} if normed else {}),
    }


def convolved(p: Tree, x: Float[Array, "b *sides c"], stride: int = 1) -> Array:
    """Kernel and bias; each filter reads as many channels as the kernel says."""
    sides = "DHW"[-(x.ndim - 2) :]
    groups = x.shape[-1] // p["kernel"].shape[-2]
    y = jax.lax.conv_general_dilated(
        x,
        p["kernel"],
        (stride,) * len(sides),
        "SAME",
        dimension_numbers=(f"N{sides}C", f"{sides}IO", f"N{sides}C"),
        feature_group_count=groups,
    )
    return y + p["bias"] if "bias" in p else y


def normed(p: Tree, x: Float[Array, "b *sides c"]) -> Array:
    """A norm over the batch, as in training; where there is none, x."""
    if "scale" not in p:
        return x
    axes = (*range(x.ndim - 1),)
    x = x - jnp.mean(x, axis=axes)
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=axes) + 1e-5) * p["scale"] + p["shift"]


def through(block: list[Tree], x: Float[Array, "b *sides c"]) -> Array:
    """Convolutions with their norms, one after another."""
    for p in block:
        x = jax.nn.relu(normed(p, convolved(p, x)))
    return x


def pooled(x: Float[Array, "b *sides c"], taps: int = 2) -> Array:
    """The largest of each window; sides are halved."""
    window, half = ((1, *(n,) * (x.ndim - 2), 1) for n in (taps, 2))
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, half, "SAME")
