"""Which parts of which files a wind net learns from, kept apart so that none has seen another's."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.downscale.apply import turn_of
from sciml.wind.cf.names import components_in
from sciml.wind.cf.times import hours
from sciml.wind.prepare.channels import channels
from sciml.wind.prepare.matching import fit_correction, matched
from sciml.wind.prepare.split import decorrelation_h, split, stripes
from sciml.wind.read.covariates import open_statics, with_statics
from sciml.wind.read.reader import open as open_wind

log = logging.getLogger(__name__)

PARTS = ("train", "validation", "test")
TARGETS = ("speed", "components", "vector")
STRIPE, STRIPES = 128, 13  # columns of a stripe, and how many the numbers below ask for
VALIDATION, TEST = (2, 7), (3, 8, 12)  # numbers of stripes, counted from the west
GAP = 32  # columns between parts of one time: of measured winds the gap of `stripes`

Ranges = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class OneOfSeveral:
    """Which wind is read of files that hold several, as `sciml.wind.open` takes it.

    Args:
        height_m: which of several heights.
        pressure_hpa: which of several pressure levels.
        model_level: of WRF output.
        level: of GRIB files, another kind of level.
        variable: the wind's names in the files.
        member: of an ensemble.
        lead_h: of forecasts from several starts.
        first_row: "south" or "north", of files whose coordinates do not tell.
    """

    height_m: float | None = None
    pressure_hpa: float | None = None
    model_level: int | None = None
    level: str | None = None
    variable: str | list[str] | None = None
    member: int | str | None = None
    lead_h: float | None = None
    first_row: str | None = None


@dataclass(frozen=True)
class Coarse(OneOfSeveral):
    """Files of a coarse model that holds the weather of a fine source.

    Args:
        path: a file, a Zarr group, or several of one grid; any grid that covers the fine one.
        tolerance_h: how many hours apart times may be that count as one.
        strict: refuse what hardly agrees with the fine wind, as `sciml.wind.matched` does.
    """

    path: str | list[str]
    tolerance_h: float = 0.0
    strict: bool = True


@dataclass(frozen=True)
class Source(OneOfSeveral):
    """Files of one grid and how they are divided.

    Exactly one of: `part`, all of it is training, validation or test; `split`, "times" divides it
    in time with a measured gap, "stripes" divides each time into columns; `times` and `columns`
    give [first, last] of each part, dates or numbers of columns (last excluded).

    Args:
        path: a file, a Zarr group, or several of one grid.
        part: the one part that all of it belongs to.
        split: "times" or "stripes".
        times: part → [first, last] date, both included.
        columns: part → [first, last] column.
        width: columns of a stripe; without it a thirteenth of all, but at least 96, or a quarter
            of all if that is less (above 64), and at most 128.
        statics: a file with land mask and orography, brought to the points.
        coarse: a coarse model's files, of which the net learns to make this fine wind; without
            them it learns from block means.

    Raises:
        ValueError: none or several ways of dividing, or an unknown part.
    """

    path: str | list[str]
    part: str | None = None
    split: str | None = None
    times: Ranges | None = None
    columns: Ranges | None = None
    width: int | None = None
    statics: str | None = None
    coarse: Coarse | None = None

    def __post_init__(self):
        """Check that there is one way of dividing, of known parts."""
        ways = [n for n in ("part", "split", "times", "columns") if getattr(self, n) is not None]
        if len(ways) != 1:
            raise ValueError(
                f"{self.path} is divided by {' and '.join(ways) or 'nothing'}; give one of part, "
                "split, times, columns"
            )
        if self.split not in (None, "times", "stripes"):
            raise ValueError(f"split is {self.split!r}; it must be 'times' or 'stripes'")
        if self.width is not None and (self.split != "stripes" or self.width <= GAP):
            raise ValueError(
                f"width is {self.width}; it goes with split: stripes, and must be above the "
                f"{GAP} columns that are left out between parts"
            )
        named = [self.part] if self.part else [*(self.times or self.columns or {})]
        for name in named:
            if name not in PARTS:
                raise ValueError(f"{self.path} has a part {name!r}; parts are {', '.join(PARTS)}")


def names_of(target: str, winds: xr.Dataset) -> tuple[str, ...]:
    """Return the variables that a target stands for; of a vector, what components there are."""
    if target not in TARGETS:
        raise ValueError(f"target is {target!r}; it must be one of {', '.join(TARGETS)}")
    if target == "speed":
        return ("wind_speed",)
    if there := components_in(winds):
        return there
    raise ValueError(f"{', '.join(map(str, winds.data_vars))} hold no {target} of wind")


def read(source: Source | Coarse, beside: Sequence[str] = ()) -> xr.Dataset:
    """Return the wind of files, and what is asked for beside; missing values come through."""
    choice: Any = {one.name: getattr(source, one.name) for one in fields(OneOfSeveral)}
    return open_wind(source.path, allow_missing=True, beside=beside, **choice)


def opened(source: Source, beside: Sequence[str] = ()) -> xr.Dataset:
    """Return the wind of a source, with its statics."""
    winds = read(source, beside)
    return winds if source.statics is None else with_statics(winds, open_statics(source.statics))


def divided(source: Source, winds: xr.Dataset) -> dict[str, list[xr.Dataset]]:
    """Return the parts of a source."""
    if source.part is not None:
        return {source.part: [winds]}
    if source.split == "times":
        parts = split(wind_of(winds)).parts
        return {name: [winds.isel(time=rows)] for name, rows in parts.items()}
    if source.split == "stripes":
        cut = apart_at_seam(cut_to(winds.sizes["x"], source), turn_of(winds))
        return {name: [winds.isel(x=s) for s in slices] for name, slices in cut.items()}
    if source.times is not None:
        return by_dates(source.times, winds)
    assert source.columns is not None
    return by_columns(source.columns, winds)


def cut_to(columns: int, source: Source) -> dict[str, list[slice]]:
    """Return the columns of each part of a field of any width."""
    few = min(3 * GAP, columns // 4)  # of a narrow field: four stripes, as wide as can be
    width = source.width or min(STRIPE, max(columns // STRIPES, few))
    least = GAP if source.width else 2 * GAP  # half of a narrower one would be left out
    count = columns // width if width > least else 0
    if count <= max(VALIDATION[0], TEST[0]):
        narrow = columns // 4 <= GAP
        remedy = "" if narrow else f", or name a width between {GAP} and {columns // 4}"
        raise ValueError(
            f"{source.path} has {columns} columns: {count} stripes of {width}, of which {GAP} are "
            "left out between parts; three parts need four stripes: divide it by times or "
            f"columns{remedy}"
        )
    validation, test = ([n for n in part if n < count] for part in (VALIDATION, TEST))
    return stripes(columns, width, GAP, validation=validation, test=test)


def apart_at_seam(cut: dict[str, list[slice]], turn: int) -> dict[str, list[slice]]:
    """Return columns of parts of a grid that goes round, less those at its end that meet others.

    There the last columns are neighbours of the first.
    """
    ends = [(one, part) for part, slices in cut.items() for one in slices]
    (west, first), (east, last) = (pick(ends, key=lambda one: one[0].start) for pick in (min, max))
    excess = GAP - (west.start + turn - east.stop)
    if not turn or first == last or excess <= 0:
        return cut
    if (rest := slice(east.start, east.stop - excess)).stop <= rest.start:
        raise ValueError(
            f"columns {east.start} to {east.stop} of {last} are next to {first}: the grid goes "
            f"round, and {GAP} must lie between: name a larger width"
        )
    log.info("the grid goes round: %d last columns of %s are next to %s", excess, last, first)
    return cut | {last: [rest if one is east else one for one in cut[last]]}


def wind_of(winds: xr.Dataset) -> xr.DataArray:
    """Return the field by which the duration of weather is measured."""
    return winds["wind_speed"] if "wind_speed" in winds else winds[next(iter(winds.data_vars))]


def by_dates(ranges: Ranges, winds: xr.Dataset) -> dict[str, list[xr.Dataset]]:
    """Return parts between dates, if the gaps are as long as the weather lasts."""
    ends = {name: pair(name, given) for name, given in ranges.items()}
    as_time = number if winds["time"].dtype.kind in "iuf" else str
    parts = {name: winds.sel(time=slice(*map(as_time, end))) for name, end in ends.items()}
    for name, part in parts.items():
        if not part.sizes["time"]:
            raise ValueError(
                f"no time lies in {name}: {ends[name]}; the record runs from "
                f"{winds.time.values[0]} to {winds.time.values[-1]}"
            )
    ordered = sorted(parts.items(), key=lambda one: one[1].time.values[0])
    lasts = decorrelation_h(wind_of(winds)) if winds.sizes["time"] > 2 else None
    for (one, before), (other, after) in pairwise(ordered):
        gap = float(hours(np.array([before.time.values[-1], after.time.values[0]]))[0])
        if gap <= 0 or (lasts is not None and gap < lasts):
            raise ValueError(
                f"{one} and {other} are {gap:g} h apart but the weather lasts {lasts or 0:g} h: "
                "what is learned in one is known in the other; leave that much out between them"
            )
    return {name: [part] for name, part in parts.items()}


def number(given: Any) -> float:
    """Return an end of a part of a record that counts hours."""
    try:
        return float(str(given))
    except ValueError as error:
        raise ValueError(
            f"times has {given}, and the record has no dates but numbers: name hours, as [0, 12]"
        ) from error


def by_columns(ranges: Ranges, winds: xr.Dataset) -> dict[str, list[xr.Dataset]]:
    """Return parts between columns, if enough columns lie between them."""
    ends = {name: pair(name, given) for name, given in ranges.items()}
    ordered = sorted(ends.items(), key=lambda one: one[1][0])
    for name, (first, last) in ordered:
        if not 0 <= int(first) < int(last) <= winds.sizes["x"]:
            raise ValueError(
                f"columns of {name} are {first} to {last}; they must ascend within 0 to "
                f"{winds.sizes['x']}"
            )
    if (turn := turn_of(winds)) and len(ordered) > 1:  # the last are neighbours of the first
        name, (first, last) = ordered[0]
        ordered.append((name, (int(first) + turn, int(last) + turn)))
    for (one, before), (other, after) in pairwise(ordered):
        if int(after[0]) - int(before[1]) < GAP:
            raise ValueError(
                f"{one} ends at column {before[1]} and {other} begins at {after[0]}"
                f"{f', {turn} being once round' if turn else ''}; at least "
                f"{GAP} columns must lie between: what is learned in one is known in the other"
            )
    return {name: [winds.isel(x=slice(int(a), int(b)))] for name, (a, b) in ends.items()}


def pair(name: str, given: Any) -> tuple[Any, Any]:
    """Return [first, last] of a part."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError(f"{name} is {given!r}; it must be [first, last]")
    return given[0], given[1]


def collected(
    sources: list[Source],
    target: str,
    statics: tuple[str, ...] = (),
    beside: tuple[str, ...] = (),
    *,
    factor: int = 4,
    correct: bool = True,
) -> dict[str, list[Any]]:
    """Return the fields of each part over all sources; no file may be in two of them.

    Where sources have a coarse model's wind beside them these are pairs, and, with `correct`, that
    wind is corrected as the training parts ask for. Names and `target` are those of `Settings`.
    """
    check_twice(sources)
    paired = [source.coarse is not None for source in sources]
    if any(paired) and not all(paired):
        lone = sources[paired.index(False)].path
        raise ValueError(f"{lone} has no coarse: give one to every source, or to none")
    result: dict[str, list[Any]] = {name: [] for name in PARTS}
    for source in sources:
        winds = opened(source, () if any(paired) else beside)
        names = names_of(target, winds)
        near = None if source.coarse is None else read(source.coarse, beside)
        for part, pieces in divided(source, winds).items():
            result[part] += [
                channels(piece, names, statics, beside)
                if near is None or source.coarse is None
                else matched(
                    near,
                    piece,
                    factor,
                    names,
                    statics,
                    beside,
                    tolerance_h=source.coarse.tolerance_h,
                    strict=source.coarse.strict,
                )
                for piece in pieces
            ]
    for part in ("train", "validation"):
        if not result[part]:
            raise ValueError(
                f"no source has a part {part!r}; give one 'part: {part}', or 'split: times'"
            )
    if any(paired) and correct:
        correction = fit_correction(*result["train"])
        log.info("coarse wind is corrected by %s", correction)
        return {name: [o.corrected_by(correction) for o in part] for name, part in result.items()}
    return result


def check_twice(sources: list[Source]) -> None:
    """Refuse a file that is named twice: its parts could not be kept apart."""
    seen: dict[Path, Any] = {}
    for source in sources:
        for path in [source.path] if isinstance(source.path, str) else source.path:
            real = Path(path).resolve()
            if real in seen:
                raise ValueError(
                    f"{path} is named twice; name it once and divide it by split, times or columns"
                )
            seen[real] = source
