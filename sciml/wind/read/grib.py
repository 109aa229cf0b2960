"""GRIB 1 and 2 by ecCodes: an index of the messages first, values when they are needed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.wind.cf.names import DEGREES, EARTH, GRID, STATICS
from sciml.wind.cf.position import coordinates

# Parameter by its short name, which ecCodes gives for editions 1 and 2 and for local tables.
COMPONENTS = {f"{height}{c}": i for height in ("", 10, 100, 200) for i, c in enumerate("uv")}
OTHERS = {
    **dict.fromkeys(("ws", "10si", "100si"), "wind_speed"),
    **dict.fromkeys(("wdir", "10wdir"), "wind_from_direction"),
    "lsm": "land_mask",
    **dict.fromkeys(("orog", "h"), "orography"),
}
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


@dataclass(frozen=True)
class Message:
    """One field of a GRIB file: where it is, and what its header says."""

    offset: int
    kind: str
    height_m: float | None
    pressure_hpa: float | None
    time: np.datetime64
    units: str
    shape: tuple[int, int]  # points along y and x
    geometry: tuple[Any, ...]


def open_grib(path: Path) -> xr.Dataset:
    """Return winds and statics of a GRIB file by our names, values read message by message.

    Wind at several heights, other fields and both editions may stand in one file. Components are
    along the grid's axes where the header says so (uvRelativeToGrid), else eastward and northward.
    """
    messages = index(path)
    if not messages:
        raise ValueError(f"{path} holds no wind, land mask or orography")
    geometries = {message.geometry for message in messages}
    if len(geometries) > 1:
        raise ValueError(
            f"{path} holds {len(geometries)} grids: "
            f"{', '.join(' '.join(map(str, g[:3])) for g in sorted(geometries, key=str))}; "
            "split it, one grid a file"
        )
    groups: dict[tuple[str, float | None, bool], list[Message]] = {}
    for message in messages:
        aloft = message.pressure_hpa is not None
        groups.setdefault((message.kind, message.height_m, aloft), []).append(message)
    fields = {}
    for (kind, height_m, aloft), members in groups.items():
        where = "_aloft" if aloft else "" if height_m is None else f"_{height_m:g}m"
        fields[kind + where] = stacked(path, members)
    return xr.Dataset(fields, coords=geography(path, messages[0]))


def index(path: Path) -> list[Message]:
    """Return the messages of a file that are ours; only headers are read."""
    import eccodes

    found: list[Message] = []
    size, end = path.stat().st_size, 0
    with path.open("rb") as stream:
        while True:
            try:
                handle = eccodes.codes_grib_new_from_file(stream, headers_only=True)
            except eccodes.CodesInternalError as error:
                raise ValueError(
                    f"{path} ends inside a message: message {len(found)} after byte {end} of "
                    f"{size} ({error}); fetch it again"
                ) from error
            if handle is None:
                break
            try:
                offset = int(get(handle, "offset"))
                end = offset + int(get(handle, "totalLength"))
                if end > size:
                    raise ValueError(
                        f"{path} ends inside the message at byte {offset}: it says to end at "
                        f"{end}, the file has {size} bytes; fetch it again"
                    )
                message = header(handle, offset)
            finally:
                eccodes.codes_release(handle)
            if message is not None:
                found.append(message)
    return found


@contextmanager
def opened(path: Path, message: Message) -> Iterator[Any]:
    """Yield the handle of one message, with its values."""
    import eccodes

    with path.open("rb") as stream:
        stream.seek(message.offset)
        handle = eccodes.codes_grib_new_from_file(stream)
    try:
        yield handle
    finally:
        eccodes.codes_release(handle)


def get(handle: Any, key: str) -> Any:
    """Return one value of a header."""
    import eccodes

    return eccodes.codes_get(handle, key)


def plane(handle: Any, key: str, shape: tuple[int, int]) -> Float[np.ndarray, "y x"]:
    """Return one array of a message on (y, x), as its scanning mode laid its points out."""
    import eccodes

    points: Any = eccodes.codes_get_array(handle, key)
    if points.size != shape[0] * shape[1]:
        raise ValueError(f"a message has {points.size} points, not {shape[0]} × {shape[1]}")
    if get(handle, "jPointsAreConsecutive"):
        return points.reshape(shape[::-1]).T
    found = points.reshape(shape)
    if get(handle, "alternativeRowScanning"):
        found = found.copy()
        found[1::2] = found[1::2, ::-1]
    return found


def header(handle: Any, offset: int) -> Message | None:
    """Return what one header says, None if its field is not ours."""
    short = get(handle, "shortName")
    level_type = get(handle, "typeOfLevel")
    kind = OTHERS.get(short, "")
    if short in COMPONENTS:
        kind = (GRID if get(handle, "uvRelativeToGrid") else EARTH)[COMPONENTS[short]]
    if not kind or (kind == "orography" and level_type != "surface"):
        return None
    level = float(get(handle, "level"))
    named = re.match(r"\d+", short)  # 10u is at 10 m even where its level does not say so
    height = float(named.group()) if named else None
    height = level if level_type == "heightAboveGround" else height
    return Message(
        offset=offset,
        kind=kind,
        height_m=None if kind in STATICS else height,
        pressure_hpa=level if level_type == "isobaricInhPa" else None,
        time=valid_time(handle),
        units=get(handle, "units"),
        shape=(int(get(handle, "Ny")), int(get(handle, "Nx"))),
        geometry=tuple(get(handle, key) for key in GEOMETRY),
    )


def valid_time(handle: Any) -> np.datetime64:
    """Return for when a field is valid; NaT where the header's date is none."""
    date = f"{get(handle, 'validityDate'):08d}"
    clock = f"{get(handle, 'validityTime'):04d}"
    try:
        return np.datetime64(f"{date[:4]}-{date[4:6]}-{date[6:]}T{clock[:2]}:{clock[2:]}", "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")


def stacked(path: Path, messages: list[Message]) -> xr.DataArray:
    """Return the messages of one kind and height as (time, [pressure], y, x), lazily."""
    import dask.array
    from dask.delayed import delayed

    times = sorted({m.time for m in messages})
    levels = sorted({m.pressure_hpa for m in messages if m.pressure_hpa is not None})
    place = {(m.time, m.pressure_hpa): m for m in messages}
    if len(place) != len(messages) or len(place) != len(times) * max(1, len(levels)):
        raise ValueError(
            f"{path} has {len(messages)} messages of {messages[0].kind} for {len(times)} times and "
            f"{max(1, len(levels))} levels; each must be there once: split the file"
        )

    def later(time: np.datetime64, level: float | None) -> Any:
        one = delayed(partial(values, path, place[time, level]))()
        return dask.array.from_delayed(one, messages[0].shape, np.float32, name=None)

    stack = dask.array.stack
    read = stack([stack([later(time, level) for level in levels or [None]]) for time in times])
    kind = messages[0].kind
    attrs: dict[str, Any] = {"standard_name": kind, "units": messages[0].units}
    coords: dict[str, Any] = {"time": np.array(times)}
    if levels:
        coords["pressure"] = ("pressure", levels, {"units": "hPa"})
        return xr.DataArray(read, dims=("time", "pressure", "y", "x"), coords=coords, attrs=attrs)
    if messages[0].height_m is not None:
        attrs["height_m"] = messages[0].height_m
    field = xr.DataArray(read[:, 0], dims=("time", "y", "x"), coords=coords, attrs=attrs)
    return field.isel(time=0, drop=True) if kind in STATICS else field


def values(path: Path, message: Message) -> Float[np.ndarray, "y x"]:
    """Read one message; missing points are NaN."""
    import eccodes

    with opened(path, message) as handle:
        if get(handle, "bitmapPresent"):
            eccodes.codes_set(handle, "missingValue", 1e30)
        read = plane(handle, "values", message.shape)
    return np.where(read > 9e29, np.nan, read).astype(np.float32)


def geography(path: Path, message: Message) -> dict[str, Any]:
    """Return latitude and longitude by ecCodes, and where the grid is a map its distances."""
    import eccodes

    with opened(path, message) as handle:
        latitude, longitude = (plane(handle, f"{name}s", message.shape) for name in DEGREES)
        regular = get(handle, "gridType") == "regular_ll"
        steps = {
            axis: get(handle, key)
            for axis, key in (("x", "DxInMetres"), ("y", "DyInMetres"))
            if eccodes.codes_is_defined(handle, key) and not regular
        }
    attrs = {"units": "m", "long_name": "distance on the map from the first point"}
    distances = {
        axis: (axis, steps[axis] * np.arange(n), attrs)
        for axis, n in zip(("y", "x"), latitude.shape, strict=True)
        if axis in steps
    }
    return distances | coordinates(latitude, longitude, straight=regular)
