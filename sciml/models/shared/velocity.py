"""A velocity field that depends on time: what the net is told of it, and its paths."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sciml.ode.methods.runge_kutta import classical_step

FREQUENCIES = 8  # assumed: sines and cosines that tell the net the time


def time_features(t: Float[Array, "*batch"]) -> Float[Array, "*batch feature"]:
    """Return t, and sines and cosines of kπt."""
    angles = jnp.pi * t[..., None] * jnp.arange(1, FREQUENCIES + 1)
    return jnp.concatenate([t[..., None], jnp.sin(angles), jnp.cos(angles)], axis=-1)


def integrate(slope, state, start: float, stop: float, steps: int):
    """Return the state at `stop` of d state/dt = slope(t, state), by classical Runge-Kutta."""
    h = (stop - start) / steps
    return jax.lax.fori_loop(
        0, steps, lambda i, state: classical_step(slope, start + i * h, state, h), state
    )


def even_times(key: Key[Array, ""], batch: int) -> Float[Array, " batch"]:
    """Return times in [0, 1), spread evenly over the batch: as if independent, of less variance."""
    return (jax.random.uniform(key) + jnp.arange(batch) / batch) % 1.0
