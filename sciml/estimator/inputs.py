"""Observations as the nets take them."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

WIDE = 20.0  # assumed: ratio of the 95 to the 5 % quantile from which a positive input is wide
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

    f is log(x + offset) for a channel that is never negative and spreads over more than a
    factor of 20 (populations, counts), else the identity; `offset` holds one number per channel,
    NaN for the identity. Missing values stay NaN. Inputs that hardly vary (an initial value)
    are divided by a thousandth of the whole spread, not by nothing.
    """

    mean: Float[np.ndarray, "*input"]
    sd: Float[np.ndarray, "*input"]
    offset: Float[np.ndarray, " channel"]

    @classmethod
    def of(cls, observed: Float[np.ndarray, "sample ..."]) -> "Standard":
        """Return the scaling of a training set; a vector of features has one channel each."""
        columns = observed if observed.ndim == 3 else observed[:, :, None]
        offset = np.array(
            [log_offset(columns[..., i]) for i in range(columns.shape[2])], np.float32
        )
        free = cls(np.zeros(1, np.float32), np.ones(1, np.float32), offset)
        values = np.asarray(free.forward(observed), np.float64)
        mean = np.nan_to_num(np.nanmean(values, axis=0))
        sd = np.nan_to_num(np.nanstd(values, axis=0), nan=1.0)
        sd = np.maximum(sd, FLOOR * (np.nanstd(values) or 1.0))
        return cls(mean.astype(np.float32), sd.astype(np.float32), offset)

    def forward(self, observed: Float[Any, "*batch"]) -> Float[Array, "*batch"]:
        """Return standardised observations."""
        values = jnp.asarray(observed, jnp.float32)
        wide = np.isfinite(self.offset)
        if wide.any():
            # One number per channel: alone on the last axis where there is one channel.
            offset = np.nan_to_num(self.offset, nan=1.0)
            logs = jnp.log(jnp.maximum(values, 0) + offset)
            values = jnp.where(wide, logs, values)
        return (values - self.mean) / self.sd


def log_offset(values: np.ndarray) -> float:
    """Return what to add before the logarithm, or NaN where none is taken."""
    seen = values[np.isfinite(values)]
    if not seen.size or seen.min() < 0 or seen.max() == 0:
        return float("nan")
    positive = seen[seen > 0]
    low, high = np.quantile(positive, [0.05, 0.95])
    if high < WIDE * low:
        return float("nan")
    return float(1e-3 * low) if seen.min() > 0 else float(low)
