"""Units in the spellings of CF, GRIB and people, as sizes in SI's."""

import re
import unicodedata

import numpy as np

KNOT_M_S = 1852 / 3600  # sourced: the knot is one nautical mile (1852 m) an hour, SI brochure 8
MILE_M, FOOT_M = 1609.344, 0.3048  # sourced: international mile and foot (NIST Handbook 44)

Powers = tuple[int, int, int]  # of metre, second and kilogram
LENGTH, TIME, SPEED, PRESSURE, ENERGY = (1, 0, 0), (0, 1, 0), (1, -1, 0), (-1, -2, 1), (2, -2, 0)
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

WARMTH = re.compile(
    r"(?:deg(?:ree)?s?|°)?[ _]?(k(?:elvins?)?|c(?:elsius|entigrade)?|f(?:ahrenheit)?)"
)
MEGA = re.compile(r"\bM(?=(m|b|bars?)\b)")  # in small letters it would be milli


def plain(unit: object) -> str:
    """Return a unit in small letters of one font, without brackets around it."""
    text = unicodedata.normalize("NFKC", unit if isinstance(unit, str) else "").strip()
    text = re.sub("[−–]", "-", MEGA.sub("mega", text)).lower()
    inner = re.fullmatch(r"\[(.*)\]|\((.*)\)", text)
    return " ".join((text if inner is None else inner[1] or inner[2] or "").split())


def size_of(unit: object, powers: Powers) -> float | None:
    """Return how much of SI's unit of such a kind a unit is; None of what is no clear one.

    >>> size_of("km h⁻¹", SPEED) == size_of("kilometers per hour", SPEED) == 1 / 3.6
    True
    >>> size_of("m s", SPEED) is None
    True
    """
    found = sized(unit)
    return found[0] if found is not None and found[1] == powers else None


def same_unit(one: object, other: object) -> bool:
    """Tell whether two units are one, in whatever spelling.

    >>> same_unit("m/s", "metres per second"), same_unit("m/s", "km/h"), same_unit("K", "kelvin")
    (True, False, True)
    """
    texts = plain(one), plain(other)
    warm = [known[1][0] for text in texts if (known := WARMTH.fullmatch(text))]
    if texts[0] == texts[1]:
        return True
    if len(warm) == 2:
        return warm[0] == warm[1]
    found = sized(one)
    return found is not None and found == sized(other)


def sized(unit: object) -> tuple[float, Powers] | None:
    """Return the size of a clear unit in SI's, and its powers of metre, second, kilogram."""
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
    return size, (int(found[0]), int(found[1]), int(found[2]))
