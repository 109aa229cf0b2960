"""The axes of a field: named and ordered as ours, in our units."""

import re

import numpy as np
import xarray as xr

from sciml._units import LENGTH, PRESSURE, size_of
from sciml.wind.cf.names import ABOVE_SEA, AXES, axes, axis_of, usual_place
from sciml.wind.cf.times import in_hours
from sciml.wind.cf.units import in_si

VERTICAL = {"height": (LENGTH, "m", 1.0), "pressure": (PRESSURE, "hPa", 100.0)}  # ours, in SI's
WIDEST_KM = 250  # assumed: of cells on a map
ORDER = ("time", "member", "height", "pressure", "y", "x")


def is_profile(field: xr.DataArray) -> bool:
    """Tell a wind on several levels, which has an axis for them."""
    return any(axis_of(str(dim), field) in ("height", "pressure") for dim in field.dims)


def without_single_axes(field: xr.DataArray) -> xr.DataArray:
    """Return a variable without those axes of one point that are none of ours."""
    single = [dim for dim in field.dims if field.sizes[dim] == 1 and not axis_of(str(dim), field)]
    return field.isel(dict.fromkeys(single, 0), drop=True)


def refuse_above_sea(field: xr.DataArray, origin: str) -> None:
    """Refuse heights that are counted from the sea: ours are above the ground."""
    for name, coordinate in field.coords.items():
        told = [str(coordinate.attrs.get(key, "")) for key in ("standard_name", "long_name")]
        is_height = re.fullmatch(AXES["height"], str(name).lower())
        if is_height and any(ABOVE_SEA.search(text.lower()) for text in (*told, str(name))):
            raise ValueError(
                f"{name} of {origin} is a height above the sea, and heights here are above the "
                "ground: take one level and drop it, or correct what is said of it"
            )


def axes_named(
    field: xr.DataArray, roles: dict[str, str], said: list[str], origin: str
) -> xr.DataArray:
    """Return a variable on our axes, with those coordinates that lie on one axis each."""
    dims = [axis for axis in ORDER if axis in roles]
    bare = field.variable.transpose(*(roles[axis] for axis in dims))
    coords = {
        axis: (axis, *in_our_unit(axis, field[old], origin))
        for axis, old in roles.items()
        if old in field.coords and not is_angle(field[old])
    }
    if roles.get("time", "").lower() == "month" and "time" in coords:
        coords["month"] = coords.pop("time")
        said.append("the axis month became time; it holds months of the year, not dates")
    return xr.DataArray(bare.data, dims=dims, attrs=bare.attrs, coords=coords)


def in_our_unit(
    axis: str, coordinate: xr.DataArray, origin: str
) -> tuple[np.ndarray, dict[str, str]]:
    """Return values and attributes of a coordinate: heights in m, pressures in hPa."""
    values, attrs = coordinate.values, dict(coordinate.attrs)
    unit = str(attrs.get("units", "")).strip()
    named = f"{attrs.get('standard_name', '')} {attrs.get('long_name', '')}".lower()
    if axis == "pressure" and re.search("hybrid|sigma|model.?level", named):
        first = ", ".join(f"{value:g}" for value in values[:3])
        raise ValueError(
            f"{coordinate.name} of {origin} holds model levels ({first} …), no "
            f"pressures: take one, xarray's .isel({coordinate.name}=…, drop=True), and open that"
        )
    if axis == "time":
        return in_hours(coordinate, origin)
    if axis in VERTICAL and values.dtype.kind not in "iuf":
        raise ValueError(
            f"{coordinate.name} of {origin} holds {str(values[0])!r:.30}, no number: take one, "
            f"xarray's .isel({coordinate.name}=0, drop=True), and open that"
        )
    if axis == "pressure" and not unit and not is_usual(str(coordinate.name), values):
        raise ValueError(
            f"{coordinate.name} of {origin} is {', '.join(f'{v:g}' for v in values[:3])} of no "
            "unit, which may be model levels: set .attrs['units'] to hPa or m, or take one by .isel"
        )
    if axis in ("y", "x"):
        unit = unit or ("m" if far_apart(values) else "")
        known = size_of(unit, LENGTH)
        return (values, attrs) if known is None else (values * known, attrs | {"units": "m"})
    if axis not in VERTICAL or not unit:
        return values, attrs
    powers, own, size = VERTICAL[axis]
    factor = in_si(unit, powers, f"{coordinate.name} of {origin}") / size
    return (values if factor == 1 else values * factor), attrs | {"units": own}


def is_usual(name: str, values: np.ndarray) -> bool:
    """Tell levels of no unit that are pressures in hPa, by name or as reanalyses have them."""
    high = (1, 2, 3, 5, 7, 10, 20, 30, 50, 70)
    near = all(v in high or (v % 25 == 0 and 100 <= v <= 1000) for v in values)
    named = "pres" in name.lower() or "isobar" in name.lower()
    return named or (near and bool(values.max() >= 100))


def other_points(content: xr.Dataset, one: str, other: str, origin: str) -> str:
    """Return which axis of a variable has other points or times than another's, or nothing.

    As of components half a cell apart, each on rows and columns of its own.
    """
    ours, theirs = (axes(without_single_axes(content[name]), origin) for name in (one, other))
    for axis in ("time", "y", "x"):
        dims = ours.get(axis), theirs.get(axis)
        if None in dims or dims[0] == dims[1]:
            continue
        lines = [content[dim].values if dim in content.coords else np.array([]) for dim in dims]
        lines = [np.sort(line) for line in lines] if axis == "time" else lines
        if not lines[0].size or not np.array_equal(*lines):
            return f"{other} is on {dims[1]}, whose points are not those of {dims[0]} of {one}"
    return ""


def far_apart(values: np.ndarray) -> bool:
    """Tell distances of no unit that can only be metres: cells are not so many kilometres wide."""
    numbers = values.size > 1 and values.dtype.kind in "iuf"
    return numbers and bool(abs(values[1] - values[0]) > WIDEST_KM)


def is_angle(coordinate: xr.DataArray) -> bool:
    """Tell a latitude or a longitude from a distance: it becomes a coordinate of that name."""
    named = usual_place(str(coordinate.name), coordinate.attrs)
    return bool(named) or str(coordinate.attrs.get("units", "")).startswith("degree")


def dated(field: xr.DataArray) -> xr.DataArray:
    """Give a field without a time axis one, with the valid time if the file says it."""
    for name in ("valid_time", "time"):
        if name in field.coords and field[name].ndim == 0:
            time = field[name]
            moment = ("time", np.atleast_1d(time.values), time.attrs)
            bare = field.drop_vars(["valid_time", "time"], errors="ignore")
            return bare.expand_dims("time").assign_coords(time=moment)
    return field.expand_dims("time")
