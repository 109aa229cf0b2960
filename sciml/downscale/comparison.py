"""Scores of a prediction beside interpolations of what it was made from."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from sciml.diagnose.wind.ensemble import crps, rank_histogram, spread_skill
from sciml.diagnose.wind.scorecard import scorecard
from sciml.downscale.sources import wind_of
from sciml.wind.cf.check import refuse_several, refuse_unlike, warn_of_uneven
from sciml.wind.cf.kinds import of_labelled, refuse_stations
from sciml.wind.cf.level import warn_of_other_level
from sciml.wind.cf.names import GRID, IN_M_S
from sciml.wind.cf.times import (
    ROUNDED_H,
    check_tolerance,
    moments,
    refuse_other_calendar,
    since,
    steps_h,
)
from sciml.wind.prepare.coarsen import continued
from sciml.wind.prepare.matching import TOLD_SHIFT, agreement
from sciml.wind.prepare.regrid import onto_blocks
from sciml.wind.prepare.resolution import coarser, refuse_misplaced
from sciml.wind.prepare.split import decorrelation_h, step_h
from sciml.wind.prepare.upsample import METHODS

log = logging.getLogger(__name__)

BASELINE = "conservative bicubic"
PREDICTION = "prediction"
SEEN = 4  # coarse points of a gap: to each side interpolation sees two
OF_DRAWS = ("crps_m_s", "spread_skill", "rank_iqr")


@of_labelled
def scores(
    prediction: xr.Dataset,
    truth: xr.Dataset,
    factor: int,
    coarse: xr.Dataset | None = None,
    *,
    tolerance_h: float = 0.0,
) -> pd.DataFrame:
    """Return the scorecards of all winds that prediction and truth have in common.

    Interpolations of the coarse wind stand beside the prediction: of `coarse` where it is given,
    else of the truth's own block means. Where the prediction has both components its speed is
    compared with the speed of the interpolated vector, of which it was made; a prediction of
    the speed alone with the interpolated speed. Where the truth is larger, its last rows and
    columns that do not fill a block are left out.

    Of draws the mean is scored, and all of them by `crps_m_s` (fair; of what gives one field it is
    the mean absolute error), `spread_skill` (1 is right, below is too sure) and `rank_iqr`, the
    interquartile range of the counts of the rank histogram in parts of their mean (0 is flat).

    Times that are at most `tolerance_h` hours apart count as one, as in `matched`; it is told.

    Raises:
        ValueError: no wind in common, or grids or times that differ; observations of stations.
    """
    for part, owner in ((prediction, "the prediction"), (truth, "the truth")):
        refuse_stations(part, owner)
    names = in_common(prediction, truth, coarse)
    for part in (one for one in (prediction, truth, coarse) if one is not None):
        for name in (name for name in names if name in part):
            refuse_several(part[name], name)
            refuse_unlike(part[name])
    within = check_tolerance(tolerance_h)
    coarse = None if coarse is None else at_times_of(prediction, coarse, "coarse wind", within)
    truth = warn_of_uneven(aligned(prediction, truth, factor, within), "the truth")
    warn_of_other_level(prediction, truth, names, "the prediction", "the truth")
    if coarse is None:
        coarse = coarser(truth, factor)
    else:
        coarse = on_blocks(coarse, truth, factor)
        warn_of_other_weather(coarse, truth, names, factor)
    vector = all(name in part for name in GRID for part in (prediction, coarse))
    tables = []
    for name in names:
        known = on_axes(truth[name])
        parts = GRID if vector and name == "wind_speed" else (name,)
        draws = None
        field = prediction[name]
        if "draw" in field.dims:
            draws = np.asarray(field.transpose("draw", "time", "y", "x").values)
            field = field.mean("draw", skipna=False)  # of some draws it would be another's
        table = scorecard(
            interpolated([on_axes(coarse[part]) for part in parts], factor)
            | {PREDICTION: on_axes(field)},
            known,
            baseline=BASELINE,
            factor=factor,
            spacing_m=float(truth.attrs.get("spacing_m", np.nan)),
            block=block_of(truth),
        )
        if draws is not None:
            table = with_draws(table, draws, known)
        table.insert(0, "variable", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def in_common(prediction: xr.Dataset, truth: xr.Dataset, coarse: xr.Dataset | None) -> list[str]:
    """Return the winds that can be scored; say which are not for want of a coarse one."""
    names = [name for name in IN_M_S if name in prediction and name in truth]
    if not names:
        raise ValueError(
            f"prediction ({', '.join(map(str, prediction.data_vars))}) and truth "
            f"({', '.join(map(str, truth.data_vars))}) have no wind in common"
        )
    if coarse is None:
        return names
    vector = all(name in part for name in GRID for part in (prediction, coarse))
    known = [n for n in names if n in coarse or (vector and n == "wind_speed")]
    has = ", ".join(map(str, coarse.data_vars))
    if not known:
        raise ValueError(f"the coarse wind has {has}, and none of {', '.join(names)}: name others")
    if lacking := ", ".join(name for name in names if name not in known):
        log.warning("%s is not scored: the coarse wind has %s", lacking, has)
    return known


def warn_of_other_weather(
    coarse: xr.Dataset, truth: xr.Dataset, names: list[str], factor: int
) -> None:
    """Say if the coarse wind is of another weather, place, time or unit, or lacks some of it.

    Of such an interpolation is far from the truth, and any prediction looks skilful beside it.
    """
    both = [n for n in GRID if n in coarse and n in truth] or [n for n in names if n in coarse]
    a, b = (np.stack([on_axes(p[n]) for n in both[:2]], axis=1) for p in (coarse, truth))
    count = len(a)
    found = agreement(a, b, factor, (count, count, count))
    if found.fault:
        said = "coarse wind and truth disagree (%s), so skill says little; %s"
        log.warning(said, found, found.fault)
    elif found.covered < 1 or found.shifted_by > TOLD_SHIFT:
        log.warning("coarse wind and truth: %s; what is not covered is not scored", found)


def on_blocks(coarse: xr.Dataset, truth: xr.Dataset, factor: int) -> xr.Dataset:
    """Return the coarse wind of the truth's blocks, regridded if its grid is another."""
    blocks = coarser(truth.isel(time=slice(1)), factor)
    placed = "latitude" in blocks.coords and "latitude" in coarse.coords
    same = all(blocks.sizes[axis] == coarse.sizes[axis] for axis in ("y", "x")) and all(
        name not in coarse.coords
        or (
            coarse[name].shape == blocks[name].shape
            and np.allclose(coarse[name], blocks[name], rtol=1e-5, atol=1e-3)
        )
        for name in (("latitude", "longitude") if placed else ("y", "x"))
        if name in blocks.coords
    )
    return coarse if same else onto_blocks(coarse, truth, factor)


def on_axes(field: xr.DataArray) -> Float[np.ndarray, "time y x"]:
    """Return the values of a field in the order of our axes."""
    return np.asarray(field.transpose("time", "y", "x").values)


def interpolated(
    parts: list[Float[np.ndarray, "time y x"]], factor: int
) -> dict[str, Float[np.ndarray, "time y_fine x_fine"]]:
    """Return every interpolation of a coarse wind, or of the speed of one given by components."""
    gap = ~np.isfinite(np.stack(parts)).all(axis=0)
    hidden = np.kron(gap, np.ones((1, factor, factor), bool))
    whole = [np.asarray(continued(part, SEEN)) for part in parts]
    made = {}
    for scheme, method in METHODS.items():
        fine = [np.asarray(method(part, factor)) for part in whole]
        made[scheme] = np.where(hidden, np.nan, fine[0] if len(fine) == 1 else np.hypot(*fine))
    return made


def with_draws(
    table: pd.DataFrame,
    draws: Float[np.ndarray, "draw time y x"],
    truth: Float[np.ndarray, "time y x"],
) -> pd.DataFrame:
    """Return a scorecard with the scores of draws, over points where truth and draws are known."""
    there = np.isfinite(truth) & np.isfinite(draws).all(axis=0)
    members, known = draws[:, there], truth[there]
    table = table.assign(crps_m_s=table["mae_m_s"], spread_skill=np.nan, rank_iqr=np.nan)
    if len(members) > 1 and known.size:
        counts = rank_histogram(members, known)
        low, high = np.quantile(counts, [0.25, 0.75])
        spread = spread_skill(members, known, bins=1)
        found: Any = (
            crps(members, known, fair=True),
            float(spread["ratio"]),
            (high - low) / counts.mean(),
        )
        table.loc[table.scheme == PREDICTION, list(OF_DRAWS)] = found
    return table


def aligned(
    prediction: xr.Dataset, truth: xr.Dataset, factor: int, tolerance_h: float
) -> xr.Dataset:
    """Return the truth on the grid and at the times of the prediction."""
    sizes = {axis: prediction.sizes[axis] for axis in ("y", "x")}
    if any(not 0 <= truth.sizes[a] - n < factor for a, n in sizes.items()):
        there = f"{truth.sizes['y']}×{truth.sizes['x']}"
        raise ValueError(
            f"the prediction has {sizes['y']}×{sizes['x']} points and the truth {there}; they must "
            f"be of one grid, but for rows and columns that do not fill a block of {factor}"
        )
    if left := [f"{n} {axis}" for axis, n in sizes.items() if n % factor]:
        raise ValueError(
            f"the prediction has {' and '.join(left)}, of which {factor} is no divisor: pass the "
            "factor by which it was refined"
        )
    truth = truth.isel(y=slice(sizes["y"]), x=slice(sizes["x"]))
    refuse_misplaced(prediction, truth, factor, "prediction and truth")
    return at_times_of(prediction, truth, "truth", tolerance_h)


def at_times_of(
    prediction: xr.Dataset, other: xr.Dataset, name: str, tolerance_h: float
) -> xr.Dataset:
    """Return the truth, or the coarse wind, at the times of a prediction, each taken once."""
    dated = ["time" in part.coords for part in (prediction, other)]
    if not all(dated):
        if other.sizes["time"] != prediction.sizes["time"]:
            raise ValueError(
                f"there are {prediction.sizes['time']} times of the prediction and "
                f"{other.sizes['time']} of the {name}, of which not both have dates: give both some"
            )
        if any(dated):
            log.warning("not both prediction and %s have dates: times are taken in order", name)
        return other
    wanted, known = moments(prediction["time"]), moments(other["time"], f"time of the {name}")
    refuse_other_calendar(known, wanted, f"the {name}", "the prediction")
    steps_h(wanted)
    steps_h(np.sort(known))  # in any order, but each once
    known_h, wanted_h = (since(one, wanted[0]) for one in (known, wanted))
    at = np.abs(known_h - wanted_h[:, None]).argmin(axis=1)
    off = np.abs(known_h[at] - wanted_h)
    if (absent := off > tolerance_h + ROUNDED_H).any():
        first = int(absent.argmax())
        raise ValueError(
            f"the {name} lacks {absent.sum()} times of the prediction, the first {wanted[first]}; "
            f"its nearest is {off[first] * 3600:.6g} s away: name files of the same times, or a "
            "larger tolerance_h (--tolerance-h)"
        )
    if len({*at.tolist()}) < len(at):
        raise ValueError(
            f"within {tolerance_h:g} h two times of the prediction are next to one of the {name}; "
            "each must have its own: name a smaller tolerance_h"
        )
    if off.max(initial=0.0) > ROUNDED_H:
        said = "times of prediction and %s differ by up to %.6g s, and count as one"
        log.warning(said, name, 3600 * off.max())
    return other.isel(time=at)


def block_of(truth: xr.Dataset) -> int | None:
    """Return how many consecutive times share their weather; None where it cannot be told."""
    if "time" not in truth.coords or truth.sizes["time"] < 3:
        return None
    field = wind_of(truth)
    lasts = decorrelation_h(field)
    return None if lasts is None else max(1, round(lasts / max(step_h(field), 1e-9)))
