"""When fields are: dates of any calendar, or hours; in order, or refused."""

import re
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Shaped

from sciml._arguments import check_number
from sciml._units import TIME, size_of

ZONE, UTC = re.compile(r"since .*\d ?([A-Za-z]+)$"), ("z", "utc", "ut", "gmt")
UNCOUNTED = 1800  # assumed: numbers of no unit that begin here or later are no hours from a start
ROUNDED_H = 1e-6  # assumed: files round times by less
LONGEST_H = 1e7  # assumed: larger numbers are seconds, or dates as 20200101

Times = Shaped[np.ndarray, " time"]


def in_hours(time: xr.DataArray, origin: str) -> tuple[np.ndarray, dict[str, str]]:
    """Return the times of a file and their attributes: dates, and plain numbers in hours."""
    if str(time.name).lower() == "month":
        return time.values, dict(time.attrs)
    values = moments(time, f"{time.name} of {origin}")
    zone = ZONE.search(stated := str(time.encoding.get("units", "")))
    if zone and zone[1].lower() not in UTC:
        raise ValueError(
            f"the unit of {time.name} of {origin} is {stated!r}, and {zone[1]} is left out where "
            "dates are made of it: write the zone as a shift, as +01:00, or as UTC"
        )
    unit = {"units": "h"} if values.dtype.kind == "f" else {}
    return values, dict(time.attrs) | unit


def moments(time: xr.DataArray, name: str = "time") -> Times:
    """Return times as dates, or numbers in hours; refuse text and numbers of which nothing tells.

    Dates with a zone are given in UTC.
    """
    values = time.values
    kind = values.dtype.kind
    if not values.ndim:
        raise ValueError(f"{name} is a single {values} and no axis: use .expand_dims('time')")
    if kind in "iuf":
        return hours_of(time, name)
    if lacking := np.flatnonzero(np.ravel(time.isnull().values)).tolist():
        said = np.ravel(values)[lacking[0]]
        raise ValueError(
            f"{name}: time {lacking[0]} is no date ({said}): drop it, or correct the file"
        )
    if kind == "O":
        return dates_of(values, name)
    if kind in "SU":
        refuse_text(values, name)
    if kind not in "Mm":
        raise ValueError(
            f"{name} holds {np.ravel(values)[0]!r}, of type {values.dtype}: make dates of it, by "
            ".assign_coords(time=…)"
        )
    return values


def refuse_text(values: np.ndarray, name: str) -> None:
    """Refuse times that are written out."""
    raise ValueError(
        f"{name} holds {str(np.ravel(values)[0])!r:.30}, which is text: make dates of it, by "
        f".assign_coords({name.split(' ')[0]}=pandas.to_datetime(…))"
    )


def dates_of(values: np.ndarray, name: str) -> Times:
    """Return dates that are objects, of one calendar; those with a zone in UTC."""
    several: list[Any] = list(np.ravel(values))
    if any(isinstance(one, str | bytes) for one in several):
        refuse_text(values, name)
    kinds = {str(getattr(one, "calendar", type(one).__name__)) for one in several}
    try:
        steps = {type(one - several[0]) for one in several}
        if len(kinds) > 1 or not all(getattr(step, "total_seconds", None) for step in steps):
            raise TypeError(f"they are of {', '.join(sorted(kinds))}")
    except TypeError as error:
        raise ValueError(
            f"{name} holds {several[0]!s:.40}, and no dates of one calendar ({error}): make such "
            "of it, by .assign_coords(time=…)"
        ) from error
    if getattr(several[0], "tzinfo", None) is not None:
        utc = pd.to_datetime(several, utc=True).tz_localize(None)
        return np.asarray(utc.values).reshape(values.shape)
    return values


def hours_of(time: xr.DataArray, name: str) -> Float[np.ndarray, " time"]:
    """Return numbers in hours: by their unit, or, of none, if they are counted from a start."""
    values, unit = time.values.astype(np.float64), str(time.attrs.get("units", "")).strip()
    if (wrong := ~np.isfinite(values)).any():
        at = int(wrong.argmax())
        raise ValueError(
            f"{name}: time {at} is no number ({values[at]}): drop it, or correct the file"
        )
    bare = unit in ("", "1")
    if bare and values.size and not (values.min() < UNCOUNTED and values.max() < LONGEST_H):
        raise ValueError(
            f"{name} begins at {values[0]:.12g} of no unit, and may be a date: make dates of it, "
            f"by .assign_coords({name.split(' ')[0]}=pandas.to_datetime(…)), or set its "
            ".attrs['units'], as hours"
        )
    if (seconds := size_of("h" if bare else unit, TIME)) is None:
        said = "write it as 'hours since 2020-01-01', as `cdo -r copy` does"
        said = "make them by xarray.decode_cf" if " since " in unit else said
        raise ValueError(f"the unit of {name} is {unit!r}, of which no date is made: {said}")
    return values * (seconds / 3600)


def lengths_h(lengths: np.ndarray) -> Float[np.ndarray, "..."]:
    """Return lengths of time in hours; plain numbers are hours."""
    if lengths.dtype == object:  # cftime
        return np.array([one.total_seconds() for one in lengths], np.float64) / 3600
    if lengths.dtype.kind == "m":
        return lengths / np.timedelta64(1, "s") / 3600
    return lengths.astype(np.float64)


def hours(stamps: Times) -> Float[np.ndarray, " step"]:
    """Return the hours between consecutive times of any calendar."""
    return lengths_h(np.diff(stamps))


def since(stamps: Times, start: Any) -> Float[np.ndarray, " time"]:
    """Return hours from a start, in any calendar."""
    return lengths_h(stamps - start)


def steps_h(stamps: Times) -> Float[np.ndarray, " step"]:
    """Return the hours between consecutive times; refuse one that is not after the one before."""
    steps = hours(stamps)
    if (steps <= 0).any():
        at = int((steps <= 0).argmax()) + 1
        raise ValueError(
            f"time {stamps[at]}, at index {at}, is not later than {stamps[at - 1]} before it; "
            "times must increase: use .sortby('time') and .drop_duplicates('time')"
        )
    return steps


def refuse_twice(stamps: Times, name: str) -> None:
    """Refuse times, in any order, of which one is there twice."""
    ordered = np.sort(stamps)
    if (again := np.flatnonzero(hours(ordered) == 0)).size:
        raise ValueError(
            f"{name} has time {ordered[again[0]]} twice, as where forecasts overlap, and nothing "
            "tells which to take: keep one of each"
        )


def check_tolerance(tolerance_h: float) -> float:
    """Return how many hours apart times may be that count as one, which must be 0 or more."""
    check_number(tolerance_h=tolerance_h)
    if tolerance_h < 0 or not np.isfinite(tolerance_h):
        raise ValueError(f"tolerance_h is {tolerance_h}; it must be at least 0")
    return tolerance_h


def refuse_other_calendar(one: np.ndarray, other: np.ndarray, of_one: str, of_other: str) -> None:
    """Refuse times that cannot be compared: of other calendars, or dates and mere hours."""
    kinds = [(times.dtype.kind, getattr(times[0], "calendar", "")) for times in (one, other)]
    if kinds[0] != kinds[1]:
        names = [
            calendar or str(times.dtype)
            for (_, calendar), times in zip(kinds, (one, other), strict=True)
        ]
        raise ValueError(
            f"the calendars of {of_one} and {of_other} differ ({names[0]}, {names[1]}): convert "
            "one by xarray's convert_calendar, or give dates to mere numbers"
        )
