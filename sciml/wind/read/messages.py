"""The messages of a GRIB file that are ours: where each lies, and what its header says."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sciml.wind.cf.names import EARTH, EXTREMES, GRID, SCALARS
from sciml.wind.read.sections import Field, fields, handle_of

# Parameter by its short name, which ecCodes gives for editions 1 and 2 and for local tables.
COMPONENTS = {f"{height}{c}": i for height in ("", 10, 100, 200) for i, c in enumerate("uv")}
OTHERS = {
    **dict.fromkeys(("ws", "10si", "100si", "200si"), "wind_speed"),
    **dict.fromkeys(("wdir", "10wdir"), "wind_from_direction"),
    "lsm": "land_mask",
    **dict.fromkeys(("2t", "t"), "air_temperature"),
    **dict.fromkeys(("sp", "pres"), "surface_air_pressure"),
    **dict.fromkeys(("fsr", "sr"), "surface_roughness_length"),
    **dict.fromkeys(("orog", "h", "z"), "orography"),  # z: geopotential, which `static` divides
}
AVERAGED = "avg_"  # what ecCodes puts before names of edition 2
GEOMETRY = (
    "gridType",
    "Nx",
    "Ny",
    "iScansNegatively",
    "jScansPositively",
    "jPointsAreConsecutive",
    "uvRelativeToGrid",
    "latitudeOfFirstGridPointInDegrees",
    "longitudeOfFirstGridPointInDegrees",
)
# What is wind by its name and none by its kind, as ecCodes' `dataType` and `derivedForecast` say.
NO_WIND = {
    "es": "the spread of an ensemble",
    "ep": "a probability",
    "pd": "a probability",
    "efi": "an index",
    "sot": "an index",
    "ssd": "a standard deviation",
}
DERIVED = {2: NO_WIND["ssd"], 3: NO_WIND["ssd"], 4: NO_WIND["es"], 5: "an anomaly index"}
GRIDLESS = {"sh": "spectral coefficients", "unstructured_grid": "points without rows"}
REDUCED = "a reduced grid, whose rows have different lengths"
HOURS = {0: 1 / 60, 1: 1, 2: 24, 3: 720, 4: 8760, 5: 87600, 6: 262800, 7: 876000}
HOURS |= {10: 3, 11: 6, 12: 12}
SECONDS, QUARTERS = {13: 1 / 3600}, {13: 0.25, 14: 0.5, 254: 1 / 3600}  # of editions 2 and 1
LONGEST_H = 1e6  # assumed: a longer forecast is a damaged number, over which ecCodes counts days
# Of a Gaussian grid: ecCodes looks for latitudes of more lines for minutes, and ends the process
# where rows and lines contradict each other.
FINEST = 8000  # assumed: as the finest global models have


@dataclass(frozen=True)
class Message:
    """One field of a GRIB file: where it is, and what its header says.

    `part` counts the fields of one message. `level` names a kind of level that is neither a height
    above ground nor a pressure, as "tropopause 0". `fault` says why its values cannot be had.
    """

    offset: int
    length: int
    part: int
    kind: str
    height_m: float | None
    pressure_hpa: float | None
    level: str
    time: np.datetime64
    lead_h: float | None
    member: int | None
    units: str
    shape: tuple[int, int]  # points along y and x
    geometry: tuple[Any, ...]
    fault: str = ""
    is_mean: bool = False  # over time


def index(path: Path) -> list[Message]:
    """Return the messages of a file that are ours; only headers are read."""
    with path.open("rb") as stream:
        read = (header_of(stream, field) for field in fields(path, stream))
        return [message for message in read if message is not None]


def header_of(stream: BinaryIO, field: Field) -> Message | None:
    """Return what the header of one field says, None if it is not ours."""
    with released(handle_of(stream, field, headers_only=True)) as handle:
        return header(handle, field.offset, field.length, field.part)


@contextmanager
def opened(path: Path, message: Message) -> Iterator[Any]:
    """Yield the handle of one message, with its values."""
    with path.open("rb") as stream:
        there = fields(path, stream, message.offset)
        field = next(islice(there, message.part, None), None)
        if field is None or field.offset != message.offset:
            raise ValueError(f"{path} has changed since it was opened; open it again")
        handle = handle_of(stream, field, headers_only=False)
    with released(handle):
        yield handle


@contextmanager
def released(handle: Any) -> Iterator[Any]:
    """Yield a handle, and give its memory back."""
    import eccodes

    try:
        yield handle
    finally:
        eccodes.codes_release(handle)


def get(handle: Any, key: str) -> Any:
    """Return one value of a header."""
    import eccodes

    return eccodes.codes_get(handle, key)


def known(handle: Any, key: str, default: Any = None) -> Any:
    """Return one value of a header, or the default where it has none."""
    import eccodes

    try:
        return get(handle, key) if eccodes.codes_is_defined(handle, key) else default
    except eccodes.CodesInternalError:
        return default


def header(handle: Any, offset: int, length: int, part: int) -> Message | None:
    """Return what one header says, None if its field is not ours."""
    name, level_type = known(handle, "shortName", ""), known(handle, "typeOfLevel", "")
    short = name.removeprefix(AVERAGED)
    kind = OTHERS.get(short, "")
    if short in COMPONENTS:
        kind = (GRID if known(handle, "uvRelativeToGrid", 0) else EARTH)[COMPONENTS[short]]
    if not kind or (kind == "orography" and not at_ground(handle, level_type)):
        return None
    if kind in SCALARS and not near_ground(handle, level_type, kind):
        return None
    height_m, pressure_hpa, level = level_of(handle, short, level_type)
    time, lead_h = moments(handle)
    number = known(handle, "number")
    return Message(
        offset=offset,
        length=length,
        part=part,
        kind=kind,
        height_m=height_m,
        pressure_hpa=pressure_hpa,
        level="" if kind in ("land_mask", "orography", *SCALARS) else level,
        time=time,
        lead_h=lead_h,
        member=None if number is None else int(number),
        units=known(handle, "units", ""),
        shape=(int(known(handle, "Ny", 0)), int(known(handle, "Nx", 0))),
        geometry=tuple(known(handle, key) for key in GEOMETRY),
        fault=fault_of(handle),
        is_mean=short != name or known(handle, "stepType") == "avg",
    )


def at_ground(handle: Any, level_type: str) -> bool:
    """Tell a field of the ground; HARMONIE says so by a height of 0 m."""
    flat = level_type == "heightAboveGround" and known(handle, "level", 1) == 0
    return flat or level_type == "surface"


def near_ground(handle: Any, level_type: str, kind: str) -> bool:
    """Tell a temperature at 2 m, a pressure or a roughness of the ground from those aloft."""
    if kind == "air_temperature":
        return level_type == "heightAboveGround" and known(handle, "level", 0) == 2
    return at_ground(handle, level_type)


def level_of(handle: Any, short: str, level_type: str) -> tuple[float | None, float | None, str]:
    """Return the height in m, the pressure in hPa, or the name of another kind of level."""
    named = re.match(r"\d+", short)  # 10u is at 10 m even where its level does not say so
    if named:
        return float(named.group()), None, ""
    level = float(known(handle, "level", 0) or 0)
    if level_type == "heightAboveGround":
        return level, None, ""
    if level_type == "isobaricInhPa":
        return None, level, ""
    if level_type == "isobaricInPa":
        return None, level / 100, ""
    ends = [known(handle, key) for key in ("topLevel", "bottomLevel")]
    if None not in ends and ends[0] != ends[1]:
        return None, None, f"{level_type} {ends[0]:g}-{ends[1]:g}"
    return None, None, f"{level_type} {level:g}"


def moments(handle: Any) -> tuple[np.datetime64, float | None]:
    """Return for when a field is valid, NaT without a date, and the hours since its start."""
    unit = known(handle, "indicatorOfUnitOfTimeRange", 1)
    raw = known(handle, "forecastTime", known(handle, "P1", 0)) or 0
    units = HOURS | (QUARTERS if known(handle, "edition") == 1 else SECONDS)
    # A unit of no table ends ecCodes by a division by zero, or sends it counting days.
    if unit not in units or abs(float(raw) * units[unit]) > LONGEST_H:
        return np.datetime64("NaT", "ns"), None
    date = f"{known(handle, 'validityDate', 0):08d}"
    clock = f"{known(handle, 'validityTime', 0):04d}"
    try:
        text = f"{date[:4]}-{date[4:6]}-{date[6:]}T{clock[:2]}:{clock[2:]}"
        valid = np.datetime64(text, "ns")
        begun = known(handle, "dataDate", 0), known(handle, "dataTime", 0)
        day = f"{begun[0]:08d}"
        start = np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}", "ns")
        start += np.timedelta64(60 * (begun[1] // 100) + begun[1] % 100, "m")
    except ValueError:
        return np.datetime64("NaT", "ns"), None
    return valid, float((valid - start) / np.timedelta64(1, "h"))


def fault_of(handle: Any) -> str:
    """Return why a field is no wind on rows and columns, or nothing."""
    said = NO_WIND.get(str(known(handle, "dataType", ""))) or DERIVED.get(
        known(handle, "derivedForecast", -1)
    )
    if said:
        return f"{said}, no wind"
    if known(handle, "probabilityType") is not None:
        return "a probability, no wind"
    if (over := known(handle, "stepType")) in EXTREMES:
        return f"of step type {over}, no wind"
    grid = str(known(handle, "gridType", ""))
    if grid.startswith("reduced"):
        return f"on {REDUCED} ({grid})"
    if grid in GRIDLESS:
        return f"in {GRIDLESS[grid]} ({grid})"
    if grid.endswith("gg"):
        lines, rows = int(known(handle, "N", 0)), int(known(handle, "Ny", 0))
        ends = [known(handle, f"latitudeOf{end}GridPointInDegrees", 0) for end in ("First", "Last")]
        if not 0 < lines <= FINEST or rows > 2 * lines or max(map(abs, ends)) > 90:
            return (
                f"on a Gaussian grid that cannot be: {lines} lines to the equator, {rows} rows, "
                f"from {ends[0]:g} to {ends[1]:g} degrees"
            )
    if not 0 < int(known(handle, "Nx", 0)) < 2**31 - 1:
        return f"on a grid that is not read ({grid or 'unknown'})"
    return ""
