"""One schema for wind of any origin: (time, y, x), CF names, m/s, and how it came about."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import Changes
from sciml.wind.cf.components import LONG_NAMES, with_components
from sciml.wind.cf.grid import spacings_m
from sciml.wind.cf.names import (
    AT_TEN_METRES,
    EARTH,
    STATICS,
    WINDS,
    Found,
    axes,
    axis_of,
    found,
    usual_place,
)
from sciml.wind.cf.position import located, planes, upright
from sciml.wind.cf.units import METRES_PER_SECOND, metres_per_second

NEAR_SURFACE_M = 10.0  # sourced: WMO-No. 8, the height of standard wind measurements
ORDER = ("time", "height", "pressure", "y", "x")


@dataclass(frozen=True)
class Level:
    """Which height of several: at most one of the three.

    Without any, 10 m is taken where a file has it among others; else all levels stay as an axis.

    Raises:
        ValueError: more than one is given.
    """

    height_m: float | None = None
    pressure_hpa: float | None = None
    model_level: int | None = None

    def __post_init__(self):
        """Check that they do not contradict each other."""
        given = [name for name, value in vars(self).items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"the level is given by {' and '.join(given)}; give one of them")


def conform(content: xr.Dataset, origin: str, level: Level | None = None) -> xr.Dataset:
    """Return the winds of a dataset in the schema of `sciml.wind.open`; nothing lazy is computed.

    Raises:
        ValueError: there is no wind, a component is there twice, a unit or an axis is unknown.
    """
    level = Level() if level is None else level
    changes = Changes.of(content)
    known = found(content)
    winds = {
        kind: one_level(content, [f for f in known if f.kind == kind], origin, level, changes)
        for kind in WINDS
        if any(f.kind == kind for f in known)
    }
    if not winds:
        listed = ", ".join(map(str, content.data_vars)) or "none"
        raise ValueError(
            f"{origin} has no wind among {listed}; set .attrs['standard_name'] to one of "
            f"{', '.join(WINDS)} on the variables to use"
        )
    statics = {f.kind: static(content[f.name], f.kind, origin) for f in known if f.kind in STATICS}
    merged = upright(located(xr.Dataset(winds | statics), content, known[0]), changes)
    stated = all(f.stated for f in known if f.kind in EARTH)
    return finished(with_components(merged, origin, stated=stated), content, changes)


def one_level(
    content: xr.Dataset, same: list[Found], origin: str, level: Level, changes: Changes
) -> xr.DataArray:
    """Return one wind on (time, [level], y, x) in m/s, of the height that is wanted."""
    kind = same[0].kind
    profiles = [f for f in same if is_profile(content[f.name])]
    if profiles and len(profiles) < len(same):  # beside the wind near the surface
        wanted = level.pressure_hpa is not None or level.model_level is not None
        same = profiles if wanted else [f for f in same if f not in profiles]
    heights = {f.height_m for f in same}
    if len(heights) < len(same) or (None in heights and len(same) > 1):
        raise ValueError(
            f"{origin} has {len(same)} variables with standard_name {kind!r}: "
            f"{', '.join(f.name for f in same)}; it must have one for each height: drop the others"
        )
    ascending = sorted(same, key=lambda f: f.height_m or 0.0)
    parts = [part(content, one, origin, changes) for one in ascending]
    if len(parts) == 1:
        field = parts[0]
    else:
        axis = xr.Variable("height", [p.attrs["height_m"] for p in parts], {"units": "m"})
        field = xr.concat(
            parts,
            axis,
            coords="minimal",
            compat="override",
            join="exact",
            combine_attrs="drop_conflicts",
        )
    return selected(field, kind, origin, level, changes)


def is_profile(field: xr.DataArray) -> bool:
    """Tell a wind on several levels, which has an axis for them."""
    return any(axis_of(str(dim), field) in ("height", "pressure") for dim in field.dims)


def part(content: xr.Dataset, one: Found, origin: str, changes: Changes) -> xr.DataArray:
    """Return one variable with its axes named and ordered as ours, in m/s and single precision."""
    field = content[one.name]
    roles = axes(field, origin)
    if "time" not in roles:
        field = dated(field)
        roles["time"] = "time"
    field = axes_named(field, roles, changes)
    data = field.data.astype("float32")
    attrs: dict[str, object] = {"standard_name": one.kind, "long_name": LONG_NAMES[one.kind]}
    if one.kind == "wind_from_direction":
        attrs["units"] = "degree"
    else:
        unit = field.attrs.get("units")
        if unit is None and is_cmip(content, one.name):
            unit = METRES_PER_SECOND
            changes.say(f"{one.name} states no unit; {unit} as the CMIP data request has it")
        factor = metres_per_second(unit, f"{one.name} of {origin}")
        if factor != 1.0:
            data = data * np.float32(factor)
            changes.say(f"{one.name} converted from {unit} to {METRES_PER_SECOND}")
        attrs["units"] = METRES_PER_SECOND
    attrs |= {k: field.attrs[k] for k in ("model_level", "pressure_hpa") if k in field.attrs}
    if one.height_m is not None:
        attrs["height_m"] = one.height_m
    field = field.copy(data=data)
    field.attrs = attrs
    return field


def is_cmip(content: xr.Dataset, name: str) -> bool:
    """Tell a variable whose unit the CMIP data request fixes, whatever its file forgot."""
    return name in AT_TEN_METRES and "CMIP" in str(content.attrs.get("Conventions", ""))


def axes_named(field: xr.DataArray, roles: dict[str, str], changes: Changes) -> xr.DataArray:
    """Return a variable on our axes, with those coordinates that lie on one axis each."""
    dims = [axis for axis in ORDER if axis in roles]
    bare = field.variable.transpose(*(roles[axis] for axis in dims))
    coords = {
        axis: (axis, field[old].values, field[old].attrs)
        for axis, old in roles.items()
        if old in field.coords and not is_angle(field[old])
    }
    if roles.get("time", "").lower() == "month" and "time" in coords:
        coords["month"] = coords.pop("time")
        changes.say("the axis month became time; it holds months of the year, not dates")
    return xr.DataArray(bare.data, dims=dims, attrs=bare.attrs, coords=coords)


def is_angle(coordinate: xr.DataArray) -> bool:
    """Tell a latitude or a longitude from a distance: it becomes a coordinate of that name."""
    named = usual_place(str(coordinate.name), coordinate.attrs)
    return bool(named) or str(coordinate.attrs.get("units", "")).startswith("degree")


def dated(field: xr.DataArray) -> xr.DataArray:
    """Give a field without a time axis one, with the valid time if the file says it."""
    for name in ("valid_time", "time"):
        if name in field.coords and field[name].ndim == 0:
            time = field[name]
            others = [c for c in ("valid_time", "time") if c in field.coords]
            moment = ("time", np.array([time.values[()]]), time.attrs)
            return field.drop_vars(others).expand_dims("time").assign_coords(time=moment)
    return field.expand_dims("time")


def selected(
    field: xr.DataArray, kind: str, origin: str, level: Level, changes: Changes
) -> xr.DataArray:
    """Return the level of a field that is wanted."""
    vertical = next((axis for axis in ("height", "pressure") if axis in field.dims), None)
    wanted = level.height_m if vertical != "pressure" else level.pressure_hpa
    if vertical is None:
        has = field.attrs.get("height_m")
        if level.height_m is not None and has != level.height_m:
            raise ValueError(
                f"{kind} of {origin} is at {'an unknown height' if has is None else f'{has} m'}, "
                f"not at {level.height_m} m; read what is there, then extrapolate by "
                "power_law or log_law"
            )
        return field
    levels = np.asarray(field[vertical].values, np.float64)
    if wanted is None and vertical == "height" and NEAR_SURFACE_M in levels and levels.size > 1:
        wanted = NEAR_SURFACE_M
        changes.say(f"10 m taken of the heights {', '.join(f'{h:g}' for h in levels)} m")
    if wanted is None and levels.size > 1:
        return field.sortby(vertical)
    index = 0 if wanted is None else int(np.abs(levels - wanted).argmin())
    if wanted is not None and not np.isclose(levels[index], wanted):
        unit = "m" if vertical == "height" else "hPa"
        raise ValueError(
            f"{kind} of {origin} has {vertical} {', '.join(f'{h:g}' for h in levels)} {unit}, "
            f"not {wanted:g}; name one of them"
        )
    name = "height_m" if vertical == "height" else "pressure_hpa"
    return field.isel({vertical: index}, drop=True).assign_attrs({name: float(levels[index])})


def static(field: xr.DataArray, kind: str, origin: str) -> xr.DataArray:
    """Return a field that does not change, on (y, x)."""
    roles = axes(field, origin)
    field = field.isel({old: 0 for axis, old in roles.items() if axis not in ("y", "x")}, drop=True)
    field = axes_named(field, {axis: roles[axis] for axis in ("y", "x")}, Changes())
    field = field.astype("float32")
    field.attrs = {"units": "1" if kind == "land_mask" else field.attrs.get("units", "m")}
    return field


def finished(winds: xr.Dataset, content: xr.Dataset, changes: Changes) -> xr.Dataset:
    """Return the dataset with what is known of it as a whole."""
    winds.attrs = {k: v for k, v in content.attrs.items() if k != "changes"}
    winds.attrs["Conventions"] = "CF-1.8"
    if changes.said:
        winds.attrs["changes"] = "; ".join(changes.said)
    along_x, along_y = spacing(winds)
    if np.isfinite(along_x) and np.isfinite(along_y):
        winds.attrs |= {
            "spacing_x_m": along_x,
            "spacing_y_m": along_y,
            "spacing_m": float(np.sqrt(along_x * along_y)),
        }
    return winds


def spacing(winds: xr.Dataset) -> tuple[float, float]:
    """Return the distances between neighbouring points along x and y, NaN where unknown."""
    if "y" in winds.coords and "x" in winds.coords:
        x, y = (
            float(abs(np.diff(winds[axis].values[:2].astype(np.float64)).sum())) or float("nan")
            for axis in ("x", "y")
        )
        return x, y
    if "latitude" not in winds.coords:
        return float("nan"), float("nan")
    return spacings_m(*planes(winds))
