"""Data sets come in here: checked, then bare arrays."""

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)


def observations_of(data: Any) -> "xr.DataArray":
    """Return the observations (sample, time) of a Dataset or DataArray.

    Raises:
        TypeError: it is neither.
        ValueError: the variable or a dimension is missing, or a value is not finite.
    """
    import xarray as xr

    if isinstance(data, xr.Dataset):
        data = variable(data, "observation")
    if not isinstance(data, xr.DataArray):
        raise TypeError(
            f"the data are a {type(data).__name__}; pass an xarray Dataset as simulate() makes it"
        )
    check_dimensions(data, ("sample", "time"))
    check_finite(data)
    return data


def training_arrays(data: "xr.Dataset") -> tuple[np.ndarray, np.ndarray]:
    """Return observations (sample, time) and parameters (sample, param), failed samples dropped.

    Raises:
        ValueError: as `observations_of`, or there are no samples left.
    """
    variable(data, "observation")
    targets = variable(data, "parameters")
    check_dimensions(targets, ("sample", "parameter"))
    if "valid" in data and not data.valid.values.all():
        log.warning("%d failed samples are left out", int((~data.valid).sum()))
        data = data.isel(sample=data.valid.values)
        targets = data["parameters"]
    if not data.sizes["sample"]:
        raise ValueError("the data set has 0 valid samples; it needs at least 1")
    check_finite(targets)
    return (
        np.asarray(observations_of(data).values, np.float32),
        np.asarray(targets.values, np.float32),
    )


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


def check_finite(data: "xr.DataArray") -> None:
    """Refuse NaN and infinity, naming the first bad sample."""
    finite = np.isfinite(data.values).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"{data.name or 'the array'} of sample {int(np.argmin(finite))} is not finite "
            f"({int((~finite).sum())} of {finite.size} samples); drop such samples, "
            "or mark them False in `valid`"
        )


def check_same_grid(data: "xr.DataArray", times: np.ndarray, unit: str) -> None:
    """Refuse observations at other times, or in another unit of time, than a net was trained on."""
    if data.sizes["time"] != len(times):
        raise ValueError(
            f"the observations have {data.sizes['time']} times; the net was trained on "
            f"{len(times)}: interpolate them to its grid"
        )
    if "time" not in data.coords:
        return
    found = data.time.attrs.get("units", unit)
    if found != unit:
        raise ValueError(f"the unit of time is {found!r}; the net was trained in {unit!r}: convert")
    if not np.allclose(data.time.values, times, rtol=1e-6, atol=1e-9 * max(1.0, abs(times).max())):
        worst = int(np.argmax(np.abs(data.time.values - times)))
        raise ValueError(
            f"time[{worst}] is {data.time.values[worst]} {unit}; the net was trained at "
            f"{times[worst]} {unit}: interpolate to its grid"
        )
