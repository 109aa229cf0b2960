"""Units of wind: which are known, and what each is in metres per second."""

import re

import numpy as np
import xarray as xr

METRES_PER_SECOND = "m s-1"  # as UDUNITS, and so CF, writes it
KNOT_M_S = 1852 / 3600  # sourced: the knot is one nautical mile (1852 m) an hour, SI brochure 8

FACTORS = {
    "m s-1": 1.0,
    "m/s": 1.0,
    "m s**-1": 1.0,
    "m s^-1": 1.0,
    "m.s-1": 1.0,
    "meter second-1": 1.0,
    "meters per second": 1.0,
    "meters/second": 1.0,
    "metre per second": 1.0,
    "metres per second": 1.0,
    "m/sec": 1.0,
    "cm s-1": 0.01,
    "cm/s": 0.01,
    "km h-1": 1 / 3.6,
    "km/h": 1 / 3.6,
    "km hr-1": 1 / 3.6,
    "kmh": 1 / 3.6,
    "mph": 1609.344 / 3600,  # sourced: the international mile, 1609.344 m (NIST Handbook 44)
    "knot": KNOT_M_S,
    "knots": KNOT_M_S,
    "kt": KNOT_M_S,
    "kts": KNOT_M_S,
}


def metres_per_second(unit: object, name: str) -> float:
    """Return by what a value in `unit` is multiplied to be in m/s; an unknown one is refused."""
    known = FACTORS.get(unit.strip().lower()) if isinstance(unit, str) else None
    if known is None:
        raise ValueError(
            f"the unit of {name} is {unit!r}; it must be one of {', '.join(FACTORS)}: "
            "set .attrs['units'] to what it is"
        )
    return known


DEGREE = ("degree", "degrees", "deg", "degree true", "degrees_true", "degree_true", "°", "degt")
RADIAN = ("radian", "radians", "rad")


FROM_EAST = re.compile(r"math|counter.?clock|anti.?clock|from (the )?east|trigonometric")


def refuse_from_east(direction: xr.DataArray, name: str) -> None:
    """Refuse angles that are counted from east, as in mathematics, by what is said of them."""
    for key in ("long_name", "description", "comment", "convention"):
        said = str(direction.attrs.get(key, ""))
        if FROM_EAST.search(said.lower()):
            raise ValueError(
                f"{key} of {name} is {said!r:.80}; directions are those from which the wind blows, "
                "clockwise from north: convert it to 270 - angle, and drop that attribute"
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
    elif str(unit).strip().lower() in DEGREE:
        return 1.0
    elif str(unit).strip().lower() in RADIAN:
        return 180.0 / np.pi
    raise ValueError(
        f"the unit of {name} is {unit!r}; it must be degree or radian: set .attrs['units'] to what "
        "it is"
    )
