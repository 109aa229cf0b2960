"""Observations as the nets take them."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

WIDE = 20.0  # assumed: ratio of the 95 to the 5 % quantile from which a positive input is wide
ANSCOMBE = 3 / 8  # sourced: see `Standard`
FLOOR = 1e-3  # assumed: least spread of one input, as part of the spread of all


@dataclass(frozen=True)
class AsTheyAre:
    """Observations unchanged, as the published nets take them."""

    def forward(self, observed: Float[Any, "*batch"]) -> Float[Array, "*batch"]:
        """Return the observations."""
        return jnp.asarray(observed, jnp.float32)


@dataclass(frozen=True)
class Standard:
    """x ↦ (f(x) − mean) / sd for every time and channel, by the training set.

    f is chosen for each channel, so that noise is about as large everywhere: √(x + ⅜) for counts
    (whole numbers, never negative: the variance of a count grows as its mean), log(x + offset) for
    other channels that are never negative and spread over more than a factor of 20 (populations,
    concentrations), else the identity. `power` holds ½, 0 or 1 for the three, `offset` what is
    added. Missing values stay NaN. Inputs that hardly vary (an initial value) are divided by a
    thousandth of the whole spread, not by nothing.

    Source of the root: F. J. Anscombe, Biometrika 35 (1948) 246.
    """

    mean: Float[np.ndarray, "*input"]
    sd: Float[np.ndarray, "*input"]
    power: Float[np.ndarray, " channel"]
    offset: Float[np.ndarray, " channel"]

    @classmethod
    def of(cls, observed: Float[np.ndarray, "sample ..."]) -> "Standard":
        """Return the scaling of a training set; a vector of features has one channel each."""
        columns = observed if observed.ndim == 3 else observed[:, :, None]
        chosen = [power_and_offset(columns[..., i]) for i in range(columns.shape[2])]
        power, offset = np.array(chosen, np.float32).T
        free = cls(np.zeros(1, np.float32), np.ones(1, np.float32), power, offset)
        values = np.asarray(free.forward(observed), np.float64)
        mean = np.nan_to_num(np.nanmean(values, axis=0))
        sd = np.nan_to_num(np.nanstd(values, axis=0), nan=1.0)
        sd = np.maximum(sd, FLOOR * (np.nanstd(values) or 1.0))
        return cls(mean.astype(np.float32), sd.astype(np.float32), power, offset)

    def forward(self, observed: Float[Any, "*batch"]) -> Float[Array, "*batch"]:
        """Return standardised observations."""
        values = jnp.asarray(observed, jnp.float32)
        if (self.power < 1).any():
            # One number per channel: alone on the last axis where there is one channel.
            above = jnp.maximum(values, 0) + np.where(self.power < 1, self.offset, 1.0)
            curved = jnp.where(self.power == 0, jnp.log(above), jnp.sqrt(above))
            values = jnp.where(self.power < 1, curved, values)
        return (values - self.mean) / self.sd


def power_and_offset(values: np.ndarray) -> tuple[float, float]:
    """Return (½, ⅜) for counts, (0, what to add) where a logarithm is taken, else (1, 0)."""
    seen = values[np.isfinite(values)]
    if not seen.size or seen.min() < 0 or seen.max() == 0:
        return 1.0, 0.0
    if (seen == np.round(seen)).all():
        return 0.5, ANSCOMBE
    positive = seen[seen > 0]
    low, high = np.quantile(positive, [0.05, 0.95])
    if high < WIDE * low:
        return 1.0, 0.0
    return 0.0, float(1e-3 * low) if seen.min() > 0 else float(low)
