"""Summaries of observations: what classical estimators work with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._grid import uneven_line
from sciml._labels import Observed, observations_in
from sciml.ode.observe.spikes import spikes

Features = Callable[["xr.Dataset"], Float[np.ndarray, "sample feature"]]


def observed(data: Any) -> xr.DataArray:
    """Return observations, as `observations_in` takes them, samples along the first axis."""
    return observations_in(data).transpose("sample", ...)


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation, quantiles and autocorrelations of each channel of a series.

    A vector of features is taken as it is, and a series of at most `short` values too, behind
    its summary. Missing values (NaN) are left out of every sum; what then has no value is NaN,
    and so is every feature of a sample that failed.

    >>> from sciml.ode import lotka_volterra, simulate
    >>> Summary()(simulate(lotka_volterra(), samples=4)).shape
    (4, 44)
    """

    quantiles: Sequence[float] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    lags: Sequence[int] = (1, 2, 4, 8, 16, 32)
    short: int = 64

    def __call__(self, data: Observed) -> Float[np.ndarray, "sample feature"]:
        """Return the features of each sample."""
        found = observed(data)
        seen = np.asarray(found.values, dtype=np.float64)
        if "time" not in found.dims:
            return seen
        series = seen[..., None] if seen.ndim == 2 else seen
        columns = [statistic for c in np.moveaxis(series, -1, 0) for statistic in self.of(c)]
        if series.shape[1] * series.shape[2] <= self.short:
            columns += [*seen.reshape(len(seen), -1).T]
        return np.stack(columns, axis=1)

    def of(self, series: Float[np.ndarray, "sample time"]) -> list[np.ndarray]:
        """Return the statistics of one channel, NaN where nothing of it was seen."""
        gone = np.asarray(np.isnan(series).all(axis=1))
        series = np.where(gone[:, None], 0, series)
        mean, sd = np.nanmean(series, axis=1), np.nanstd(series, axis=1)
        standard = (series - mean[:, None]) / np.where(sd > 0, sd, 1.0)[:, None]
        lags = [lag for lag in self.lags if lag < series.shape[1] // 2]
        found = [
            mean,
            sd,
            *np.nanquantile(series, self.quantiles, axis=1),
            *(mean_or_nan(standard[:, lag:] * standard[:, :-lag]) for lag in lags),
        ]
        return [np.where(gone, np.nan, statistic) for statistic in found]


def mean_or_nan(values: Float[np.ndarray, "sample time"]) -> Float[np.ndarray, " sample"]:
    """Return the mean of what is there; NaN where nothing is."""
    count = (~np.isnan(values)).sum(axis=1)
    return np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)


def spike_features(data: Observed) -> Float[np.ndarray, "sample 2"]:
    """Return number and mean duration of the spikes of FitzHugh-Nagumo potentials.

    The two features of the published study; see `sciml.ode.spikes`. Missing values count as
    below the threshold.

    Raises:
        ValueError: times are not evenly spaced.

    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.fitzhugh_nagumo(), samples=3)
    >>> sciml.baselines.spike_features(data).shape
    (3, 2)
    """
    seen = observed(data)
    voltage = np.nan_to_num(seen.values, nan=-1.0)
    steps = np.diff(seen["time"].values)
    if found := uneven_line(steps):
        raise ValueError(
            "times are not evenly spaced: {1:g} after index {0}, {2:g} mostly; durations of spikes "
            "are counted in steps: use .interp(time=…)".format(*found)
        )
    interval = float(steps[0])
    found = spikes(voltage, interval)
    return np.stack([found.number, found.duration], axis=1).astype(np.float64)


def together(*features: Features) -> Features:
    """Return all of these features side by side.

    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.lotka_volterra(), samples=20)
    >>> project = sciml.baselines.principal_components(data, count=3)
    >>> sciml.baselines.together(project, project)(data).shape
    (20, 6)
    """
    return lambda data: np.concatenate([f(data) for f in features], axis=1)


def principal_components(train: xr.Dataset, count: int = 16) -> Features:
    """Return the projection onto the leading principal components of the training observations.

    Missing values are replaced by the training mean.

    Raises:
        ValueError: more components than samples or values.

    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.lotka_volterra(), samples=20)
    >>> project = sciml.baselines.principal_components(data, count=3)
    >>> project(data).shape
    (20, 3)
    """
    seen = flat(train)
    centre = np.nan_to_num(np.nanmean(seen, axis=0))
    if not 1 <= count <= min(seen.shape):
        raise ValueError(
            f"count is {count}; it must lie between 1 and {min(seen.shape)}, the smaller of "
            "samples and values"
        )
    _, _, axes = np.linalg.svd(filled(seen, centre) - centre, full_matrices=False)
    return lambda data: (filled(flat(data), centre) - centre) @ axes[:count].T


def flat(data: Observed) -> Float[np.ndarray, "sample value"]:
    """Return observations as rows."""
    seen = np.asarray(observed(data).values, dtype=np.float64)
    return seen.reshape(len(seen), -1)


def filled(rows: Float[np.ndarray, "sample value"], centre: Float[np.ndarray, " value"]):
    """Return rows with missing values replaced."""
    return np.where(np.isnan(rows), centre, rows)
