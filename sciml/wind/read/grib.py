"""GRIB 1 and 2 by ecCodes: an index of the messages first, values when they are needed."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.wind.cf.changes import changed
from sciml.wind.cf.components import MEAN
from sciml.wind.cf.level import Level
from sciml.wind.cf.names import DEGREES, SCALARS, STATICS
from sciml.wind.cf.position import MAP, coordinates
from sciml.wind.read.grib_map import grid_mapping
from sciml.wind.read.messages import Message, get, index, opened

REGRID = "bring it to a latitude–longitude grid first, as `cdo remapbil` or `grib_interpolate` does"


def open_grib(path: Path, level: Level | None = None) -> xr.Dataset:
    """Return winds and statics of a GRIB file by our names, values read message by message.

    What is wanted is chosen first, by headers alone, so that other fields of the file, on other
    levels or grids, change nothing. Components are along the grid's axes where the header says so
    (uvRelativeToGrid), else eastward and northward.
    """
    level = Level() if level is None else level
    messages = [m for m in index(path) if m.kind not in SCALARS or m.kind in level.beside]
    if not messages:
        raise ValueError(f"{path} holds no wind, land mask or orography")
    chosen, left_out = of_moments(readable(path, wanted(path, messages, level)))
    messages, said = without_repetitions(path, chosen)
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
        height_m = None if message.kind in (*STATICS, *SCALARS) else message.height_m
        groups.setdefault((message.kind, height_m, aloft), []).append(message)
    fields = {}
    for (kind, height_m, aloft), members in groups.items():
        where = "_aloft" if aloft else "" if height_m is None else f"_{height_m:g}m"
        fields[kind + where] = stacked(path, members)
    found = xr.Dataset(fields, coords=geography(path, messages[0]))
    found = found if level.lead_h is None else found.assign_attrs(lead_h=level.lead_h)
    return changed(found, *said, *left_out)


def of_moments(messages: list[Message]) -> tuple[list[Message], list[str]]:
    """Return messages without the means over time of what is there at moments as well."""

    def where(m: Message) -> tuple[Any, ...]:
        return m.kind, m.height_m, m.pressure_hpa, m.level

    there = {where(m) for m in messages if not m.is_mean}
    kept = [m for m in messages if not m.is_mean or where(m) not in there]
    lost = len(messages) - len(kept)
    return kept, [f"{lost} means over time left out"] if lost else []


def wanted(path: Path, messages: list[Message], level: Level) -> list[Message]:
    """Return the messages of the level, the member and the lead that are asked for.

    Without a choice those on heights and pressures are taken, of a file that has some; else those
    of the one other kind of level that there is.
    """
    ground = [m for m in messages if m.kind in STATICS or m.kind in level.beside]
    winds = [m for m in messages if m.kind not in (*STATICS, *SCALARS)]
    for name in ("member", "lead_h"):
        asked = getattr(level, name)
        if asked is not None and winds:
            there = sorted({v for m in winds if (v := getattr(m, name)) is not None})
            winds = [m for m in winds if getattr(m, name) == asked]
            if not winds:
                has = ", ".join(f"{v:g}" for v in there) or "none"
                said = asked if isinstance(asked, str) else f"{asked:g}"
                raise ValueError(f"{path} has no {name}={said}; it has {has}: name one of them")
    if level.level is not None:
        labels = sorted({m.level for m in winds if m.level})
        chosen = [x for x in labels if level.level in (x, x.split()[0])]
        if len(chosen) != 1:
            raise ValueError(
                f"level is {level.level!r}; {path} has {', '.join(map(repr, labels)) or 'none'} "
                "beside heights and pressures: name one of them"
            )
        return [m for m in winds if m.level == chosen[0]] + ground
    plain = [m for m in winds if not m.level]
    if level.height_m is not None:
        plain = [m for m in plain if m.height_m is not None] or plain
    if level.pressure_hpa is not None:
        plain = [m for m in plain if m.pressure_hpa is not None] or plain
    if plain:
        return plain + ground
    labels = sorted({m.level for m in winds})
    if len(labels) > 1:
        raise ValueError(
            f"{path} has wind on {', '.join(map(repr, labels))}; name one of them: "
            f"open(path, level={labels[0]!r}), or --level on the command line"
        )
    return winds + ground


def readable(path: Path, messages: list[Message]) -> list[Message]:
    """Return the messages whose values can be had, or refuse what is wanted and cannot."""
    good = [m for m in messages if not m.fault]
    winds = [m for m in good if m.kind not in STATICS]
    bad = [m for m in messages if m.fault and m.kind not in STATICS]
    if bad and not winds:
        remedy = "name another file" if "no wind" in bad[0].fault else REGRID
        raise ValueError(f"the {bad[0].kind} of {path} is {bad[0].fault}: {remedy}")
    return good


def without_repetitions(path: Path, messages: list[Message]) -> tuple[list[Message], list[str]]:
    """Return messages each once: those that are there twice, byte by byte, are read once."""
    found: dict[Any, Message] = {}
    twice = 0
    with path.open("rb") as stream:

        def content(message: Message) -> bytes:
            stream.seek(message.offset)
            return stream.read(message.length)

        for m in messages:
            key = (m.kind, m.height_m, m.pressure_hpa, m.level, m.time, m.lead_h, m.member)
            if key in found and not (m.part or found[key].part):
                same = content(m) == content(found[key])
                twice += same
                key = key if same else (*key, m.offset)
            elif key in found:
                key = (*key, m.offset, m.part)
            found.setdefault(key, m)
    return list(found.values()), [f"{twice} repeated messages read once"] if twice else []


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


def stacked(path: Path, messages: list[Message]) -> xr.DataArray:
    """Return the messages of one kind and height as (time, [member], [pressure], y, x), lazily."""
    import dask.array
    from dask.delayed import delayed

    kind = messages[0].kind
    if kind in STATICS:  # the same at all times
        messages = [min(messages, key=lambda m: (m.time, m.member or 0))]
    times = sorted({m.time for m in messages})
    members = sorted({m.member for m in messages if m.member is not None})
    alone = sum(m.member is None for m in messages)
    if members and alone:
        raise ValueError(
            f"{path} has {alone} messages of {kind} without a member and "
            f"{len(messages) - alone} of member {', '.join(map(str, members))}: name one, as "
            f"member={members[0]}, or split it"
        )
    levels = sorted({m.pressure_hpa for m in messages if m.pressure_hpa is not None})
    place = {(m.time, m.member, m.pressure_hpa): m for m in messages}
    count = len(times) * max(1, len(members)) * max(1, len(levels))
    if len(place) != len(messages) or len(place) != count:
        leads = sorted({m.lead_h for m in messages if m.lead_h is not None})
        raise ValueError(
            f"{path} has {len(messages)} messages of {kind} for {len(times)} times, "
            f"{max(1, len(members))} members and {max(1, len(levels))} levels; each must be there "
            f"once: name a lead, as lead_h={leads[0] if leads else 0:g}, or split the file"
        )

    def later(*key: Any) -> Any:
        one = delayed(partial(values, path, place[key]))()
        return dask.array.from_delayed(one, messages[0].shape, np.float32, name=None)

    def over(axis: list[Any], make: Any) -> Any:
        return dask.array.stack([make(value) for value in axis or [None]])

    read = over(times, lambda t: over(members, lambda m: over(levels, partial(later, t, m))))
    attrs: dict[str, Any] = {"standard_name": kind, "units": messages[0].units}
    coords: dict[str, Any] = {"time": np.array(times)}
    if members:
        coords["member"] = ("member", members)
    if levels:
        coords["pressure"] = ("pressure", levels, {"units": "hPa"})
    elif messages[0].height_m is not None and kind not in (*STATICS, *SCALARS):
        attrs["height_m"] = messages[0].height_m
    if messages[0].is_mean:
        attrs["cell_methods"] = MEAN
    if messages[0].level:
        attrs["level"] = messages[0].level
    if len(members) == 1 and kind not in STATICS:
        attrs["member"] = members[0]
    several = {"member": len(members) > 1, "pressure": bool(levels)}
    whole = xr.DataArray(read, dims=("time", "member", "pressure", "y", "x"), coords=coords)
    field = whole.isel({axis: 0 for axis, keep in several.items() if not keep}, drop=True)
    return (field.isel(time=0, drop=True) if kind in STATICS else field).assign_attrs(attrs)


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
        regular = get(handle, "gridType") in ("regular_ll", "regular_gg")
        backwards = {"x": get(handle, "iScansNegatively"), "y": not get(handle, "jScansPositively")}
        backwards = {axis for axis, scans in backwards.items() if scans}
        steps = {
            axis: get(handle, key)
            for axis, key in (("x", "DxInMetres"), ("y", "DyInMetres"))
            if eccodes.codes_is_defined(handle, key) and not regular
        }
        lines = {
            axis: steps[axis] * np.arange(n)[:: -1 if axis in backwards else 1]
            for axis, n in zip(("y", "x"), latitude.shape, strict=True)
            if axis in steps
        }
        map_ = grid_mapping(handle, latitude, longitude, **lines) if len(lines) == 2 else {}
    attrs = {"units": "m", "long_name": "distance on the map from the corner"}
    distances: dict[str, Any] = {axis: (axis, line, attrs) for axis, line in lines.items()}
    if map_:
        distances[MAP] = ((), 0, map_)
    return distances | coordinates(latitude, longitude, straight=regular)
