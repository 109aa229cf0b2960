"""Which of several winds of a file is wanted, and that what there is agrees with it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import xarray as xr

from sciml._arguments import check_number
from sciml.wind.cf.components import MEAN
from sciml.wind.cf.names import ALOFT, PAIRS, POLAR, SCALARS

log = logging.getLogger(__name__)


class Choice(TypedDict, total=False):
    """What `sciml.wind.open` may be told of a file that holds more than one wind."""

    height_m: float | None
    pressure_hpa: float | None
    model_level: int | None
    level: str | None
    variable: str | Sequence[str] | None
    member: int | str | None
    lead_h: float | None
    first_row: str | None
    beside: Sequence[str]


@dataclass(frozen=True)
class Level:
    """Which of several winds is wanted: of levels, at most one of the four.

    Without any level, 10 m is taken where a file has it among others; else all stay as an axis.

    Raises:
        ValueError: more than one level is given.

    >>> from sciml import wind
    >>> wind.Level(height_m=100.0).height_m
    100.0
    """

    height_m: float | None = None
    pressure_hpa: float | None = None
    model_level: int | None = None
    level: str | None = None
    variable: str | Sequence[str] | None = None
    member: int | str | None = None
    lead_h: float | None = None
    first_row: str | None = None
    beside: Sequence[str] = ()

    def __post_init__(self):
        levels = ("height_m", "pressure_hpa", "model_level", "level")
        given = [name for name in levels if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"the level is given by {' and '.join(given)}; give one of them")
        for name in ("height_m", "pressure_hpa", "model_level", "lead_h"):
            if getattr(self, name) is not None:
                check_number(**{name: getattr(self, name)})
        if self.variable is not None and not len(self.variable):
            raise ValueError("variable is empty; name the wind's variables, or leave it out")
        if isinstance(self.beside, str):
            raise ValueError(
                f"beside is {self.beside!r}; it must be a list: pass [{self.beside!r}]"
            )
        for name in self.beside:
            if name not in SCALARS and not ALOFT.fullmatch(name):
                raise ValueError(
                    f"beside has {name!r}; it must be one of {', '.join(SCALARS)}, or a wind at a "
                    "height, as x_wind_100m"
                )


def refuse_several_heights(winds: Mapping[str, xr.DataArray], origin: str) -> None:
    """Refuse winds of different heights, which together would make vectors of neither."""
    at = {kind: field.attrs.get("height_m") for kind, field in winds.items()}
    heights = sorted({height for height in at.values() if height is not None})
    if len(heights) > 1:
        each = ", ".join(f"{kind} at {h:g} m" for kind, h in at.items() if h is not None)
        raise ValueError(
            f"{origin} has {each}; they must be of one height: name it, as height_m={heights[0]:g}"
        )

    refuse_half_known_heights(winds, origin)


def refuse_half_known_heights(winds: Mapping[str, xr.DataArray], origin: str) -> None:
    """Refuse two halves of one vector of which only one tells at what height it is."""
    pairs = PAIRS if any({*pair} & {*winds} for pair in PAIRS) else (POLAR,)
    for pair in (each for each in pairs if {*each} <= {*winds}):
        known = {kind: winds[kind].attrs.get("height_m") for kind in pair}
        known |= {k: "several heights" for k in pair if "height" in winds[k].dims}
        silent = [kind for kind, height in known.items() if height is None]
        if len(silent) == 1:
            other = next(height for height in known.values() if height is not None)
            there = other if isinstance(other, str) else f"{other:g} m"
            raise ValueError(
                f"{silent[0]} of {origin} is at an unknown height, what belongs to it at {there}: "
                "set .attrs['height_m'] of it to where it is, or name another by variable="
            )


def refuse_other_axis(
    field: xr.DataArray, vertical: str | None, kind: str, origin: str, level: Level
) -> None:
    """Refuse a level of a sort that a field does not have."""
    has = f"levels of {vertical}" if vertical else "one level"
    for name, axis in (("height_m", "height"), ("pressure_hpa", "pressure"), ("model_level", None)):
        wanted = getattr(level, name)
        there = vertical == axis if axis else False
        if wanted is None or there or field.attrs.get(name) == wanted:
            continue
        if name == "height_m" and vertical is None:  # said below, with what there is
            continue
        raise ValueError(
            f"{kind} of {origin} has {has}, so none of {name}={wanted:g}: leave {name} out, or "
            "name another variable"
        )


def warn_of_other_level(
    one: xr.Dataset, other: xr.Dataset, names: Sequence[str], of_one: str, of_other: str
) -> None:
    """Say that winds are at another height, or a mean over time, and those beside them are not."""
    both = [name for name in names if name in one and name in other]
    for name in ("height_m", "pressure_hpa", "model_level", "level"):
        for wind in both[:1]:
            here, there = (part[wind].attrs.get(name) for part in (one, other))
            if here is not None and there is not None and here != there:
                said = "%s is at %s %s in %s and %s in %s: open one at the level of the other"
                log.warning(said, wind, name, here, of_one, there, of_other)
    for wind in both:
        is_mean = [part[wind].attrs.get("cell_methods") == MEAN for part in (one, other)]
        if is_mean[0] != is_mean[1]:
            mean, not_said = (of_one, of_other) if is_mean[0] else (of_other, of_one)
            said = "%s is a mean over time in %s (%s), and not said to be one in %s: compare alike"
            log.warning(said, wind, mean, MEAN, not_said)
            break
