"""Land and relief of a file: as shares and in metres, or left aside with the reason."""

import re

import numpy as np
import xarray as xr

from sciml.wind.cf.dimensions import axes_named, is_profile
from sciml.wind.cf.names import axes, axis_of
from sciml.wind.cf.units import metres_of_ground

SHARES = {"%": 0.01, "percent": 0.01}
SEA_IS_1 = re.compile(r"\b1 ?(:|=|is|for|over)? ?(sea|water|ocean)|(sea|water|ocean) ?[:=] ?1\b")
BOUNDS = {"land_mask": (0.0, 1.0), "orography": (-1000.0, 10000.0)}  # no ground is beyond
NEAR = 0.01  # what interpolation and packing may leave


def unlike_ground(field: xr.DataArray, kind: str, origin: str) -> str:
    """Return why a variable is no land mask or relief that can be taken, or nothing."""
    if not {"y", "x"} <= {axis_of(str(dim), field) for dim in field.dims}:
        return f"its axes are {', '.join(map(str, field.dims))}"
    if is_profile(field):
        return "it has several levels"
    roles = axes(field, origin)
    if "time" in roles and field.sizes[roles["time"]] > 1:
        first, last = (field.isel({roles["time"]: at}).values for at in (0, -1))
        if not np.array_equal(first, last, equal_nan=True):
            return "it changes in time"
    unit = field.attrs.get("units")
    if kind == "orography" and metres_of_ground(unit) is None:
        return f"its unit is {unit!r}, none of a height, as m or ft, or of geopotential, as m2 s-2"
    if kind == "land_mask" and "flag_meanings" in field.attrs and not flags_of_land(field):
        return f"its flag_meanings are {field.attrs['flag_meanings']!r:.60}, without land"
    low, high = BOUNDS[kind]
    values = static(field, kind, origin).values
    if (values < low - NEAR).any() or (values > high + NEAR).any():
        return f"it is {np.nanmin(values):g} to {np.nanmax(values):g}, beyond {low:g} to {high:g}"
    return ""


def static(field: xr.DataArray, kind: str, origin: str) -> xr.DataArray:
    """Return a field that does not change, on (y, x), in metres or in parts of land."""
    roles = axes(field, origin)
    still = {old: 0 for axis, old in roles.items() if axis not in ("y", "x")}
    field = axes_named(
        field.isel(still, drop=True), {axis: roles[axis] for axis in ("y", "x")}, [], origin
    )
    unit = str(field.attrs.get("units", ""))
    if kind == "orography" and (metres := metres_of_ground(unit)) is not None:
        plane = field.astype("float32") * np.float32(metres)
    elif "flag_meanings" in field.attrs:
        plane = field.isin(flags_of_land(field)).astype("float32").where(field.notnull())
    else:
        plane = field.astype("float32") * np.float32(SHARES.get(unit, 1.0))
        titles = ("long_name", "units", "description", "comment")
        if any(SEA_IS_1.search(str(field.attrs.get(n, "")).lower()) for n in titles):
            plane = 1 - plane
    plane.attrs = {"units": "m" if kind == "orography" else "1"}
    return plane


def flags_of_land(field: xr.DataArray) -> list[float]:
    """Return the values of a mask that mean land, by CF's flags."""
    meanings = str(field.attrs["flag_meanings"]).lower().split()
    values = np.ravel(field.attrs.get("flag_values", []))
    if len(values) != len(meanings):
        return []
    return [float(v) for v, word in zip(values, meanings, strict=True) if "land" in word]
