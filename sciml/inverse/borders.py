"""Data sets come in here: checked, then bare arrays."""

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from sciml.inverse.axes import Grid, labels_of

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)

Targets = tuple[Float[np.ndarray, "sample target"], tuple[str, ...]]


SHAPES = (("sample", "time"), ("sample", "time", "channel"), ("sample", "feature"))


def observations_of(data: Any, missing: bool = False) -> "xr.DataArray":
    """Return the observations of a Dataset or DataArray: series, several of them, or features.

    Args:
        data: dimensions (sample, time), (sample, time, channel) or (sample, feature).
        missing: whether NaN stands for a value that was not observed.

    Raises:
        TypeError: it is neither.
        ValueError: the variable or a dimension is missing, a value is not finite, or a sample
            has no value at all.
    """
    import xarray as xr

    if isinstance(data, xr.Dataset):
        data = variable(data, "observation")
    if not isinstance(data, xr.DataArray):
        raise TypeError(
            f"the data are a {type(data).__name__}; pass an xarray Dataset as simulate() makes it"
        )
    if data.dims not in SHAPES:
        raise ValueError(
            f"{data.name or 'the array'} has the dimensions {data.dims}; they must be "
            f"{' or '.join(map(str, SHAPES))}: use .rename or .transpose"
        )
    if missing:
        check_seen(data)
    else:
        check_finite(data, MISSING_REMEDY)
    return data


MISSING_REMEDY = ", or give the net missing=True, so that NaN stands for a missing value"


def check_seen(data: "xr.DataArray") -> None:
    """Refuse infinity, and samples of which nothing was observed."""
    values = data.values.reshape(len(data), -1)
    if np.isinf(values).any():
        raise ValueError(
            f"{data.name or 'the array'} of sample {int(np.isinf(values).any(axis=1).argmax())} "
            "is infinite; values must be finite, or NaN where they are missing"
        )
    unseen = np.isnan(values).all(axis=1)
    if unseen.any():
        raise ValueError(
            f"{data.name or 'the array'} of sample {int(unseen.argmax())} is missing altogether "
            f"({int(unseen.sum())} of {unseen.size} samples); at least one value must be observed: "
            "drop such samples"
        )


def valid_samples(data: "xr.Dataset", missing: bool = False) -> tuple["xr.Dataset", np.ndarray]:
    """Return the samples that did not fail, and their observations.

    Raises:
        ValueError: as `observations_of`, or there are no samples left.
    """
    variable(data, "observation")
    check_dimensions(variable(data, "parameters"), ("sample", "parameter"))
    if "valid" in data and not data.valid.values.all():
        log.warning("%d failed samples are left out", int((~data.valid).sum()))
        data = data.isel(sample=data.valid.values)
    if not data.sizes["sample"]:
        raise ValueError("the data set has 0 valid samples; it needs at least 1")
    check_finite(data["parameters"])
    return data, np.asarray(observations_of(data, missing).values, np.float32)


def is_measured(data: "xr.Dataset") -> bool:
    """Tell whether a data set says that noise was added to it."""
    return bool(json.loads(data.attrs.get("settings", "{}")).get("noise"))


def variable(data: "xr.Dataset", name: str) -> "xr.DataArray":
    """Return a variable that must be there."""
    if name not in data:
        raise ValueError(
            f"the data set has the variables {sorted(map(str, data.data_vars))}; it must have "
            f"{name!r}: make it with sciml.simulate, or rename yours"
        )
    return data[name]


def check_dimensions(data: "xr.DataArray", expected: tuple[str, ...]) -> None:
    """Refuse other dimensions, or another order of them."""
    if data.dims != expected:
        raise ValueError(
            f"{data.name or 'the array'} has the dimensions {data.dims}; "
            f"they must be {expected}: use .rename or .transpose"
        )


def check_finite(data: "xr.DataArray", remedy: str = "") -> None:
    """Refuse NaN and infinity, naming the first bad sample."""
    finite = np.isfinite(data.values.reshape(len(data), -1)).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"{data.name or 'the array'} of sample {int(np.argmin(finite))} is not finite "
            f"({int((~finite).sum())} of {finite.size} samples); drop such samples, as "
            f"data.isel(sample=data.valid.values) does, or for training mark them False in `valid`"
            f"{remedy}"
        )


def check_same_grid(data: "xr.DataArray", grid: Grid) -> None:
    """Refuse observations at other times, or in another unit of time, than a net was trained on."""
    times, unit, dimension = grid.times, grid.time_unit, grid.dimension
    if data.dims != grid.dimensions:
        raise ValueError(
            f"the observations have the dimensions {data.dims}; the net was trained on "
            f"{grid.dimensions}"
        )
    if grid.channels is not None and data.sizes["channel"] != grid.channels:
        raise ValueError(
            f"the observations have {data.sizes['channel']} channels; the net was trained on "
            f"{grid.channels}"
        )
    labels = labels_of(data)
    if labels and grid.labels and labels != grid.labels:
        raise ValueError(
            f"the {data.dims[-1]}s are {', '.join(labels)}; the net was trained on "
            f"{', '.join(grid.labels)}: reorder them by .sel({data.dims[-1]}={[*grid.labels]})"
        )
    if data.sizes[dimension] != len(times):
        raise ValueError(
            f"the observations have {data.sizes[dimension]} {dimension}s; the net was trained on "
            f"{len(times)}: interpolate them to its grid, or mark what is missing by NaN"
        )
    if dimension not in data.coords or (dimension == "feature" and labels):
        return
    found = data[dimension].attrs.get("units", unit)
    if found != unit:
        raise ValueError(f"the unit of time is {found!r}; the net was trained in {unit!r}: convert")
    values = data[dimension].values
    if not np.allclose(values, times, rtol=1e-6, atol=1e-9 * max(1.0, abs(times).max())):
        worst = int(np.argmax(np.abs(values - times)))
        raise ValueError(
            f"{dimension}[{worst}] is {values[worst]} {unit}; the net was trained at "
            f"{times[worst]} {unit}: interpolate to its grid"
        )


def targets_of(data: "xr.Dataset", *, levels: bool) -> Targets:
    """Return the targets of the samples, and their names.

    Args:
        data: with `parameters`, checked.
        levels: whether those of a noise with `estimate=True`, with which the set was simulated,
            follow the parameters, as `noise_sd`.
    """
    values = np.asarray(data["parameters"].values, np.float32)
    names = tuple(map(str, data["parameter"].values))
    if not (levels and "levels" in data and data["levels"].attrs.get("estimated", 0)):
        return values, names
    drawn = np.asarray(data["levels"].values, np.float32)
    added = (f"noise_{name}" for name in data["level"].values)
    return np.concatenate([values, drawn], axis=1), (*names, *added)
