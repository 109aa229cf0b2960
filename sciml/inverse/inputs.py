"""Observations as the nets take them."""

import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

WIDE = 20.0  # assumed: ratio of the 95 to the 5 % quantile from which a positive input is wide
ANSCOMBE = 3 / 8  # sourced: see `Standard`
ALL_WHOLE = 2.0**23  # from where float32 has whole numbers alone
FLOOR = 1e-3  # assumed: least spread of one input, as part of the spread of its channel
ROUNDING = 1e-6  # assumed: spread that is none, as part of the largest value, in float32


@dataclass(frozen=True)
class AsTheyAre:
    """Observations unchanged, as the published nets take them."""

    def forward(self, observed: Float[Any, "*batch"]) -> Float[Array, "*batch"]:
        """Return the observations."""
        return jnp.asarray(observed, jnp.float32)

    @property
    def standard(self) -> "Standard":
        """The same as a `Standard` of one channel."""
        return Standard(*(np.array([x], np.float32) for x in (0.0, 1.0, 1.0, 0.0)))


@dataclass(frozen=True)
class Standard:
    """x ↦ (f(x) − mean) / sd for every time and channel, by the training set.

    f is chosen for each channel, so that noise is about as large everywhere: √(x + ⅜) for counts
    (whole numbers, never negative: the variance of a count grows as its mean), log(x + offset) for
    other channels that are never negative and spread over more than a factor of 20 (populations,
    concentrations), else the identity. `power` holds ½, 0 or 1 for the three, `offset` what is
    added. Missing values stay NaN. Inputs that hardly vary (an initial value) are divided by a
    thousandth of the spread of their channel, not by nothing. No channel knows of another's unit.

    Source of the root: F. J. Anscombe, Biometrika 35 (1948) 246.
    """

    mean: Float[np.ndarray, "*input"]
    sd: Float[np.ndarray, "*input"]
    power: Float[np.ndarray, " channel"]
    offset: Float[np.ndarray, " channel"]

    @classmethod
    def of(cls, observed: Float[np.ndarray, "sample ..."], *, features: bool = False) -> "Standard":
        """Return the scaling of a training set; each feature is a channel of its own."""
        alone = observed[:, None] if features else observed[..., None]
        columns = observed if observed.ndim == 3 else alone
        chosen = [power_and_offset(columns[..., i]) for i in range(columns.shape[2])]
        power, offset = np.array(chosen, np.float32).T
        free = cls(np.zeros(1, np.float32), np.ones(1, np.float32), power, offset)
        values = np.asarray(free.forward(observed), np.float64)
        with warnings.catch_warnings():  # what all samples lack has no mean
            warnings.simplefilter("ignore", RuntimeWarning)
            mean = np.nan_to_num(np.nanmean(values, axis=0))
            sd = np.nan_to_num(np.nanstd(values, axis=0))
            whole = values.reshape(columns.shape)
            spread = FLOOR * np.nanstd(whole, axis=(0, 1))
            spread = np.fmax(spread, ROUNDING * np.nanmax(np.abs(whole), axis=(0, 1)))
        sd = np.maximum(sd, np.where(spread > 0, spread, 1.0))
        return cls(mean.astype(np.float32), sd.astype(np.float32), power, offset)

    @property
    def standard(self) -> "Standard":
        """Itself."""
        return self

    def beside(self, shape: tuple[int, ...], given: Float[np.ndarray, "sample ..."]) -> "Standard":
        """Return the scaling of observations of a shape, with channels or features beside them.

        Each of these is scaled by itself, since its unit is its own.
        """
        own = [Standard.of(given[..., [i]]) for i in range(given.shape[-1])]
        whole = shape if given.ndim == len(shape) + 1 else (*shape, 1)
        rows = (*given.shape[1:-1], 1)

        def joined(mine: np.ndarray, name: str, shapes: tuple[Any, Any]) -> np.ndarray:
            first, other = shapes
            first = np.reshape(np.broadcast_to(mine, shape if first == whole else first), first)
            others = [np.reshape(getattr(one, name), other) for one in own]
            return np.concatenate([first, *others], axis=-1)

        return Standard(
            joined(self.mean, "mean", (whole, rows)),
            joined(self.sd, "sd", (whole, rows)),
            joined(self.power, "power", (whole[-1:], (1,))),
            joined(self.offset, "offset", (whole[-1:], (1,))),
        )

    def forward(self, observed: Float[Any, "*batch"]) -> Float[Array, "*batch"]:
        """Return standardised observations."""
        bent = (self.power, self.offset) if (self.power < 1).any() else None
        return standardised(jnp.asarray(observed, jnp.float32), self.mean, self.sd, bent)


@jax.jit
def standardised(values: Any, mean: Any, sd: Any, bent: Any) -> Any:
    """Return (x − mean) / sd, of roots or logarithms where powers and offsets say so."""
    if bent is not None:
        # One number per channel: alone on the last axis where there is one channel.
        power, offset = bent
        above = jnp.maximum(values, 0) + jnp.where(power < 1, offset, 1.0)
        curved = jnp.where(power == 0, jnp.log(above), jnp.sqrt(above))
        values = jnp.where(power < 1, curved, values)
    return (values - mean) / sd


def power_and_offset(values: np.ndarray) -> tuple[float, float]:
    """Return (½, ⅜) for counts, (0, what to add) where a logarithm is taken, else (1, 0)."""
    seen = values[np.isfinite(values)]
    if not seen.size or seen.min() < 0 or seen.max() == 0:
        return 1.0, 0.0
    if seen.max() < ALL_WHOLE and (seen == np.round(seen)).all():
        return 0.5, ANSCOMBE
    positive = seen[seen > 0]
    low, high = np.quantile(positive, [0.05, 0.95])
    if high < WIDE * low:
        return 1.0, 0.0
    return 0.0, float(1e-3 * low) if seen.min() > 0 else float(low)
