"""Simulations of several rounds as a training takes them: filled up, and drawn by weight."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.inverse.loss import PreparedLoss


def padded(arrays: tuple[np.ndarray, ...], size: int) -> tuple[Any, ...]:
    """Return arrays filled up with their last rows, so that one program serves all rounds."""
    return tuple(
        jnp.asarray(np.pad(a, [(0, size - len(a))] + [(0, 0)] * (a.ndim - 1), "edge"))
        for a in arrays
    )


def filled(weight: np.ndarray, size: int) -> Any:
    """Return shares of weights, filled up with zeros."""
    return jnp.asarray(np.pad(weight / weight.sum(), (0, size - len(weight))), jnp.float32)


def cumulative(weight: np.ndarray, size: int) -> Any:
    """Return the cumulative shares of weights, filled up with ones."""
    shares = np.cumsum(weight) / weight.sum()
    return jnp.asarray(np.pad(shares, (0, size - len(shares)), constant_values=1.0), jnp.float32)


@dataclass(frozen=True)
class Resampled:
    """`draw(key, x, y, cumulative)` → rows by weight, evenly spaced through the shares."""

    samples: int

    def __call__(self, key, x, y, shares):
        """Return so many rows."""
        at = (jnp.arange(self.samples) + jax.random.uniform(key)) / self.samples
        rows = jnp.clip(jnp.searchsorted(shares, at), 0, len(y) - 1)
        return x[rows], y[rows]


@partial(jax.jit, static_argnums=0)
def weighted_loss(loss: PreparedLoss, params, held):
    """Return the loss of (x, y, share), weighed."""
    x, y, share = held
    each = nnx.merge(loss.graph, params).loss(y, x, jax.random.key(0))
    return (each * share).sum()
