"""Weighted draws: how many they are worth, how to even them out, how to draw from them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

HALVINGS = 50


def effective(share: Float[Array, " draw"]) -> Float[Array, ""]:
    """Return how many equal draws are worth shares that sum to one: 1 / Σ share²."""
    return 1 / jnp.square(share).sum()


def largest_power(
    log_weight: Float[Array, " draw"],
    least: Float[Array, ""] | float,
    most: Float[Array, ""] | float = 1.0,
) -> Float[Array, ""]:
    """Return the largest b ≤ most at which more than `least` draws are effective under wᵇ.

    Found by bisection of ln b; if there is none, 10⁻¹² most.
    """

    def enough(power):
        return effective(jax.nn.softmax(power * log_weight)) > least

    def halve(bounds, _):
        low, high = bounds
        middle = jnp.sqrt(low * high)
        kept = enough(middle)
        return (jnp.where(kept, middle, low), jnp.where(kept, high, middle)), None

    most = jnp.asarray(most, log_weight.dtype)
    (low, _), _ = jax.lax.scan(halve, (most * 1e-12, most), length=HALVINGS)
    return jnp.where(enough(most), most, low)


def systematic(
    share: Float[Array, " draw"], key: Key[Array, ""], count: int
) -> Int[Array, " count"]:
    """Return `count` indices drawn by share, evenly spaced through the cumulative shares.

    Source: Kitagawa, J. Comput. Graph. Stat. 5:1-25, 1996.
    """
    at = (jnp.arange(count) + jax.random.uniform(key)) / count
    return jnp.clip(jnp.searchsorted(jnp.cumsum(share), at), 0, len(share) - 1)
