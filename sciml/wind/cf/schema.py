"""One schema for wind of any origin: (time, y, x), CF names, m/s, and how it came about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from sciml._grid import spacings_m
from sciml.wind.cf.changes import changed
from sciml.wind.cf.components import named, with_components
from sciml.wind.cf.declared import refuse_flags, with_declared
from sciml.wind.cf.dimensions import (
    axes_named,
    dated,
    is_profile,
    other_points,
    refuse_above_sea,
    without_single_axes,
)
from sciml.wind.cf.forecast import valid, with_dates
from sciml.wind.cf.ground import static, unlike_ground
from sciml.wind.cf.level import Level, refuse_other_axis, refuse_several_heights
from sciml.wind.cf.names import (
    ALOFT,
    AT_TEN_METRES,
    EARTH,
    GRID,
    IN_M_S,
    KIND_OF_LEVEL,
    RELATIVE,
    SCALARS,
    STATICS,
    USUAL_LEVELS,
    WINDS,
    Found,
    axes,
    found,
    is_plane,
    passed_over,
    points_to,
)
from sciml.wind.cf.position import located, planes, upright
from sciml.wind.cf.units import (
    METRES_PER_SECOND,
    SCALAR_UNITS,
    degrees,
    in_kelvin,
    in_si,
    metres_per_second,
    refuse_other_angles,
)

NEAR_SURFACE_M = 10.0  # sourced: WMO-No. 8, the height of standard wind measurements


def conform(content: xr.Dataset, origin: str, level: Level | None = None) -> xr.Dataset:
    """Return the winds of a dataset in the schema of `sciml.wind.open`, computing nothing lazy.

    Raises:
        TypeError: no Dataset.
        ValueError: there is no wind, a component is there twice, a unit or an axis is unknown.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from sciml import wind
    >>> ten = (("lat", "lon"), np.full((2, 3), 10.0), {"units": "knots"})
    >>> lat = ("lat", [51.0, 50.0], {"units": "degrees_north"})
    >>> lon = ("lon", [5.0, 6.0, 7.0], {"units": "degrees_east"})
    >>> winds = wind.conform(xr.Dataset({"u10": ten, "v10": ten}, {"lat": lat, "lon": lon}), "me")
    >>> round(float(winds.wind_speed.max()), 3), winds.latitude.values.tolist()
    (7.275, [50.0, 51.0])
    """
    given: Any = content
    if not isinstance(given, xr.Dataset):
        raise TypeError(
            f"{origin} is a {type(given).__name__}; fields are an xarray Dataset: pass one with "
            "the components as variables"
        )
    level = Level() if level is None else level
    said: list[str] = []
    content = with_dates(content, [f.name for f in found(content)], origin, said)
    content = valid(content, origin, level.lead_h)
    known = chosen(found(content), content, origin, level.variable)
    known = at_height(known, content, level.height_m)
    known = at_pressure(known, level.pressure_hpa, origin, said)
    content = with_declared(content, [f.name for f in known], origin)
    winds = {
        kind: one_level(content, same, origin, level, said)
        for kind in WINDS
        if (same := [f for f in known if f.kind == kind])
    }
    said += passed_over(content) if level.variable is None else []
    for one in known:
        if one.kind in GRID and content[one.name].attrs.get("standard_name") in EARTH:
            said.append(f"{one.name} is along the grid's axes, by its {RELATIVE}")
        kind = content[one.name].attrs.get(KIND_OF_LEVEL)
        if one.kind in WINDS and kind is not None and kind not in USUAL_LEVELS:
            said.append(f"{one.name} is at the level {kind}")
    if not {*winds} & {*IN_M_S}:
        listed = ", ".join([*map(str, content.data_vars)]) or "none"
        listed += "".join(f"; {line}" for line in passed_over(content))
        alone = "no wind but a direction without its speed" if winds else "no wind"
        raise ValueError(
            f"{origin} has {alone} among {listed}; set .attrs['standard_name'] to one of "
            f"{', '.join(WINDS)} on the variables to use"
        )
    refuse_several_heights(winds, origin)
    first = next(f for f in known if f.kind in WINDS)
    for one in (f for f in known if f.kind in WINDS):
        alike = is_profile(content[one.name]) == is_profile(content[first.name])
        if alike and (why := other_points(content, first.name, one.name, origin)):
            raise ValueError(f"in {origin} {why}: bring both to the same points, and open that")
    statics = grounds(content, known, origin, said)
    merged = xr.Dataset(winds | statics, attrs=content.attrs)
    stated = all(f.stated for f in known if f.kind in EARTH)
    there = located(merged, content, first, origin)
    straight = "latitude" in there.coords and there["latitude"].ndim == 1
    more = beside_wind(content, known, origin, level, said, straight=straight)
    placed = upright(changed(there.assign(more), *said), level.first_row, origin)
    return finished(with_components(placed, origin, stated=stated))


def grounds(
    content: xr.Dataset, known: list[Found], origin: str, said: list[str]
) -> dict[str, xr.DataArray]:
    """Return land mask and relief, those with a standard name first; say what is left aside."""
    result = {}
    first = next(f for f in known if f.kind in WINDS)
    for one in sorted((f for f in known if f.kind in STATICS), key=lambda f: f.stated):
        why = unlike_ground(content[one.name], one.kind, origin)
        if why := why or other_points(content, first.name, one.name, origin):
            said.append(f"{one.name} passed over: {why}")
        else:
            result[one.kind] = static(content[one.name], one.kind, origin)
    return result


def beside_wind(
    content: xr.Dataset,
    known: list[Found],
    origin: str,
    level: Level,
    said: list[str],
    *,
    straight: bool,
) -> dict[str, xr.DataArray]:
    """Return what is asked for beside the wind, on (time, y, x) in the unit of `SCALARS` or m/s.

    On `straight` axes, those of latitude and longitude, components along them are to the east and
    to the north.
    """
    result = {}
    for name in level.beside:
        aloft = ALOFT.fullmatch(name)
        kind = aloft[1] if aloft else name
        same = [f for f in known if f.kind == kind]
        if not same and straight and kind in GRID:
            same = [f for f in known if f.kind == EARTH[GRID.index(kind)]]
        if not same:
            there = sorted({f.kind for f in known})
            raise ValueError(
                f"{origin} has no {kind} to show beside the wind; it has {', '.join(there)}: name "
                "what it has, or leave it out"
            )
        if aloft:
            here = replace(level, height_m=float(aloft[2]), pressure_hpa=None, level=None)
            fields = at_height(same, content, here.height_m)
            field = one_level(content, fields, origin, here, said)
            result[name] = field.assign_attrs(standard_name=kind).rename(name)
        else:
            field = one_member(scalar(content, same[0], origin, said), kind, origin, level.member)
            result[name] = field.rename(name)
    return result


def scalar(content: xr.Dataset, one: Found, origin: str, said: list[str]) -> xr.DataArray:
    """Return one of `SCALARS` on (time, y, x), in its unit and single precision."""
    field = without_single_axes(content[one.name])
    unit, said_of = field.attrs.get("units"), f"{one.name} of {origin}"
    own_unit, powers = SCALAR_UNITS[one.kind]
    scale, offset = (
        in_kelvin(unit, said_of) if powers is None else (in_si(unit, powers, said_of), 0)
    )
    roles = axes(field, origin)
    field = field.isel({roles[a]: 0 for a in ("height",) if a in roles}, drop=True)
    if "time" not in roles:
        field = dated(field)
    roles = {"time": "time"} | {a: old for a, old in roles.items() if a != "height"}
    field = axes_named(field, roles, said, origin).astype("float32")
    field = field * np.float32(scale) + np.float32(offset)
    own = {"standard_name": one.kind, "long_name": one.kind.replace("_", " ")}
    return field.assign_attrs(own | {"units": own_unit})


def chosen(
    known: list[Found], content: xr.Dataset, origin: str, variable: str | Sequence[str] | None
) -> list[Found]:
    """Return the statics, and of the winds those that are named, all if none is."""
    if variable is None:
        return known
    names = [variable] if isinstance(variable, str) else list(variable)
    for name in names:
        if not any(name in (f.name, f.kind) for f in known):
            there = [str(n) for n in content.data_vars]
            why = "has no name or standard_name of a wind" if name in there else "is not there"
            if name in there and not is_plane(content[name]):
                why = f"is on {content[name].dims}, and no field on y and x"
            raise ValueError(
                f"variable {name!r} of {origin} {why}; there are {', '.join(there)}: name one, and "
                f"set its .attrs['standard_name'] to one of {', '.join(WINDS)}"
            )
    kept = (*STATICS, *SCALARS)
    return [f for f in known if f.kind in kept or f.name in names or f.kind in names]


def at_height(known: list[Found], content: xr.Dataset, height_m: float | None) -> list[Found]:
    """Return what is known, without the winds that lack a height at which others are."""
    winds = [f for f in known if f.kind in WINDS]
    there = {f.kind for f in winds if f.height_m == height_m or is_profile(content[f.name])}
    if height_m is None or not there:
        return known
    return [f for f in known if f.kind not in WINDS or f.kind in there]


def at_pressure(
    known: list[Found], wanted: float | None, origin: str, said: list[str]
) -> list[Found]:
    """Return what is known, of winds on single pressures those that are asked for."""
    winds = [f for f in known if f.kind in WINDS]
    there = {f.pressure_hpa for f in winds if f.pressure_hpa is not None}
    if wanted in there:
        return [f for f in known if f not in winds or f.pressure_hpa == wanted]
    alone = all(f.pressure_hpa is not None for f in winds)
    if not there or (alone and len(there) == 1):
        return known
    if alone:
        raise ValueError(
            f"{origin} has wind at {', '.join(f'{p:g}' for p in sorted(there))} hPa; name one of "
            f"them: open(path, pressure_hpa={min(there):g}), or --pressure-hpa on the command line"
        )
    left = [f for f in winds if f.pressure_hpa is not None]
    said += [f"{f.name} passed over: it is at {f.pressure_hpa:g} hPa" for f in left]
    return [f for f in known if f not in left]


def one_level(
    content: xr.Dataset, same: list[Found], origin: str, level: Level, said: list[str]
) -> xr.DataArray:
    """Return one wind on (time, [level], y, x) in m/s, of the height that is wanted; say so."""
    kind = same[0].kind
    profiles = [f for f in same if is_profile(content[f.name])]
    if profiles and len(profiles) < len(same):  # beside the wind near the surface
        wanted = level.pressure_hpa is not None or level.model_level is not None
        left = [f for f in same if (f in profiles) != wanted]
        same = [f for f in same if f not in left]
        said += [f"{f.name} passed over: {same[0].name} is taken" for f in left]
    heights = {f.height_m for f in same}
    if len(heights) < len(same) or (None in heights and len(same) > 1):
        raise ValueError(
            f"{origin} has {len(same)} variables with standard_name {kind!r}: "
            f"{', '.join(f.name for f in same)}; it must have one for each height: "
            "name it by variable=, or drop the others"
        )
    ascending = sorted(same, key=lambda f: f.height_m or 0.0)
    parts = [part(content, one, origin, said) for one in ascending]
    field = parts[0]
    if len(parts) > 1:
        axis = xr.Variable("height", [p.attrs["height_m"] for p in parts], {"units": "m"})
        field = xr.concat(
            parts,
            axis,
            coords="minimal",
            compat="override",
            join="exact",
            combine_attrs="drop_conflicts",
        )
    return selected(field, kind, origin, level, said)


def part(content: xr.Dataset, one: Found, origin: str, said: list[str]) -> xr.DataArray:
    """Return one variable with its axes named and ordered as ours, in m/s and single precision."""
    refuse_flags(content[one.name], origin)
    refuse_above_sea(content[one.name], origin)
    field = without_single_axes(content[one.name])
    roles = axes(field, origin)
    if "time" not in roles:
        field = dated(field)
        roles["time"] = "time"
    field = axes_named(field, roles, said, origin)
    data = field.data.astype("float32")
    if one.kind != "wind_from_direction":
        unit = field.attrs.get("units")
        cmip = "CMIP" in str(content.attrs.get("Conventions", ""))
        if unit is None and cmip and one.name in AT_TEN_METRES:
            unit = METRES_PER_SECOND
            said.append(f"{one.name} states no unit; {unit} as the CMIP data request has it")
        factor = metres_per_second(unit, f"{one.name} of {origin}")
        if factor != 1.0:
            data = data * np.float32(factor)
            said.append(f"{one.name} converted from {unit} to {METRES_PER_SECOND}")
    else:
        refuse_other_angles(field, f"{one.name} of {origin}")
        if (factor := degrees(field, f"{one.name} of {origin}")) != 1.0:
            data = data * np.float32(factor)
            said.append(f"{one.name} converted from radians to degrees")
        if points_to(content[one.name]):
            data = (data + np.float32(180.0)) % np.float32(360.0)
            said.append(f"{one.name} turned by 180°: it says where the wind blows to")
    field = named(field.copy(data=data), one.kind)
    at = {"height_m": one.height_m, "pressure_hpa": one.pressure_hpa}
    return field.assign_attrs({name: value for name, value in at.items() if value is not None})


def selected(
    field: xr.DataArray, kind: str, origin: str, level: Level, said: list[str]
) -> xr.DataArray:
    """Return the member and the level of a field that are wanted."""
    field = one_member(field, kind, origin, level.member)
    if level.level is not None and field.attrs.get("level") is None:
        raise ValueError(
            f"level is {level.level!r}, which only GRIB files are asked by; {origin} is none, or "
            "lacks it: name height_m or pressure_hpa"
        )
    vertical = next((axis for axis in ("height", "pressure") if axis in field.dims), None)
    refuse_other_axis(field, vertical, kind, origin, level)
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
        said.append(f"10 m taken of the heights {', '.join(f'{h:g}' for h in levels)} m")
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


def one_member(
    field: xr.DataArray, kind: str, origin: str, member: int | str | None
) -> xr.DataArray:
    """Return the member of an ensemble that is wanted; all stay without a choice."""
    if "member" not in field.dims:
        if member is not None and field.attrs.get("member") != member:
            raise ValueError(
                f"{kind} of {origin} has no member {member}; leave member={member} out"
            )
        return field
    numbers = field["member"].values if "member" in field.coords else np.arange(len(field.member))
    if member is None:
        return field.isel(member=0, drop=True) if len(numbers) == 1 else field
    here = [at for at, one in enumerate(numbers) if one == member or str(one) == str(member)]
    if not here:
        raise ValueError(
            f"{kind} of {origin} has the members {', '.join(map(str, numbers))}, not {member}; "
            "name one of them"
        )
    return field.isel(member=here[0], drop=True).assign_attrs(member=member)


def finished(winds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with its convention and, where they are known, its distances."""
    winds = winds.assign_attrs(Conventions="CF-1.8")
    x = y = float("nan")
    if all(a in winds.coords and winds[a].attrs.get("units") == "m" for a in ("y", "x")):
        x, y = (
            float(np.median(np.abs(np.diff(winds[axis].values.astype(np.float64)))))
            if winds.sizes[axis] > 1
            else float("nan")
            for axis in ("x", "y")
        )
    elif "latitude" in winds.coords:
        x, y = spacings_m(*planes(winds))
    if not (np.isfinite(x) and np.isfinite(y)):
        return winds
    return winds.assign_attrs(spacing_x_m=x, spacing_y_m=y, spacing_m=float(np.sqrt(x * y)))
