"""Which variable of a file is which wind, at what height, and which axis is which."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr

from sciml._units import LENGTH, PRESSURE, SPEED, plain, size_of
from sciml.wind.cf.kinds import OF_STATIONS
from sciml.wind.cf.units import ANGLE, IN_TENS, RADIAN, place_of

GRID = ("x_wind", "y_wind")  # CF: along the grid's own axes
EARTH = ("eastward_wind", "northward_wind")
PAIRS = (GRID, EARTH)
POLAR = ("wind_speed", "wind_from_direction")
WINDS = GRID + EARTH + POLAR
IN_M_S = ("wind_speed", *GRID, *EARTH)
STATICS = ("land_mask", "orography")

# What files call them that carry no CF standard name; the group is the height in metres.
SPELLINGS = {
    "x_wind": r"x_wind|x_wind_(\d+)m",
    "y_wind": r"y_wind|y_wind_(\d+)m",
    "eastward_wind": (
        r"u|ua|uas|uwnd|u_?(\d+)m?|(\d+)u|(\d+)m_u_component_of_wind"
        r"|ugrd_?(\d+)_?m(?:_?above_?ground)?|u-component_of_wind(?:_height_above_ground)?"
    ),
    "northward_wind": (
        r"v|va|vas|vwnd|v_?(\d+)m?|(\d+)v|(\d+)m_v_component_of_wind"
        r"|vgrd_?(\d+)_?m(?:_?above_?ground)?|v-component_of_wind(?:_height_above_ground)?"
    ),
    "wind_speed": (
        r"w(?:ind_?)?sp(?:ee)?d|ws|w(?:ind_?)?(?:sp(?:ee)?d|s)_?(\d+)m?|si(\d+)|sfcwind"
        r"|wind_(\d+)_?m_?above_?ground|wind_speed_height_above_ground|ff|sknt"
    ),
    "wind_from_direction": (
        r"wd|w(?:ind_?)?dir(?:ection)?|w(?:d|(?:ind_?)?dir(?:ection)?)_?(\d+)m?"
        r"|wdir_(\d+)_?m_?above_?ground"
        r"|wind_direction_from_which_blowing(?:_height_above_ground)?|wind_to_direction|dir|dd|drct"
    ),
    "land_mask": r"lsm|landmask|land_mask|land_binary_mask|sftlf",
    "orography": r"orog|orography|hgt|surface_altitude|relief",
}
BESIDE_SPEED = {"dir", "dd", "drct"}  # which are of the wind where nothing but its speed is there
# Over an ensemble, a spread is no wind; over time, neither, nor the largest or sum of a component.
NO_WIND = re.compile(
    r"standard_deviation|variance|standard_error|range\b|spread|probability|maximum|minimum|sum\b"
)
# What a name or a title says of it, and cfgrib of the field that it came from.
DEVIATION = re.compile(
    r"anomal|bias(?!.?(correct|adjust))|increment|uncertain|st(andar)?d.?dev|[_ ]std\b|spread|gust"
)
# Motion of something else in m/s, and parts of the wind that are not the wind.
OTHER_FLOW = re.compile(
    r"^(?!.*\bwinds?\b).*(\b(ocean|(sea|salt) ?water|ice|stokes|swell|waves?)\b|\bcurrents?\b)"
    r"|geostrophic|thermal wind|storm.?(motion|relative)|\b(ir)?rotational|\bdivergent"
)
SPREADS = {"es", "ep", "pd", "efi", "sot", "ssd"}  # kinds of product of ECMWF that are no wind
EXTREMES = {"max", "min", "accum", "sd", "diff", "rms", "cov", "ratio", "severity"}
BY_CFGRIB = {"GRIB_dataType": SPREADS, "GRIB_stepType": EXTREMES}
RELATIVE = "GRIB_uvRelativeToGrid"  # 1: along the grid, though standard_name is eastward_wind
KIND_OF_LEVEL = "GRIB_typeOfLevel"
USUAL_LEVELS = {"heightAboveGround", "isobaricInhPa", "isobaricInPa", "surface"}
TOWARDS = re.compile(r"\bto_direction|\btowards?\b|\bto which\b|\bblow(s|ing) to\b")
OTHER_WIND = re.compile(r"gust|stress|shear|tendency|vertical|upward|power|chill")
STANDARD = {
    "land_binary_mask": "land_mask",
    "land_area_fraction": "land_mask",
    "surface_altitude": "orography",
    "surface_geopotential": "orography",
    "grid_eastward_wind": "x_wind",  # CF's older names
    "grid_northward_wind": "y_wind",
    "wind_to_direction": "wind_from_direction",  # see `points_to`
}
AT_TEN_METRES = {"uas", "vas", "sfcwind"}  # sourced: CMIP data request, near-surface wind
OF_NO_UNIT = re.compile(
    r"[uv](a|wnd|grd)?_?(\d+)|w(?:ind_?)?(?:sp(?:ee)?d|s)_?(\d+)"
)  # of CORDEX, ua850 is at 850 hPa
ON_PRESSURE = re.compile(r"hpa|\bmb\b|mbar|millibar|isobaric|pressure")
IN_METRES = re.compile(r"met(re|er)|\d ?m\b")
LOWEST_HPA = 200.0  # assumed: what is numbered below it and nothing else is said is in metres
ACROSS = re.compile(r"component|zonal|merid|east|north|\b[uvxy]\b")

ABOVE_SEA = re.compile(r"^altitude|above.{0,10}(sea|geoid|ellipsoid)|\bm?asl\b|\bmsl\b")
AXES = {
    "time": r"time\d*|valid_time|month|t|xtime",
    "member": r"member|number|realization|ensemble|ensemble_member|ens|ens_member|perturbation",
    "height": r"height\d*|height_\d+m|heightaboveground\d*|height_above_ground\d*|altitude",
    "pressure": r"pressure|level|plev|isobaricinhpa|pressure_level|lev",
    "y": (
        r"y(_?\d+|c|grid(_\d+)?|dim)?|(n|x|r|nav_|grid_?|g\d+_)?lat(itude)?s?(_\d+|_rho)?|south_north"
        r"|n?j|j[cy]|rows?|eta_rho|projection_y_coordinate"
    ),
    "x": (
        r"x(_?\d+|c|grid(_\d+)?|dim)?|(n|x|r|nav_|grid_?|g\d+_)?lon(g|gitude)?s?(_\d+|_rho)?|west_east"
        r"|n?i|i[cx]|col(umn)?s?|xi_rho|projection_x_coordinate"
    ),
}
STANDARD_AXES = {  # by the standard name of a coordinate
    "time": "time",
    "realization": "member",
    "height": "height",
    "air_pressure": "pressure",
    **dict.fromkeys(("latitude", "grid_latitude", "projection_y_coordinate"), "y"),
    **dict.fromkeys(("longitude", "grid_longitude", "projection_x_coordinate"), "x"),
}
PLACES = {
    "latitude": ("latitude", "lat", "nav_lat", "xlat"),
    "longitude": ("longitude", "lon", "nav_lon", "xlong"),
}
DEGREES = {"latitude": "degrees_north", "longitude": "degrees_east"}


# What a net may be shown beside the wind: names of CF, and what else a file may call them.
SCALARS = {
    "air_temperature": r"2t|t2m?|tas|tmp_2_?m(?:_?above_?ground)?|2m_temperature",
    "surface_air_pressure": r"sp|ps|psfc|surface_pressure|pres_surface",
    "surface_roughness_length": r"fsr|sr|z0|zo|surface_roughness",
}
MEMBER = re.compile(r"(.+?)_?(?:member|mem|ens|realization|realisation|pert)_?\d+", re.I)
ALOFT = re.compile(rf"({'|'.join((*GRID, *EARTH, 'wind_speed'))})_(\d+)m")  # as x_wind_100m


def vector_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of components of which one is among names, at any height or hour."""
    parts = [part for pair in PAIRS for part in pair]
    ends = dict.fromkeys(
        ["", *(n.removeprefix(p) for n in names for p in parts if n.startswith((f"{p}_", f"{p} ")))]
    )
    pairs = [(f"{u}{end}", f"{v}{end}") for end in ends for u, v in PAIRS]
    return [pair for pair in pairs if {*pair} & {*names}]


def components_in(winds: xr.Dataset) -> tuple[str, ...]:
    """Return what there is of the components along the grid, else of those to east and north."""
    there = (tuple(name for name in pair if name in winds) for pair in PAIRS)
    return next(filter(None, there), ())


@dataclass(frozen=True)
class Found:
    """A variable of a file that is one of ours."""

    kind: str
    height_m: float | None
    name: str
    stated: bool  # by its CF standard name, not only by what it is called
    pressure_hpa: float | None = None


def found(content: xr.Dataset) -> list[Found]:
    """Return every variable that is a wind, a land mask, an orography or one of `SCALARS`.

    Of directions, those from which the wind blows come before those towards which it does.
    """
    everything = (recognised(str(name), field) for name, field in content.data_vars.items())
    known = [one for one in everything if one is not None]
    alone = {"wind_speed"} == {one.kind for one in known} & {*IN_M_S}
    on = [{*content[one.name].dims} for one in known if alone and one.kind == "wind_speed"]
    known = [  # what has other axes is no direction of it, as dd is the day of a month
        one
        for one in known
        if one.name.lower() not in BESIDE_SPEED or {*content[one.name].dims} in on
    ]
    flat = [one for one in known if one.kind in STATICS or is_plane(content[one.name])]
    known = flat if any(one.kind in WINDS for one in flat) else known
    turned = {f.name for f in known if points_to(content[f.name])}
    return [
        one
        for one in known
        if one.name not in turned or not any(same(one, f) for f in known if f.name not in turned)
    ]


def is_plane(field: xr.DataArray) -> bool:
    """Tell a variable on two axes that may be y and x from a series, a profile and a section."""
    return sum(axis_of(str(dim), field) in ("y", "x", None) for dim in field.dims) > 1


def same(one: Found, other: Found) -> bool:
    """Tell two variables of one wind at one height."""
    ours, theirs = ((f.kind, f.height_m, f.pressure_hpa) for f in (one, other))
    return ours == theirs


def passed_over(content: xr.Dataset) -> list[str]:
    """Return what is to say of variables that are a wind by name and are not taken."""
    taken, said = {one.name for one in found(content)}, []
    for name, field in content.data_vars.items():
        if said_member := member_alone(str(name), field):
            said.append(said_member)
        one = recognised(str(name), field, any_kind=True)
        if one is None or one.kind not in WINDS or one.name in taken:
            continue
        if str(name).lower() in BESIDE_SPEED:
            continue
        why = "the direction from which the wind blows is there too"
        if told := unlike_wind(field):
            why = f"its {told[0]} is {told[1]!r}"
        elif not is_plane(field):
            why = f"its axes are {', '.join(map(str, field.dims)) or 'none'}"
        said.append(f"{name} passed over: {why}")
    return said


def member_alone(name: str, field: xr.DataArray) -> str:
    """Return what is to say of a member of an ensemble that is a variable of its own, else ""."""
    if recognised(name, field) or not (numbered := MEMBER.fullmatch(name)):
        return ""
    one = recognised(numbered[1], field)
    if one is None or one.kind not in WINDS:
        return ""
    return (
        f"{name} passed over: it is a member of {numbered[1]}; join members as one variable by "
        "xarray.concat(…, 'member')"
    )


def unlike_wind(field: xr.DataArray) -> tuple[str, str] | None:
    """Return what of a variable says that it is a spread, an extreme or at no known level."""
    for name in ("cell_methods", "standard_name", "long_name"):
        text = str(field.attrs.get(name, ""))
        other = OTHER_FLOW if name == "long_name" else NO_WIND
        if other.search(text.lower()) or DEVIATION.search(text.lower()):
            return name, text
    if DEVIATION.search(str(field.name).lower()):
        return "name", str(field.name)
    for name, none in BY_CFGRIB.items():
        if field.attrs.get(name) in none:
            return name, str(field.attrs[name])
    numbered = number_of(field)
    if numbered is not None and numbered >= LOWEST_HPA and unit_of_number(field) is None:
        return "level", f"{numbered:g} of no unit: set .attrs['height_m'] or .attrs['pressure_hpa']"
    return None


def number_of(field: xr.DataArray) -> float | None:
    """Return the number in a name that says no unit of it, as u850."""
    matched = OF_NO_UNIT.fullmatch(str(field.name).lower())
    told = {"height_m", "pressure_hpa"} & {*field.attrs}
    return float(matched[2] or matched[3]) if matched and not told else None


def unit_of_number(field: xr.DataArray) -> str | None:
    """Return m or hPa, as a variable's titles, or CORDEX's names, have it."""
    text = " ".join(str(field.attrs.get(n, "")) for n in ("long_name", "standard_name")).lower()
    on_axis = "hPa" if pressure_beside(field) is not None else None
    by_name = "hPa" if re.match(r"[uv]a\d", str(field.name).lower()) else on_axis
    of_text = "hPa" if ON_PRESSURE.search(text) else "m" if IN_METRES.search(text) else None
    return of_text or by_name


def pressure_beside(field: xr.DataArray) -> float | None:
    """Return the pressure in hPa that stands beside a variable as a single number."""
    for axis, coordinate in field.coords.items():
        if coordinate.ndim == 0 and re.fullmatch(AXES["pressure"], str(axis).lower()):
            pascals = size_of(coordinate.attrs.get("units"), PRESSURE)
            return None if pascals is None else pascals / 100 * float(coordinate)
    return None


def pressure_of(field: xr.DataArray) -> float | None:
    """Return the pressure in hPa at which a variable is, where it is on a single one."""
    if "pressure_hpa" in field.attrs:
        return float(field.attrs["pressure_hpa"])
    number = number_of(field)
    named = number if unit_of_number(field) == "hPa" else None
    beside = pressure_beside(field)
    return named if beside is None else beside


def points_to(field: xr.DataArray) -> bool:
    """Tell a direction towards which the wind blows, opposite to that from which it does."""
    names = (str(field.name), field.attrs.get("standard_name"), field.attrs.get("long_name"))
    standard = names[1]
    told = [standard] if standard in ("wind_from_direction", "wind_to_direction") else names
    return any(TOWARDS.search(re.sub(r"^wind_", "", str(name).lower())) for name in told)


def recognised(name: str, field: xr.DataArray, *, any_kind: bool = False) -> Found | None:
    """Return what a variable is, by its standard name first, by its own name else.

    Spreads, extremes and sums are none, unless `any_kind`.
    """
    standard = str(field.attrs.get("standard_name", ""))
    kind = STANDARD.get(standard, standard)
    level = height_of(name, field), pressure_of(field)
    if not any_kind and unlike_wind(field):
        return None
    if kind in (*WINDS, *STATICS, *SCALARS):
        return Found(along(kind, field), level[0], name, stated=True, pressure_hpa=level[1])
    # Some centres write names of their own, as x_wind_10m; of other things they speak of no wind.
    # Where it has none, cfgrib writes "unknown", and CDO the variable's own name.
    silent = standard in ("", "unknown", name)
    if not silent and ("wind" not in standard or OTHER_WIND.search(standard)):
        return None
    for kind, spelling in (SPELLINGS | SCALARS).items():
        if re.fullmatch(spelling, name.lower()):
            if not fits_unit(kind, name.lower(), field.attrs):
                return None
            told = RELATIVE in field.attrs
            kind = along(titled(kind, field), field)
            return Found(kind, level[0], name, stated=told, pressure_hpa=level[1])
    return None


def along(kind: str, field: xr.DataArray) -> str:
    """Return which component a variable is, which cfgrib tells apart from its standard name."""
    return GRID[EARTH.index(kind)] if kind in EARTH and field.attrs.get(RELATIVE) == 1 else kind


def titled(kind: str, field: xr.DataArray) -> str:
    """Return what a variable of this name is, unless its title says that it is a speed."""
    title = str(field.attrs.get("long_name", "")).lower()
    is_speed = kind in (*EARTH, *GRID) and "speed" in title and not ACROSS.search(title)
    return "wind_speed" if is_speed else kind  # as U10 of CESM


def height_of(name: str, field: xr.DataArray) -> float | None:
    """Return the height above ground in metres: an attribute, a coordinate, or the name says it."""
    if "height_m" in field.attrs:
        return float(field.attrs["height_m"])
    for axis, coordinate in field.coords.items():
        if coordinate.ndim == 0 and re.fullmatch(AXES["height"], str(axis).lower()):
            metres = size_of(coordinate.attrs.get("units", "m"), LENGTH)
            return None if metres is None else metres * float(coordinate)
    if pressure_of(field) is not None:
        return None
    for spelling in SPELLINGS.values():
        if matched := re.fullmatch(spelling, name.lower()):
            digits = next(filter(None, matched.groups()), None)
            return float(digits) if digits else 10.0 if name.lower() in AT_TEN_METRES else None
    matched = re.search(r"(?<![\d.])(\d+)m$", name.lower())
    return float(matched.group(1)) if matched else None


def fits_unit(kind: str, name: str, attrs: Mapping[Any, Any]) -> bool:
    """Tell whether the unit is that of the wind which a short name may mean: wd is a depth too."""
    if name == "ff":
        return size_of(attrs.get("units"), SPEED) is not None
    if kind != "wind_from_direction" or re.search(r"w.*dir", name):
        return True
    unit = plain(attrs.get("units", "deg")).replace("_", " ")
    return any((ANGLE.fullmatch(unit), RADIAN.fullmatch(unit), IN_TENS.search(unit)))


def of_angle(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether a unit is of an angle, or not told."""
    return "units" not in attrs or bool(ANGLE.fullmatch(plain(attrs["units"])))


def usual_place(name: str, attrs: Mapping[Any, Any]) -> str:
    """Return which place a coordinate's name usually means, if no unit says more than degrees."""
    if not of_angle(attrs):
        return ""
    return next((place for place, usual in PLACES.items() if name.lower() in usual), "")


def axes(field: xr.DataArray, origin: str) -> dict[str, str]:
    """Return which of time, height, pressure, y, x each dimension of a variable is, new → old."""
    named = {str(dim): axis_of(str(dim), field) for dim in field.dims}
    wrong = [dim for dim, axis in named.items() if axis is None]
    roles = [axis for axis in named.values() if axis]
    if wrong or len({*roles}) < len(roles) or not {"y", "x"} <= {*roles}:
        raise ValueError(
            f"{field.name} of {origin} has axes {field.dims}; they must be time, height or "
            "pressure, y and x: select one of any other axis, or rename the axes"
            + ("" if {"y", "x"} & {*roles} else f"; {OF_STATIONS}")
        )
    return {axis: dim for dim, axis in named.items() if axis}


def axis_of(dim: str, field: xr.DataArray) -> str | None:
    """Return the role of a dimension, by its name first, by its coordinate's attributes else."""
    attrs = field[dim].attrs if dim in field.coords else {}
    in_metres = size_of(attrs.get("units"), LENGTH)  # whatever a vertical axis is called
    for axis, spelling in AXES.items():
        if re.fullmatch(spelling, dim.lower()):
            return "height" if axis == "pressure" and in_metres else axis
    letter = str(attrs.get("axis", "")).lower()
    told = STANDARD_AXES.get(str(attrs.get("standard_name")))
    told = told or {"t": "time", "x": "x", "y": "y"}.get(letter)
    return told or {"latitude": "y", "longitude": "x"}.get(place_of(attrs.get("units")))
