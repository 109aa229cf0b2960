"""Units of wind and of what lies beside it, in the spellings of CF, GRIB and people."""

import re

import numpy as np
import xarray as xr

from sciml._units import (
    ENERGY,
    LENGTH,
    PRESSURE,
    SPEED,
    TIME,
    WARMTH,
    Powers,
    as_other,
    factor_between,
    plain,
    same_unit,
    size_of,
)
from sciml._units import KNOT_M_S as KNOT_M_S  # `sciml.wind.units` is public

METRES_PER_SECOND = "m s-1"  # as UDUNITS, and so CF, writes it
GRAVITY_M_S2 = 9.80665  # sourced: standard gravity, 3rd CGPM, by which heights are defined (WMO)

SCALAR_UNITS: dict[str, tuple[str, Powers | None]] = {  # ours; None: of what has a zero elsewhere
    "air_temperature": ("K", None),
    "surface_air_pressure": ("Pa", PRESSURE),
    "surface_roughness_length": ("m", LENGTH),
}
OURS = {name: unit for name, (unit, _) in SCALAR_UNITS.items()}
OURS |= {"orography": "m", "land_mask": "1"}
EXAMPLES = {  # what a refusal names
    LENGTH: "a length, as m, km or ft",
    TIME: "a time, as s, min, h or d",
    SPEED: "a speed, as m s-1, km/h, knots or mph",
    PRESSURE: "a pressure, as Pa, hPa or mbar",
}
ANGLE = re.compile(r"(deg(ree)?s?|°)( ?(true|t))?( ?(clockwise )?from (true )?north)?")
RADIAN = re.compile(r"rad(ian)?s?")
PLACE = re.compile(r"(?:deg(?:ree)?s?|°)[ _]?(n(?:orth)?|e(?:ast)?|w(?:est)?|south)")
KELVIN = {"k": (1.0, 0.0), "c": (1.0, 273.15), "f": (5 / 9, 459.67 * 5 / 9)}  # times, plus


def in_si(unit: object, powers: Powers, name: str) -> float:
    """Return by what a value in `unit` is multiplied to be in SI's; refuse an unclear one."""
    size = size_of(unit, powers)
    if size is None:
        raise ValueError(
            f"the unit of {name} is {unit!r}; it must be {EXAMPLES[powers]}: set .attrs['units'] "
            "to what it is"
        )
    return size


def metres_per_second(unit: object, name: str) -> float:
    """Return by what a value in `unit` is multiplied to be in m/s; an unknown one is refused."""
    return in_si(unit, SPEED, name)


def refuse_other_unit(field: xr.DataArray, name: str) -> None:
    """Refuse a wind that states another unit than m/s, and of what lies beside it than ours."""
    unit = str(field.attrs.get("units", ""))
    ours = OURS.get(name)
    if ours and unit and not same_unit(unit, ours):
        if ours != "1" or factor_between(unit, ours):  # shares are spelled in many ways
            raise ValueError(f"{name} is in {unit}; it must be in {ours}: {as_other(unit, ours)}")
    elif ours is None and unit and metres_per_second(unit, name) != 1:
        raise ValueError(
            f"{name} is in {unit}; it must be in m s-1: read it by sciml.wind.open, or pass "
            "sciml.wind.conform(dataset, 'its name')"
        )


def metres_of_ground(unit: object) -> float | None:
    """Return by what relief is multiplied to be in metres: of heights, and of geopotential."""
    energy = size_of(unit, ENERGY)
    return size_of(unit, LENGTH) if energy is None else energy / GRAVITY_M_S2


def in_kelvin(unit: object, name: str) -> tuple[float, float]:
    """Return by what a temperature is multiplied, and what is added; refuse an unclear unit."""
    if (known := WARMTH.fullmatch(plain(unit))) is None or plain(unit) == "f":  # the farad
        raise ValueError(
            f"the unit of {name} is {unit!r}; it must be one of K, degC, degF: set "
            ".attrs['units'] to what it is"
        )
    return KELVIN[known[1][0]]


def place_of(unit: object) -> str:
    """Return latitude or longitude, of which a unit is as CF spells it, or ""; "other" of south."""
    known = PLACE.fullmatch(plain(unit))
    return {"n": "latitude", "e": "longitude"}.get(known[1][0], "other") if known else ""


IN_TENS = re.compile(r"\b(ten|10)('?s| of|s of)?.?deg")
FROM_EAST = re.compile(r"math|counter.?clock|anti.?clock|from (the )?east|trigonometric")


def refuse_other_angles(direction: xr.DataArray, name: str) -> None:
    """Refuse angles from east, as in mathematics, and tens of degrees, by what is said of them."""
    for key in ("long_name", "description", "comment", "convention"):
        said = str(direction.attrs.get(key, ""))
        if FROM_EAST.search(said.lower()):
            raise ValueError(
                f"{key} of {name} is {said!r:.80}; directions are those from which the wind blows, "
                "clockwise from north: convert it to 270 - angle, and drop that attribute"
            )
        if IN_TENS.search(said.lower()):
            raise ValueError(
                f"{key} of {name} is {said!r:.80}; directions are in degrees: multiply them by 10, "
                "and drop that attribute"
            )


def degrees(direction: xr.DataArray, name: str) -> float:
    """Return by what directions are multiplied to be in degrees; an unknown unit is refused.

    Without a unit they are degrees, unless all of the first time would be radians.
    """
    unit = direction.attrs.get("units")
    if unit is None:
        first = direction.isel(time=0) if "time" in direction.dims else direction
        if float(np.nanmax(np.abs(first.values), initial=0.0)) > 2 * np.pi:
            return 1.0
    elif ANGLE.fullmatch(plain(unit).replace("_", " ")):
        return 1.0
    elif RADIAN.fullmatch(plain(unit)):
        return 180.0 / np.pi
    raise ValueError(
        f"the unit of {name} is {unit!r}; it must be degree or radian: set .attrs['units'] to what "
        "it is"
    )
