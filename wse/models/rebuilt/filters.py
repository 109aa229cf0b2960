"""Convolutions as functions of their parameters, in any number of axes."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.rebuilt.parts import Tree, leaf


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


class Norms:
    """Means and variances of the norms over a batch, in the order in which these stand.

    Args:
        given: those of a trained model, with which an answer does not depend on the batch; None:
            each norm takes its batch's own, as in training.
    """

    def __init__(self, given: Sequence[tuple[Any, Any]] | None = None) -> None:
        self.given = given
        self.found: list[tuple[Any, Any]] = []

    def evened(self, x: Float[Array, "b *sides c"]) -> Array:
        """Mean out, spread to one."""
        axes = (*range(x.ndim - 1),)
        mean = jnp.mean(x, axis=axes) if self.given is None else self.given[len(self.found)][0]
        x = x - mean
        held = None if self.given is None else self.given[len(self.found)][1]
        variance = jnp.mean(x * x, axis=axes) if held is None else held
        self.found.append((mean, variance))
        return x * jax.lax.rsqrt(variance + 1e-5)


def normed(p: Tree, x: Float[Array, "b *sides c"], norms: Norms) -> Array:
    """A norm over the batch; where there is none, x."""
    return norms.evened(x) * p["scale"] + p["shift"] if "scale" in p else x


def through(block: list[Tree], x: Float[Array, "b *sides c"], norms: Norms) -> Array:
    """Convolutions with their norms, one after another."""
    for p in block:
        x = jax.nn.relu(normed(p, convolved(p, x), norms))
    return x


def pooled(x: Float[Array, "b *sides c"], taps: int = 2) -> Array:
    """The largest of each window; sides are halved."""
    window, half = ((1, *(n,) * (x.ndim - 2), 1) for n in (taps, 2))
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, half, "SAME")
