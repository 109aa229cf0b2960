"""Units of wind and of what lies beside it, in the spellings of CF, GRIB and people."""

import re
import unicodedata

import numpy as np
import xarray as xr

METRES_PER_SECOND = "m s-1"  # as UDUNITS, and so CF, writes it
KNOT_M_S = 1852 / 3600  # sourced: the knot is one nautical mile (1852 m) an hour, SI brochure 8
MILE_M, FOOT_M = 1609.344, 0.3048  # sourced: international mile and foot (NIST Handbook 44)
GRAVITY_M_S2 = 9.80665  # sourced: standard gravity, 3rd CGPM, by which heights are defined (WMO)

Powers = tuple[int, int, int]  # of metre, second and kilogram
LENGTH, TIME, SPEED, PRESSURE, ENERGY = (1, 0, 0), (0, 1, 0), (1, -1, 0), (-1, -2, 1), (2, -2, 0)
SCALAR_UNITS: dict[str, tuple[str, Powers | None]] = {  # ours; None: of what has a zero elsewhere
    "air_temperature": ("K", None),
    "surface_air_pressure": ("Pa", PRESSURE),
    "surface_roughness_length": ("m", LENGTH),
}
EXAMPLES = {  # what a refusal names
    LENGTH: "a length, as m, km or ft",
    TIME: "a time, as s, min, h or d",
    SPEED: "a speed, as m s-1, km/h, knots or mph",
    PRESSURE: "a pressure, as Pa, hPa or mbar",
}
NAMED: tuple[tuple[str, float, Powers], ...] = (
    ("m metre metres meter meters gpm", 1.0, LENGTH),
    ("km kilometre kilometres kilometer kilometers", 1e3, LENGTH),
    ("dam decametre decametres decameter decameters", 10.0, LENGTH),
    ("cm centimetre centimetres centimeter centimeters", 0.01, LENGTH),
    ("mm millimetre millimetres millimeter millimeters", 1e-3, LENGTH),
    ("ft foot feet", FOOT_M, LENGTH),
    ("mi mile miles", MILE_M, LENGTH),
    ("nmi", 1852.0, LENGTH),
    ("s sec secs second seconds", 1.0, TIME),
    ("min mins minute minutes", 60.0, TIME),
    ("h hr hrs hour hours", 3600.0, TIME),
    ("d day days", 86400.0, TIME),
    ("mps", 1.0, SPEED),
    ("kmh kph kmph", 1 / 3.6, SPEED),
    ("mph", MILE_M / 3600, SPEED),
    ("fps", FOOT_M, SPEED),
    ("kn kt kts knot knots", KNOT_M_S, SPEED),
    ("pa pascal pascals", 1.0, PRESSURE),
    ("hpa hectopascal hectopascals mb mbar millibar millibars", 100.0, PRESSURE),
    ("kpa kilopascal kilopascals", 1e3, PRESSURE),
    ("bar bars", 1e5, PRESSURE),
    ("n newton newtons", 1.0, (1, -2, 1)),
    ("j joule joules", 1.0, (2, -2, 1)),
    ("kg", 1.0, (0, 0, 1)),
    ("g", 1e-3, (0, 0, 1)),
)
ATOMS = {name: (size, powers) for names, size, powers in NAMED for name in names.split()}
WRITTEN = (  # in this order; of speeds `ms-1` can be nothing else
    (r"[{}$\\,_·⋅]", " "),
    (r"nautical\s+miles?\b", "nmi"),
    (r"geopotential\s+met(re|er)s?\b", "gpm"),
    (r"\b([kc]?m)(s|hr?)(?=\s*(\^|\*\*)?\s*-\s*1$)", r"\1 \2"),
    (r"\bper\b", "/"),
)
TERM = re.compile(r"\s*([/.*])?\s*([a-z]+)\s*(?:(?:\^|\*\*)?\s*([+-]?\s*\d+))?")
ANGLE = re.compile(r"(deg(ree)?s?|°)( ?(true|t))?( ?(clockwise )?from (true )?north)?")
RADIAN = re.compile(r"rad(ian)?s?")
PLACE = re.compile(r"(?:deg(?:ree)?s?|°)[ _]?(n(?:orth)?|e(?:ast)?|w(?:est)?|south)")
WARMTH = re.compile(
    r"(?:deg(?:ree)?s?|°)?[ _]?(k(?:elvins?)?|c(?:elsius|entigrade)?|f(?:ahrenheit)?)"
)
KELVIN = {"k": (1.0, 0.0), "c": (1.0, 273.15), "f": (5 / 9, 459.67 * 5 / 9)}  # times, plus


def plain(unit: object) -> str:
    """Return a unit in small letters of one font, without brackets around it."""
    text = unicodedata.normalize("NFKC", unit if isinstance(unit, str) else "").strip()
    text = re.sub("[−–]", "-", text).lower()
    inner = re.fullmatch(r"\[(.*)\]|\((.*)\)", text)
    return " ".join((text if inner is None else inner[1] or inner[2] or "").split())


def size_of(unit: object, powers: Powers) -> float | None:
    """Return how much of SI's unit of such a kind a unit is; None of what is no clear one.

    >>> size_of("km h⁻¹", SPEED) == size_of("kilometers per hour", SPEED) == 1 / 3.6
    True
    >>> size_of("m s", SPEED) is None
    True
    """
    text = plain(unit)
    for written, meant in WRITTEN:
        text = re.sub(written, meant, text)
    text, at, size, found = text.strip().removesuffix("."), 0, 1.0, np.zeros(3, int)
    while at < len(text):
        term = TERM.match(text, at)
        if term is None or term[2] not in ATOMS:
            return None
        power = int((term[3] or "1").replace(" ", "")) * (-1 if term[1] == "/" else 1)
        own, its = ATOMS[term[2]]
        size, found, at = size * own**power, found + power * np.array(its), term.end()
    return size if tuple(found.tolist()) == powers else None


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
