"""Noise of tables of measurements: each has its own standard deviation, scale and distribution."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from sciml._random import flat

LOGS = {"lin": 0.0, "log": 1.0, "log10": math.log(10.0)}  # ln x / what is measured


@dataclass(frozen=True)
class RowNoise:
    """h(x) = h(y) + σ ε of each measurement x, with h = x, ln x or log₁₀ x.

    The noise-free observation holds the predictions y of all rows, then their scales σ, which may
    depend on parameters. ε is standard normal, or Laplace of scale 1.

    Args:
        scales: "lin", "log" or "log10" of each row.
        laplace: whether ε of each row is Laplace.
    """

    scales: tuple[str, ...]
    laplace: tuple[bool, ...]
    estimate: ClassVar[bool] = False
    prior: ClassVar[dict[str, Any]] = {}

    def apply(self, key: Key[Array, ""], clean: Any, levels: Any) -> Any:
        """Return measurements (sample, row) of predictions and scales (sample, 2 row)."""
        del levels
        y, sd = jnp.split(clean, 2, axis=-1)
        one, other = jax.random.split(key)
        error = jnp.where(
            np.array(self.laplace),
            flat(jax.random.laplace, one, y.shape, y.dtype),
            flat(jax.random.normal, other, y.shape, y.dtype),
        )
        logs = np.array([LOGS[scale] for scale in self.scales])
        return jnp.where(logs > 0, y * jnp.exp(logs * sd * error), y + sd * error)

    def log_density(self, observed: Float[Array, " row"], clean: Any) -> Array:
        """Return Σ ln p(x | y, σ) over the rows that are there, as densities of x itself."""
        y, sd = jnp.split(clean, 2, axis=-1)
        logs = np.array([LOGS[scale] for scale in self.scales])
        is_log, there = logs > 0, ~jnp.isnan(observed)
        x = jnp.where(there, observed, jnp.where(is_log, 1.0, 0.0))
        positive = jnp.where(is_log, jnp.stack([x, y]), 1.0)
        ln = jnp.log(positive) / np.where(is_log, logs, 1.0)
        error = jnp.where(is_log, ln[0] - ln[1], x - y) / sd
        normal = -0.5 * error**2 - 0.5 * math.log(2 * math.pi)
        shape = jnp.where(np.array(self.laplace), -jnp.abs(error) - math.log(2.0), normal)
        volume = jnp.where(is_log, jnp.log(positive[0] * np.where(is_log, logs, 1.0)), 0.0)
        return jnp.where(there, shape - jnp.log(sd) - volume, 0.0).sum()

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this noise."""
        return {"name": "RowNoise", "scales": [*self.scales], "laplace": [*self.laplace]}
