"""Observations as a few numbers: the principal components of the training observations."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sciml._labels import Labelled, variable

QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
SMALLEST_CHANGE = 1e-9  # of the largest value of a series; keeps logarithms finite
PER_COMPONENT = 5  # assumed: observations that a component needs for its variance to be one


@dataclass(frozen=True)
class Principal:
    """Principal components of standardised observations.

    Attributes:
        mean: of every entry over the training observations; NaN of one that they all lack, which
            is left out.
        sd: its standard deviation; 1 where it does not vary.
        axes: orthonormal directions of largest variance.
        component_sd: of the training observations along each.
    """

    mean: Float[np.ndarray, " entry"]
    sd: Float[np.ndarray, " entry"]
    axes: Float[np.ndarray, "component entry"]
    component_sd: Float[np.ndarray, " component"]

    def standardised(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return z = (x − mean) / sd; a missing value (NaN) counts as the mean, 0."""
        return np.nan_to_num((observation - self.mean) / self.sd, nan=0.0)

    def scores(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return the components, each of variance 1 over the training observations."""
        return self.standardised(observation) @ self.axes.T / self.component_sd

    def residual(self, observation: Float[np.ndarray, "sample entry"]) -> np.ndarray:
        """Return the mean square of what the components leave out, (sample)."""
        z = self.standardised(observation)
        rest = z - (z @ self.axes.T) @ self.axes
        return np.square(rest).mean(axis=1)


def principal(
    observation: Float[np.ndarray, "sample entry"],
    *,
    variance: float = 0.99,
    most: int | None = None,
) -> Principal:
    """Return the principal components that carry a share of the variance, NaN being missing.

    There are `most` of them at most, and never more than a fifth of the samples.
    """
    if not 0 < variance <= 1:
        raise ValueError(f"variance is {variance}; it must lie within (0, 1], such as 0.99")
    if len(observation) < 2 * PER_COMPONENT:
        raise ValueError(
            f"there are {len(observation)} observations; principal components need "
            f"{2 * PER_COMPONENT} or more"
        )
    never = np.isnan(observation).all(axis=0)
    if never.all():
        raise ValueError(f"all {never.size} entries are missing in every observation; leave it out")
    there = np.where(never, 0.0, observation)
    mean, spread = np.nanmean(there, axis=0), np.nanstd(there, axis=0)
    mean = np.where(never, np.nan, mean)  # so that no value there counts
    sd = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
    z = np.nan_to_num((observation - mean) / sd, nan=0.0)
    _, singular, axes = np.linalg.svd(z, full_matrices=False)
    share = np.cumsum(np.square(singular)) / max(float(np.square(singular).sum()), 1e-300)
    kept = int(np.searchsorted(share, variance * (1 - 1e-12))) + 1
    kept = min(kept, most or kept, len(z) // PER_COMPONENT, int((singular > 1e-9).sum()) or 1)
    scale = singular[:kept] / np.sqrt(len(z))
    return Principal(mean, sd, axes[:kept], np.where(scale > 0, scale, 1.0))


def flat(observation: Labelled) -> Float[np.ndarray, "sample entry"]:
    """Return observations as rows of numbers, NaN where missing, whatever their axes."""
    values = np.asarray(variable(observation, "observation", ("sample",)), np.float64)
    if values.ndim < 2:
        raise ValueError(f"observation has shape {values.shape}; it must be (sample, time or …)")
    rows = values.reshape(len(values), -1)
    if np.isinf(rows).any():
        raise ValueError(
            f"observation has infinite values, {np.isinf(rows).sum()} of {rows.size}; they must be "
            "finite, or NaN if missing"
        )
    return rows


def summaries(observation: Float[np.ndarray, "sample time *rest"]) -> np.ndarray:
    """Return what a series looks like whenever its events happen: (sample, feature).

    Quantiles, mean and standard deviation, and of first and second differences the logarithms of
    the mean square and of three quantiles, for each channel. Levels, amplitudes, noise and its
    correlation show in these, times of events do not. Missing values are left out.
    """
    rows = observation.reshape(*observation.shape[:2], -1)
    return np.concatenate([channel_summaries(rows[:, :, i]) for i in range(rows.shape[2])], axis=1)


def channel_summaries(rows: Float[np.ndarray, "sample time"]) -> np.ndarray:
    """Return the summaries of one channel, NaN where it is missing altogether."""
    gone = np.isnan(rows).all(axis=1, keepdims=True)
    rows = np.where(gone, 0.0, rows)
    parts = [np.nanmean(rows, axis=1), np.nanstd(rows, axis=1), *quantiles(rows, QUANTILES)]
    change = rows
    largest = np.fmax.reduce(np.abs(rows), axis=1, initial=0.0)
    least = SMALLEST_CHANGE * np.where(largest > 0, largest, 1.0)
    for _ in range(2):
        change = np.diff(change, axis=1)
        # a series with too many gaps has no differences: it counts as having none at all
        none = np.isnan(change).all(axis=1, keepdims=True)
        size = np.where(none, 0.0, np.abs(change))
        roughness = np.sqrt(np.nanmean(np.square(size), axis=1))
        for measure in (roughness, *quantiles(size, (0.1, 0.5, 0.9))):
            parts.append(np.log(measure + least))
    return np.where(gone, np.nan, np.stack(parts, axis=1))


def quantiles(
    rows: Float[np.ndarray, "sample time"], shares: tuple[float, ...]
) -> Float[np.ndarray, "share sample"]:
    """Return quantiles of each row without its gaps, over which NumPy's own take long."""
    ordered = np.sort(rows, axis=1)  # missing values come last
    last = (~np.isnan(rows)).sum(axis=1, keepdims=True) - 1
    place = last * np.array(shares)
    low = np.floor(place).astype(int)
    left = np.take_along_axis(ordered, low, axis=1)
    right = np.take_along_axis(ordered, np.minimum(low + 1, last), axis=1)
    return (left + (place - low) * (right - left)).T
