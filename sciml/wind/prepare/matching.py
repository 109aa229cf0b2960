"""Two sources of one weather: a coarse model's wind and a fine one's, side by side."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from logging import INFO, WARNING
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.wind.cf.check import warn_of_uneven
from sciml.wind.cf.kinds import of_fields, of_labelled
from sciml.wind.cf.level import warn_of_other_level
from sciml.wind.cf.names import GRID, WINDS
from sciml.wind.cf.times import (
    ROUNDED_H,
    check_tolerance,
    moments,
    refuse_other_calendar,
    refuse_twice,
    since,
)
from sciml.wind.cf.units import KNOT_M_S
from sciml.wind.prepare.channels import channels
from sciml.wind.prepare.coarsen import block_mean_present, crop
from sciml.wind.prepare.correction import Correction
from sciml.wind.prepare.regrid import onto_blocks

SPACING = "spacing_m"  # the attribute that says how wide blocks are
log = logging.getLogger(__name__)

FARTHEST = 4  # cells within which a shift is looked for
# assumed: beyond these two sources are not of one weather, one place or one unit
LEAST_CORRELATION, MOST_SHIFT, MOST_BY_LAG = 0.3, 1.0, 0.05
TOLD_SHIFT = 0.25  # assumed: cells from which on it is said; half a cell is a corner for a centre
# Beyond this a wind in m/s is nearer to one in knots, the least of all other units.
LEAST_COVERED = 0.5  # assumed: of what is known of the fine wind; less is another region
MOST_RATIO = round(KNOT_M_S**-0.5, 2)

Fields = Float[np.ndarray, "time channel y_lo x_lo"]


class Agreement(NamedTuple):
    """How a coarse wind and the block means of a fine one agree, before anything is corrected.

    `shift_cells` (y, x) is how far the coarse wind must be moved, `lag` by how many of its matched
    times, for them to agree best; `bias_m_s` (coarse − fine) and `ratio` (of standard deviations)
    are of each channel; `times` counts those matched, of the fine wind, of the coarse; `covered`
    is the share of the values known of the fine blocks that the coarse wind has as well.

    >>> Agreement(0.9, (0.1, 0.0), 0, (0.5,), (1.1,), (20, 24, 48)).refuse()  # nothing is wrong
    """

    correlation: float
    shift_cells: tuple[float, float]
    lag: int
    bias_m_s: tuple[float, ...]
    ratio: tuple[float, ...]
    times: tuple[int, int, int]
    covered: float = 1.0

    def __str__(self) -> str:
        """Return it in a sentence."""
        both, fine, coarse = self.times
        bias, ratio = (", ".join(f"{n:.2f}" for n in one) for one in (self.bias_m_s, self.ratio))
        return (
            f"{both} times matched of {fine} fine and {coarse} coarse ones; correlation "
            f"{self.correlation:.2f}, shift along y and x {self.shift_cells[0]:.2f} and "
            f"{self.shift_cells[1]:.2f} cells, bias {bias} m/s, ratio of spreads "
            f"{ratio}, {self.covered:.0%} of the blocks covered"
        )

    @property
    def fault(self) -> str:
        """What of them is not of one weather, place, time or unit, and the remedy; else ""."""
        if self.covered < LEAST_COVERED:
            return (
                f"at least {LEAST_COVERED:.0%} must be covered: select the part of the fine grid "
                "that the coarse wind covers"
            )
        if self.correlation < LEAST_CORRELATION:
            return f"their correlation must be at least {LEAST_CORRELATION}: is one a mirror image?"
        if self.shifted_by > MOST_SHIFT:
            return f"the shift must be at most {MOST_SHIFT:g} cell: mend the coordinates of one"
        if self.lag:
            return f"they agree better {self.lag:+d} times later: mend the times of one"
        if any(not 1 / MOST_RATIO <= r <= MOST_RATIO for r in self.ratio if np.isfinite(r)):
            return (
                f"spreads must be alike but for a factor of {MOST_RATIO}, half-way to knots: mend "
                "the unit of one"
            )
        return ""

    @property
    def shifted_by(self) -> float:
        """The larger of both shifts, in cells."""
        return max(map(abs, self.shift_cells))

    def refuse(self) -> None:
        """Raise if they are not of one weather, place, time or unit.

        Raises:
            ValueError: it says which.
        """
        if self.fault:
            raise ValueError(
                f"coarse and fine wind disagree ({self}); {self.fault}, or strict=False"
            )


@dataclass(frozen=True)
class Matched:
    """A coarse wind on the blocks of a fine one at the same times: what a net learns from.

    `fine` is (time, channel, y, x), statics behind its winds, `coarse` (time, channel, y_lo, x_lo);
    `correction`, where there is one, is applied to the coarse wind in training and, later, by the
    trained net.

    Raises:
        ValueError: sizes or names do not fit.
    """

    coarse: xr.DataArray
    fine: xr.DataArray
    factor: int
    agreement: Agreement
    correction: Correction | None = None

    def __post_init__(self):
        """Check that each block has its coarse value."""
        sizes = [
            (s["time"], k * s["y"], k * s["x"])
            for s, k in ((self.coarse.sizes, self.factor), (self.fine.sizes, 1))
        ]
        names = self.names
        if sizes[0] != sizes[1] or names != tuple(self.fine["channel"].values[: len(names)]):
            raise ValueError(
                f"coarse is {dict(self.coarse.sizes)} of {', '.join(names)}, fine "
                f"{dict(self.fine.sizes)}: one coarse value for each {self.factor}×{self.factor} "
                "block of each of its winds is asked for"
            )
        if self.correction is not None and self.correction.names != names:
            raise ValueError(f"the correction is of {self.correction.names}, the wind of {names}")

    @property
    def names(self) -> tuple[str, ...]:
        """The winds of both."""
        return tuple(n for n in self.channels if n in WINDS) or self.channels

    @property
    def beside(self) -> tuple[str, ...]:
        """What the coarse model says beside them."""
        return self.channels[len(self.names) :]

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels of the coarse field."""
        return tuple(str(n) for n in self.coarse["channel"].values)

    def corrected_by(self, correction: Correction | None) -> "Matched":
        """Return the same pairs with a correction, or without."""
        return replace(self, correction=correction)

    def shown(self) -> Float[np.ndarray, "time channel y_lo x_lo"]:
        """Return the coarse wind as a net is shown it, corrected if there is a correction."""
        values = np.asarray(self.coarse.values, np.float32)
        if self.correction is None:
            return values
        winds, beside = np.split(values, [len(self.names)], axis=1)
        return np.concatenate([self.correction.of(winds), beside], axis=1)


@of_fields
def matched(
    coarse: xr.Dataset,
    fine: xr.Dataset,
    factor: int,
    names: Sequence[str] = GRID,
    statics: Sequence[str] = (),
    beside: Sequence[str] = (),
    *,
    tolerance_h: float = 0.0,
    strict: bool = True,
) -> Matched:
    """Return pairs of a coarse model's wind and a finer one's, for `fit_downscaling`.

    Each fine time takes the nearest coarse time that is not farther than `tolerance_h`, each coarse
    time at most once; what has no match is left out, counted and logged. Coarse wind is brought
    onto the blocks of the fine grid by `onto_blocks`. Before anything is learned, `agreement`
    measures how well both fit.

    Args:
        coarse: in the schema of `sciml.wind.open`; grid, times and region may be others.
        fine: the truth, in the same schema; a part of it gives the pairs of that part.
        factor: fine points per coarse one; that of the net.
        names: the winds that are learned.
        statics: what is known of the fine grid, as for `channels`.
        beside: what is known of the coarse model beside its wind, as for `channels`.
        tolerance_h: how many hours apart times may be that count as one.
        strict: refuse sources that are shifted by more than a cell, hardly correlated, of other
            units or times, or of which the coarse one covers less than half of the fine one
            (`Agreement.refuse`).

    Raises:
        ValueError: no time in common, calendars differ, grids that do not overlap, or what
            `strict` refuses.

    >>> import numpy as np
    >>> from sciml import wind
    >>> fine = wind.gaussian(seed=0, snapshots=20, n=32)
    >>> hours = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(1, "h")
    >>> fine = fine.assign_coords(time=hours)
    >>> pairs = wind.matched(wind.coarser(fine, 4), fine, 4)
    >>> pairs.coarse.shape, pairs.fine.shape
    ((20, 2, 8, 8), (20, 2, 32, 32))
    """
    fine = warn_of_uneven(fine, "the fine wind")
    of_coarse, of_fine = same_times(coarse, fine, tolerance_h)
    counts = (len(of_fine), fine.sizes["time"], coarse.sizes["time"])
    warn_of_other_level(coarse, fine, names, "the coarse wind", "the fine wind")
    blocks = onto_blocks(coarse.isel(time=of_coarse), fine, factor)
    truth = channels(fine.isel(time=of_fine), names, statics)
    whole = {axis: slice(truth.sizes[axis] // factor * factor) for axis in ("y", "x")}
    truth, guess = truth.isel(whole), channels(blocks, names, beside=beside)
    measured = agreement(
        guess.values[:, : len(names)], truth.values[:, : len(names)], factor, counts
    )
    lost = measured.covered < 1 or len(of_fine) < fine.sizes["time"]
    said = ": what has no match, or is not covered, is left out" if lost else ""
    if measured.shifted_by > TOLD_SHIFT:
        said += "; the shift is learned too: are the places of one corners, or of other points?"
    log.log(WARNING if said else INFO, "coarse and fine wind: %s%s", measured, said)
    if strict:
        measured.refuse()
    guess.attrs |= {name: blocks.attrs[name] for name in (SPACING,) if name in blocks.attrs}
    return Matched(guess, truth, factor, measured)


def same_times(
    coarse: xr.Dataset, fine: xr.Dataset, tolerance_h: float
) -> tuple[list[int], list[int]]:
    """Return the indices of coarse and of fine times that belong together."""
    check_tolerance(tolerance_h)
    both = {"coarse": coarse, "fine": fine}
    for name, part in both.items():
        if "time" not in part.coords:
            raise ValueError(
                f"the {name} wind has no dates, so nothing can be matched: give it some"
            )
    stamps = [moments(part["time"], f"time of the {n} wind") for n, part in both.items()]
    refuse_other_calendar(stamps[0], stamps[1], "the coarse wind", "the fine wind")
    known, wanted = (since(one, stamps[1][0]) for one in stamps)
    for name, one in zip(both, stamps, strict=True):
        refuse_twice(one, f"the {name} wind")
    found: dict[int, tuple[float, int]] = {}
    for at, hour in enumerate(wanted):
        nearest = int(np.abs(known - hour).argmin())
        off = float(abs(known[nearest] - hour))
        if off <= tolerance_h + ROUNDED_H and off < found.get(nearest, (np.inf, 0))[0]:
            found[nearest] = (off, at)
    if not found:
        raise ValueError(
            f"no time of the coarse wind ({stamps[0].min()} to {stamps[0].max()}) is one of the "
            f"fine wind's ({stamps[1].min()} to {stamps[1].max()}) within {tolerance_h:g} h: name "
            "files of the same times, or a larger tolerance_h"
        )
    pairs = sorted((at, which) for which, (_, at) in found.items())
    return [which for _, which in pairs], [at for at, _ in pairs]


def agreement(
    coarse: Fields, fine: Float[np.ndarray, "time channel y x"], factor: int, times: Any
) -> Agreement:
    """Measure how the coarse wind and the block means of the fine one agree."""
    means = np.asarray(block_mean_present(np.asarray(crop(fine, factor)), factor), np.float64)
    there = np.isfinite(coarse) & np.isfinite(means)
    if not there.any():
        raise ValueError(
            f"of {there.size} blocks none is known of both the coarse and the fine wind; there is "
            "nothing to learn: look at the missing values of both"
        )
    covered = float(there.sum() / np.isfinite(means).sum())
    guess, truth = (np.where(there, one, np.nan) for one in (coarse, means))
    with np.errstate(invalid="ignore", divide="ignore"):
        moments = [channel_moments(one) for one in (guess, truth)]
        bias = moments[0][0] - moments[1][0]
        ratio = moments[0][1] / moments[1][1]
    a, b = (anomaly(one, there) for one in (guess, truth))
    best, shift = shifted(a, b)
    lags = {0: correlated(a, b)}
    if len(a) > 4:
        lags |= {1: correlated(a[1:], b[:-1]), -1: correlated(a[:-1], b[1:])}
    lag = max(lags, key=lambda one: lags[one])
    lag = lag if lags[lag] > lags[0] + MOST_BY_LAG else 0
    by_channel = tuple(bias.tolist()), tuple(ratio.tolist())
    return Agreement(best, shift, lag, *by_channel, tuple(times), covered)


def channel_moments(fields: Fields) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each channel; NaN of one that is nowhere."""
    known = [one[np.isfinite(one)] for one in np.moveaxis(fields, 1, 0)]
    pairs = [(one.mean(), one.std()) if one.size else (np.nan, np.nan) for one in known]
    mean, std = np.array(pairs).T
    return mean, std


def anomaly(fields: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return fields without the mean of each time and channel, 0 where they are missing."""
    count = np.maximum(there.sum(axis=(2, 3), keepdims=True), 1)
    mean = np.where(there, fields, 0).sum(axis=(2, 3), keepdims=True) / count
    return np.where(there, fields - mean, 0)


def correlated(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of two fields without means."""
    return float((a * b).sum() / max(np.sqrt((a**2).sum() * (b**2).sum()), 1e-30))


def shifted(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Return the best correlation over shifts of `a`, and that shift along y and x, in cells.

    A parabola through the neighbours of the best whole shift gives its fraction.
    """
    most = [min(FARTHEST, n // 4) for n in a.shape[-2:]]
    steps = [range(-m, m + 1) for m in most]
    table = np.array(
        [[correlated(*overlapping(a, b, dy, dx)) for dx in steps[1]] for dy in steps[0]]
    )
    at = np.unravel_index(table.argmax(), table.shape)
    found = []
    for axis, (place, far) in enumerate(zip(at, most, strict=True)):
        line = np.take(table, at[1 - axis], axis=1 - axis)
        part = 0.0
        if 0 < place < len(line) - 1:
            left, middle, right = line[place - 1 : place + 2]
            bend = left - 2 * middle + right
            part = float((left - right) / (2 * bend)) if bend < 0 else 0.0
        found.append(float(place) - far + part)
    return float(table.max()), (found[0], found[1])


def overlapping(a: np.ndarray, b: np.ndarray, dy: int, dx: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what remains in common of `a`, moved by so many cells, and `b`."""
    y, x = a.shape[-2:]
    ours = a[..., max(0, -dy) : y - max(0, dy), max(0, -dx) : x - max(0, dx)]
    return ours, b[..., max(0, dy) : y - max(0, -dy), max(0, dx) : x - max(0, -dx)]


@of_labelled
def fit_correction(*train: Matched) -> Correction:
    """Return the correction that training pairs ask for: means and spreads become equal.

        scale = σ(fine) / σ(coarse),  offset = mean(fine) − scale · mean(coarse)

    over the blocks and times that both have. Fit it to training pairs alone, and give it to those
    of validation: `pairs.corrected_by(correction)`.

    Raises:
        ValueError: winds differ, or one is nowhere or constant.

    >>> import numpy as np
    >>> from sciml import wind
    >>> fine = wind.gaussian(seed=0, snapshots=20, n=32)
    >>> hours = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(1, "h")
    >>> fine = fine.assign_coords(time=hours)
    >>> near = wind.coarser(fine, 4)
    >>> near = near.assign({name: 1.1 * near[name] for name in ("x_wind", "y_wind")})
    >>> correction = wind.fit_correction(wind.matched(near, fine, 4))
    >>> [round(scale, 3) for scale in correction.scale]
    [0.909, 0.909]
    """
    if not train or any(one.names != train[0].names for one in train):
        raise ValueError("pairs to correct must be there, and be of the same winds")
    moments = []
    for one in train:
        wind = one.fine.values[:, : len(one.names)]
        means = np.asarray(block_mean_present(wind, one.factor), np.float64)
        guess = np.asarray(one.coarse.values[:, : len(one.names)], np.float64)
        there = np.isfinite(means) & np.isfinite(guess)
        parts = [np.where(there, part, 0) for part in (guess, means)]
        sums = [p.sum(axis=(0, 2, 3)) for p in (there, *parts, *(part**2 for part in parts))]
        moments.append(sums)
    count, *totals = np.sum(moments, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        guess, truth, guess_2, truth_2 = (total / count for total in totals)
        scale = np.sqrt((truth_2 - truth**2) / (guess_2 - guess**2))
    offset = truth - scale * guess
    return Correction(train[0].names, tuple(scale.tolist()), tuple(offset.tolist()))
