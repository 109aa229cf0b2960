"""Data sets come in here: checked, then bare arrays."""

import json
import logging

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import check_axes, check_free, each_once
from sciml._numbers import as_real
from sciml._precision import told_apart
from sciml.ode.data.evidence import check_seen, valid_in

log = logging.getLogger(__name__)

Targets = tuple[Float[np.ndarray, "sample target"], tuple[str, ...]]
SHAPES = (("sample", "time"), ("sample", "time", "channel"), ("sample", "feature"))
MISSING_REMEDY = ", or give the net missing=True, so that NaN stands for a missing value"


def observations_of(data: xr.DataArray, missing: bool = False) -> xr.DataArray:
    """Return observations if they are series, several of them, or features.

    With `missing`, NaN stands for a value that was not observed.
    """
    check_dimensions(data, *SHAPES)
    if missing:
        check_seen(data.values)
    else:
        check_finite(data, MISSING_REMEDY)
    return data


def valid_samples(data: xr.Dataset, missing: bool = False) -> tuple[xr.Dataset, np.ndarray]:
    """Return the samples that did not fail, and their observations."""
    check_free(data)
    check_dimensions(variable(data, "parameters"), ("sample", "parameter"))
    if not (valid := valid_in(data)).all():
        log.warning("%d failed samples are left out", int((~valid).sum()))
        data = data.isel(sample=valid)
    if not data.sizes["sample"]:
        raise ValueError("the data set has 0 valid samples; it needs at least 1")
    check_finite(variable(data, "parameters"))
    seen = check_axes(observations_of(variable(data, "observation"), missing))
    return data, told_apart(seen.values, "observation", each=seen.dims[-1] != "time")


def is_measured(data: xr.Dataset) -> bool:
    """Tell whether a data set says that noise was added to it."""
    return bool(json.loads(data.attrs.get("settings", "{}")).get("noise"))


def variable(data: xr.Dataset, name: str) -> xr.DataArray:
    """Return a variable that must be there."""
    if name not in data:
        raise ValueError(
            f"the data set has the variables {sorted(map(str, data.data_vars))}; it must have "
            f"{name!r}: make it with sciml.simulate, or rename yours"
        )
    return as_real(data[name], name)


def check_dimensions(data: xr.DataArray, *allowed: tuple[str, ...]) -> None:
    """Refuse other dimensions, or another order of them."""
    if data.dims not in allowed:
        raise ValueError(
            f"{data.name or 'the array'} has the dimensions {data.dims}; they must be "
            f"{' or '.join(map(str, allowed))}: use .rename or .transpose"
        )


def check_finite(data: xr.DataArray, remedy: str = "") -> None:
    """Refuse NaN and infinity, naming the first bad sample."""
    finite = np.isfinite(data.values.reshape(len(data), -1)).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"{data.name or 'the array'} of sample {int(np.argmin(finite))} is not finite "
            f"({int((~finite).sum())} of {finite.size} samples); drop such samples, as "
            f"data.isel(sample=data.valid.values) does, or for training mark them False in `valid`"
            f"{remedy}"
        )


def targets_of(data: xr.Dataset, *, levels: bool) -> Targets:
    """Return the targets of the samples, and their names.

    With `levels`, those of a noise with `estimate=True`, with which the set was simulated, follow
    the parameters, as `noise_sd`.
    """
    values = told_apart(data["parameters"].values, "parameters")
    names = each_once(tuple(map(str, data["parameter"].values)), "the parameters")
    if not (levels and "levels" in data and data["levels"].attrs.get("estimated", 0)):
        return values, names
    drawn = np.asarray(data["levels"].values, np.float32)
    added = (f"noise_{name}" for name in data["level"].values)
    return np.concatenate([values, drawn], axis=1), (*names, *added)
