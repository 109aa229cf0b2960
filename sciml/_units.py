"""Units in the spellings of CF, GRIB and people, as sizes in SI's."""

import math
import re
import unicodedata
from collections.abc import Mapping

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

BASES = "m s kg A mol K"
SI = (  # sourced: SI brochure 9; symbol, names, size and powers of BASES
    ("m", "metre meter", 1.0, "1 0 0 0 0 0"),
    ("s", "second sec", 1.0, "0 1 0 0 0 0"),
    ("g", "gram gramme", 1e-3, "0 0 1 0 0 0"),
    ("A", "ampere amp", 1.0, "0 0 0 1 0 0"),
    ("mol", "mole mol", 1.0, "0 0 0 0 1 0"),
    ("K", "kelvin", 1.0, "0 0 0 0 0 1"),
    ("L l", "litre liter", 1e-3, "3 0 0 0 0 0"),
    ("M", "molar", 1e3, "-3 0 0 0 1 0"),
    ("Hz", "hertz", 1.0, "0 -1 0 0 0 0"),
    ("N", "newton", 1.0, "1 -2 1 0 0 0"),
    ("Pa", "pascal", 1.0, "-1 -2 1 0 0 0"),
    ("bar", "bar", 1e5, "-1 -2 1 0 0 0"),
    ("J", "joule", 1.0, "2 -2 1 0 0 0"),
    ("W", "watt", 1.0, "2 -3 1 0 0 0"),
    ("V", "volt", 1.0, "2 -3 1 -1 0 0"),
    ("Ω Ohm ohm", "ohm", 1.0, "2 -3 1 -2 0 0"),
    ("S", "siemens siemen", 1.0, "-2 3 -1 2 0 0"),
    ("F", "farad", 1.0, "-2 4 -1 2 0 0"),
    ("H", "henry henrie", 1.0, "2 -2 1 -2 0 0"),
    ("cal", "calorie", 4.184, "2 -2 1 0 0 0"),  # sourced: thermochemical, NIST SP 811
)


def powers_of(line: str) -> dict[str, int]:
    """Return the powers that a line of the table gives, by base."""
    return {b: int(n) for b, n in zip(BASES.split(), line.split(), strict=True) if n != "0"}


OF_SI = {n: (size, powers_of(line)) for names, _, size, line in SI for n in names.split()}
NAMES = {n: (size, powers_of(line)) for _, names, size, line in SI for n in names.split()}
SYMBOLS = {"": 1.0, "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "μ": 1e-6, "m": 1e-3, "c": 1e-2}
SYMBOLS |= {"d": 0.1, "da": 10.0, "h": 100.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
WORDS = {"": 1.0, "femto": 1e-15, "pico": 1e-12, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3}
WORDS |= {"centi": 1e-2, "deci": 0.1, "deca": 10.0, "hecto": 100.0, "kilo": 1e3, "mega": 1e6}
WORDS |= {"giga": 1e9, "tera": 1e12}
OTHERS: dict[str, tuple[float, dict[str, int]]] = {
    "%": (0.01, {}),
    "percent": (0.01, {}),
    "week": (604800.0, {"s": 1}),
    "weeks": (604800.0, {"s": 1}),
    "wk": (604800.0, {"s": 1}),
    "Cal": (4184.0, powers_of("2 -2 1 0 0 0")),  # of food
    "mcg": (1e-9, {"kg": 1}),
    "yr": (1.0, {"year": 1}),  # of 365 days or more: a unit of its own
    "yrs": (1.0, {"year": 1}),
}
BELOW = re.compile(r"/\s*\(([^()/]*)\)")  # mg/(L h)
BARE = ("1", "-", "none", "dimensionless", "unitless")
ANY_TERM = re.compile(
    r"\s*([/.*])?\s*(?:(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?:(?:\^|\*\*)\s*([+-]?\d+))?"
    r"|([^\W\d_]+|%)\s*(?:(?:\^|\*\*)?\s*([+-]?\s*\d+))?)"
)

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
    """Tell whether two units are one, in whatever spelling; capitals of symbols count.

    >>> same_unit("m/s", "metres per second"), same_unit("m/s", "km/h"), same_unit("K", "kelvin")
    (True, False, True)
    >>> same_unit("mV", "millivolts"), same_unit("mV", "MV"), same_unit("uM", "nmol mL-1")
    (True, False, True)
    """
    if text_of(one) == text_of(other):
        return True
    warm = [known[1][0] for u in (one, other) if (known := WARMTH.fullmatch(plain(u)))]
    if len(warm) == 2:
        return warm[0] == warm[1]
    factor = factor_between(one, other)
    return factor is not None and math.isclose(factor, 1.0, rel_tol=1e-9)


def factor_between(one: object, other: object) -> float | None:
    """Return by what values in `one` are multiplied to be in `other`; None if nothing tells.

    >>> round(factor_between("mmol/L", "uM"), 9), factor_between("mM", "mm")
    (1000.0, None)
    """
    found, wanted = composed(one), composed(other)
    if found is None or wanted is None or found[1] != wanted[1]:
        return None
    return found[0] / wanted[0]


def as_other(said: str, meant: str) -> str:
    """Return what to do with values in one unit that are to be in another.

    >>> as_other("uV", "mV")
    "multiply the values by 0.001, and write 'mV' in .attrs['units']"
    """
    factor = factor_between(said, meant)
    if factor is None:
        return "convert the values, or where it is the same, write it alike in .attrs['units']"
    return f"multiply the values by {factor:.10g}, and write {meant!r} in .attrs['units']"


def text_of(unit: object) -> str:
    """Return a unit in one font, without brackets around it, in the letters that it has."""
    text = unicodedata.normalize("NFKC", unit if isinstance(unit, str) else "").strip()
    text = re.sub("[−–]", "-", text)
    inner = re.fullmatch(r"\[(.*)\]|\(([^()]*)\)", text)
    text = text if inner is None else inner[1] or inner[2] or ""
    return " ".join(text.split())


def composed(unit: object) -> tuple[float, dict[str, int]] | None:
    """Return the size of a unit in SI's and its powers; a word that is none of ours is its own."""
    text = text_of(unit)
    if text.isupper() and (loud := sized(text)) is not None and loud[1] == SPEED:
        text = plain(text)  # M/S of old files
    for written, meant in WRITTEN:
        text = re.sub(written, meant, text, flags=re.IGNORECASE)
    text = BELOW.sub(lambda found: "/" + re.sub(r"[\s.*]+", "/", found[1].strip()), text)
    text, at, size = "" if text.strip().lower() in BARE else text.strip(), 0, 1.0
    found: dict[str, int] = {}
    while at < len(text):
        term = ANY_TERM.match(text, at)
        if term is None:
            return None
        sign, at = -1 if term[1] == "/" else 1, term.end()
        if term[2]:
            size *= float(term[2]) ** (sign * int(term[3] or 1))
            continue
        power = sign * int((term[5] or "1").replace(" ", ""))
        own, its = token(term[4])
        size *= own**power
        for base, count in its.items():
            found[base] = found.get(base, 0) + power * count
    return size, {base: count for base, count in found.items() if count}


def token(name: str) -> tuple[float, dict[str, int]]:
    """Return the size and powers of one symbol or word.

    Symbols mean what their capitals say, words are words in any letters.
    """
    word = name.lower() if len(name) > 2 else name
    if name in ATOMS or (name.isupper() and name.lower() in ATOMS and not prefixed(name, SYMBOLS)):
        size, powers = ATOMS[name.lower()]
        return size, {b: n for b, n in zip(["m", "s", "kg"], powers, strict=True) if n}
    if found := prefixed(name, SYMBOLS) or prefixed(word, WORDS):
        return found
    if word in ATOMS:
        return token(word)
    return OTHERS.get(name) or OTHERS.get(word) or (1.0, {singular(word): 1})


def prefixed(name: str, table: Mapping[str, float]) -> tuple[float, dict[str, int]] | None:
    """Return the size and powers of a unit with a prefix, or none, of such a kind."""
    units = OF_SI if table is SYMBOLS else NAMES
    for prefix, times in table.items():
        rest = name.removeprefix(prefix)
        rest = rest if rest in units else singular(rest)
        if name.startswith(prefix) and rest in units:
            size, powers = units[rest]
            return times * size, powers
    return None


def singular(word: str) -> str:
    """Return a word without the s of a plural."""
    return word.removesuffix("s") if len(word) > 3 else word


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
