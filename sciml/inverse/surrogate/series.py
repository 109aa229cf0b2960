"""A series as parts of an observation: what is seen at each time, and the time as known."""

from typing import Any

import numpy as np
import xarray as xr

from sciml._labels import marked
from sciml._numbers import as_numbers
from sciml.inverse.borders import SHAPES, check_dimensions, variable


def unrolled(data: Any, parts: int, conditions: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Return a data set of features, the conditions with times among them, and the axes it had.

    A data set of features is returned as it is.
    """
    if not isinstance(data, xr.Dataset):
        raise TypeError(
            f"data is a {type(data).__name__}; it must be a Dataset, as sciml.simulate or "
            "sciml.dataset makes it"
        )
    seen = variable(data, "observation")
    check_dimensions(seen, *SHAPES)
    axes = tuple(map(str, seen.dims))[1:]
    if axes == ("feature",):
        return data, conditions, axes
    count = seen.sizes["time"]
    if parts != count:
        raise ValueError(
            f"parts is {parts}, and an observation is a series of {count} times; a likelihood is "
            f"learned of what is seen at each: pass parts={count}, if these are independent given "
            "the parameters, else features, as sciml.dataset(theta, features)"
        )
    if series := [n for n in marked(data) if "time" in data[n].dims]:
        raise ValueError(
            f"the condition {series[0]} is a series, and what is seen at a time may depend on all "
            "of it; a part is known by numbers: pass those that matter as conditions= of (sample, "
            f"time), and leave it out, as data.drop_vars({series[0]!r})"
        )
    flat = np.reshape(seen.values, (len(seen), -1))
    kept = data.drop_vars("observation")
    kept = kept.drop_dims([dim for dim in axes if dim in kept.dims])
    rows = {"sample": seen["sample"]} if "sample" in seen.coords else {}
    kept["observation"] = xr.DataArray(flat, rows, ("sample", "feature"))
    return kept, {**(conditions or {}), "time": times_of(seen, conditions)}, axes


def times_of(seen: xr.DataArray, conditions: Any) -> np.ndarray:
    """Return the times of a series; refuse one that says none, or others beside them."""
    if conditions is not None and "time" in conditions:
        raise ValueError(
            "the conditions name time, and the observation has its own; times come once: leave it "
            "out of conditions="
        )
    if "time" not in seen.coords:
        raise ValueError(
            "the series says no times, which tell its parts apart: "
            "data.assign_coords(time=[...]) gives them"
        )
    return as_numbers(seen["time"], "time").astype(np.float64)


def unit_of(data: Any) -> str:
    """Return the unit of the times of a data set, or nothing."""
    coords = getattr(data, "coords", {})
    return str(coords["time"].attrs.get("units", "")) if "time" in coords else ""
