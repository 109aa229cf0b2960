"""WRF output: staggered components brought to the middle of each cell, and the grid's own angle."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import changed
from sciml.wind.cf.declared import with_declared
from sciml.wind.cf.names import DEGREES, IN_M_S, SCALARS, found
from sciml.wind.cf.projection import cone

NEAR_SURFACE = {"U10": "x_wind", "V10": "y_wind"}
ALOFT = {"U": ("x_wind", "west_east_stag"), "V": ("y_wind", "south_north_stag")}
LEVELS = ("bottom_top", "num_metgrid_levels", "num_metgrid_level")
STATICS = {"HGT": "surface_altitude", "LANDMASK": "land_binary_mask"}


def is_wrf(content: xr.Dataset) -> bool:
    """Tell WRF output by its axes, unless another tool has given all its winds names of others."""
    axes = {"south_north", "west_east"} <= {str(dim) for dim in content.dims}
    own = any(name in content for name in (*NEAR_SURFACE, *ALOFT))
    return axes and (own or not any(one.kind in IN_M_S for one in found(content)))


def from_wrf(content: xr.Dataset, origin: str, model_level: int | None) -> xr.Dataset:
    """Return the wind of WRF output with CF names, on (time, y, x) of the cells' middles.

    U10 and V10 where no model level is asked for; else U and V of that level, each the mean of
    the two faces of a cell. All are along the grid's axes; SINALPHA and COSALPHA, where a file has
    them, are the angle of these to east.

    A nest that moves has latitude and longitude on (time, y, x), and no fields that do not change.
    """
    content = with_time(content)
    read = [n for n in (*NEAR_SURFACE, *ALOFT, *STATICS) if n in content]
    content = with_declared(content, read, origin)
    if model_level is None:
        winds = {
            name: content[name].assign_attrs(standard_name=standard, height_m=10.0)
            for name, standard in NEAR_SURFACE.items()
            if name in content
        }
    else:
        winds = aloft(content, origin, model_level)
    if not winds:
        aloft_too = any(name in content for name in ALOFT)
        remedy = "read U and V of a level: open(path, model_level=0)"
        raise ValueError(
            f"{origin} has the axes of WRF output but neither U10 nor V10; "
            + (remedy if aloft_too else "nor U and V of levels: keep them when it is cut")
        )
    if lost := [name for name in ("XLAT", "XLONG") if name not in content.variables]:
        raise ValueError(
            f"{origin} has the axes of WRF output but no {' and no '.join(lost)}, so its points "
            "are nowhere: keep them when variables are selected"
        )
    where = places(content)
    moves = where["latitude"].ndim == 3
    statics = {
        name: content[name].isel(Time=0, missing_dims="ignore").assign_attrs(standard_name=standard)
        for name, standard in STATICS.items()
        if name in content and not moves
    }
    beside = {one.name: content[one.name] for one in found(content) if one.kind in SCALARS}
    fields = {n: field.reset_coords(drop=True) for n, field in (winds | statics | beside).items()}
    result = xr.Dataset(fields, attrs=content.attrs).rename(
        {"Time": "time", "south_north": "y", "west_east": "x"}
    )
    result = result.assign_coords(where)
    if moves:
        result = changed(result, "the grid moves: latitude and longitude belong to each time")
    if (times := moments_of(content, origin)) is not None:
        result = result.assign_coords(time=("time", times))
    elif "XTIME" in content.variables:
        said = f"no dates: XTIME is {str(content['XTIME'].attrs.get('description', 'unknown'))!r}"
        result = changed(result, said)
    return spaced(result)


def with_time(content: xr.Dataset) -> xr.Dataset:
    """Return WRF output with its axis of times, which cutting and other tools drop or rename."""
    if "Time" in content.dims:
        return content
    if "time" in content.dims:
        return content.rename_dims({"time": "Time"})
    moving = [name for name, field in content.data_vars.items() if field.dtype.kind != "O"]
    return content.assign({name: content[name].expand_dims("Time") for name in moving})


def moments_of(content: xr.Dataset, origin: str) -> np.ndarray | None:
    """Return the dates of WRF output: of Times as text, else of a coordinate that holds dates.

    Else by the minutes since the simulation started, of which a file states the date apart, or in
    words.
    """
    if "Times" in content:
        return moments(content["Times"].values, f"Times of {origin}")
    for name in ("XTIME", "Time", "time"):
        if name in content.variables and content[name].dtype.kind == "M":
            return np.ravel(content[name].values)
    if "XTIME" not in content.variables or content["XTIME"].dtype.kind not in "iuf":
        return None
    attrs = content["XTIME"].attrs
    words = next((w for n in ("units", "description") if "since" in (w := str(attrs.get(n)))), "")
    date = re.search(r"\d{4}-\d\d-\d\d[ _T]\d\d:\d\d:\d\d", words)
    begun = date[0] if date else content.attrs.get("SIMULATION_START_DATE")
    if not words.startswith("minutes since") or begun is None:
        return None
    start = moments(np.array([str(begun).replace(" ", "_")]), f"the start of {origin}")
    seconds = np.rint(60 * np.ravel(content["XTIME"].values).astype(np.float64))
    if not np.isfinite(seconds).all():
        raise ValueError(f"XTIME of {origin} has NaN; it must be minutes since {begun}: correct it")
    return start + seconds.astype("timedelta64[s]")


def aloft(content: xr.Dataset, origin: str, model_level: int) -> dict[str, xr.DataArray]:
    """Return the components of one model level in the middle of each cell."""
    vertical = next((dim for dim in LEVELS if dim in content.sizes), LEVELS[0])
    levels = content.sizes.get(vertical, 0)
    if not 0 <= model_level < levels:
        raise ValueError(
            f"model_level is {model_level} but {origin} has {levels} levels; name one from 0"
        )
    result = {}
    for name, (standard, staggered) in ALOFT.items():
        if name in content:
            field = content[name].isel({vertical: model_level})
            middle = {staggered: (across := staggered.removesuffix("_stag"))}
            if content.sizes.get(staggered) != content.sizes[across] + 1:
                raise ValueError(
                    f"{name} of {origin} has {dict(field.sizes)}, the grid {content.sizes[across]} "
                    f"along {across}; faces are one more than cells: cut both together"
                )
            lower = field.isel({staggered: slice(None, -1)}).rename(middle)
            upper = field.isel({staggered: slice(1, None)}).rename(middle)
            mean = (lower.reset_coords(drop=True) + upper.reset_coords(drop=True)) / 2
            result[name] = mean.assign_attrs(
                standard_name=standard, units=field.attrs.get("units"), model_level=model_level
            )
    return result


def places(content: xr.Dataset) -> dict[str, xr.Variable]:
    """Return latitude, longitude and, where the file has it, the angle of the grid to east."""
    result = {}
    for (new, units), old in zip(DEGREES.items(), ("XLAT", "XLONG"), strict=True):
        result[new] = still(content[old].values, {"standard_name": new, "units": units})
    attrs = {"units": "radian", "long_name": "angle from east to the x axis, anticlockwise"}
    if {"SINALPHA", "COSALPHA"} <= {str(name) for name in content.variables}:
        turn = np.arctan2(content["SINALPHA"].values, content["COSALPHA"].values)
        result["grid_angle"] = still(turn, attrs)
    elif (n := convergence(content.attrs)) is not None:
        stand = float(np.ravel(content.attrs["STAND_LON"])[0])
        east = (stand - result["longitude"].values + 180.0) % 360.0 - 180.0
        result["grid_angle"] = still(np.radians(n * east), attrs)
    if len({value.ndim for value in result.values()}) > 1:  # a nest that moved along a parallel
        times = {"time": content.sizes["Time"]}
        result = {
            name: value if value.ndim == 3 else value.set_dims(times | dict(value.sizes))
            for name, value in result.items()
        }
    return result


def convergence(attrs: Mapping[str, Any]) -> float | None:
    """Return n of the angle n (λ0 − λ) of WRF's Lambert, polar and Mercator maps.

    From the map, not from neighbours: XLAT is in single precision, good to a thousandth of a radian
    only where points are 2 km apart.
    """
    if "STAND_LON" not in attrs:
        return None
    first, last = (
        float(np.radians(np.ravel(attrs.get(name, 0.0))[0])) for name in ("TRUELAT1", "TRUELAT2")
    )
    kind = int(np.ravel(attrs.get("MAP_PROJ", 0))[0])
    return {1: cone(first, last) if first else None, 2: np.sign(first), 3: 0.0}.get(kind)


def still(values: np.ndarray, attrs: dict[str, str]) -> xr.Variable:
    """Return a variable on (y, x) if it is the same at all times, on (time, y, x) else."""
    values = values.astype(np.float64)
    if values.ndim == 3 and (values == values[0]).all():
        values = values[0]
    return xr.Variable(("time", "y", "x")[-values.ndim :], values, attrs)


def moments(times: np.ndarray, owner: str) -> np.ndarray:
    """Return dates of strings, such as 2005-08-28_12:00:00, without what follows the seconds.

    Letters on an axis of their own are joined.
    """
    if times.ndim == 2 and times.shape[1] > 1:
        times = np.array(["".join(map(str, row)) for row in times.astype("U1")])
    texts = np.ravel(times).astype("U19")
    try:
        return np.char.replace(texts, "_", "T").astype("datetime64[ns]")
    except ValueError as error:
        raise ValueError(
            f"{owner} hold what is no date: {error}; they must read as 2005-08-28_12:00:00: "
            "correct them"
        ) from None


def spaced(winds: xr.Dataset) -> xr.Dataset:
    """Give the axes their distances on the map, counted from the first point."""
    for axis, name in (("x", "DX"), ("y", "DY")):
        if name in winds.attrs:
            step = float(np.asarray(winds.attrs[name]).ravel()[0])
            attrs = {"units": "m", "long_name": "distance on the map from the first point"}
            winds = winds.assign_coords({axis: (axis, step * np.arange(winds.sizes[axis]), attrs)})
    return winds
