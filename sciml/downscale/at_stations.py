"""Scores of a prediction at stations, beside interpolations of what it was made from."""

import logging
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from sciml._grid import on_sphere
from sciml.diagnose.wind.errors import bias, mae, rmse, skill
from sciml.diagnose.wind.skill_interval import SkillInterval, skill_interval
from sciml.downscale.comparison import (
    BASELINE,
    PREDICTION,
    at_times_of,
    block_of,
    interpolated,
    on_axes,
    on_blocks,
    with_draws,
)
from sciml.wind.cf.check import refuse_several, refuse_unlike
from sciml.wind.cf.kinds import of_labelled
from sciml.wind.cf.level import warn_of_other_level
from sciml.wind.cf.names import EARTH, GRID
from sciml.wind.cf.position import planes
from sciml.wind.cf.times import (
    ROUNDED_H,
    check_tolerance,
    moments,
    refuse_other_calendar,
    since,
    steps_h,
)
from sciml.wind.prepare.matching import MOST_RATIO
from sciml.wind.prepare.regrid import extent

log = logging.getLogger(__name__)

NAMES = ("wind_speed", *EARTH)
OPPOSED = -0.3  # assumed: correlation of components below which directions are those to which
Method = Literal["nearest", "bilinear"]
Places = Float[np.ndarray, " place"]


@of_labelled
def station_scores(
    prediction: xr.Dataset,
    stations: xr.Dataset,
    factor: int,
    coarse: xr.Dataset,
    *,
    tolerance_h: float = 0.0,
    method: Method = "nearest",
) -> pd.DataFrame:
    """Return scores of a prediction and of interpolated coarse wind where stations observe.

    Each station gives each time of the prediction its nearest observation within `tolerance_h`.
    Stations outside the grid, hours that are not there and observations of other times are left
    out, counted and told. `coarse` is brought onto the blocks of the prediction if its grid is
    another, and interpolated to the fine grid; of both the nearest point is taken, or four
    (`method`). Of draws the mean is scored, and all of them as in `scores`.

    Args:
        prediction: as `predict` wrote it, with latitudes and longitudes.
        stations: as `sciml.wind.open_stations` returns them.
        factor: by which the prediction was refined.
        coarse: what was refined.
        tolerance_h: how many hours apart times may be that count as one.
        method: "nearest" or "bilinear".

    Raises:
        ValueError: nothing in common, no places, or two observations of one time.
    """
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(get_args(Method))}")
    names = [n for n in NAMES if n in prediction and n in stations]
    vector = all(n in part for n in GRID for part in (prediction, coarse))
    names = [n for n in names if n in coarse or (vector and n == "wind_speed")]
    if not names or "latitude" not in prediction.coords:
        raise ValueError(
            f"prediction ({', '.join(map(str, prediction.variables))}), coarse wind "
            f"({', '.join(map(str, coarse.data_vars))}) and stations "
            f"({', '.join(map(str, stations.data_vars))}) must have places and a wind in common"
        )
    for name in names:
        refuse_several(prediction[name], name)
        for part in (prediction, stations, *((coarse,) if name in coarse else ())):
            refuse_unlike(part[name])
    warn_of_other_level(prediction, stations, names, "the prediction", "the table of stations")
    within = check_tolerance(tolerance_h)
    coarse = at_times_of(prediction, coarse, "coarse wind", within)
    one = prediction.isel(draw=0) if "draw" in prediction.dims else prediction
    coarse = on_blocks(coarse, one, factor)
    observed, sample = matched_stations(one, stations[names], within, method)
    tables, both = [], []
    for name in names:
        parts = [coarse[n] for n in (GRID if vector and name == "wind_speed" else (name,))]
        field = prediction[name]
        draws = None
        if "draw" in field.dims:
            draws = sample(field.transpose("draw", "time", "y", "x").values)
            field = field.mean("draw", skipna=False)
        guesses = interpolated([on_axes(part) for part in parts], factor)
        guesses = {k: sample(v) for k, v in (guesses | {PREDICTION: on_axes(field)}).items()}
        table = scored(guesses, observed[name], block_of(one))
        both.append((guesses[PREDICTION], observed[name]))
        if draws is not None:
            table = with_draws(table, draws[..., None], observed[name][..., None])
        table.insert(0, "variable", name)
        tables.append(table)
    warn_of_unit(*np.array(both).swapaxes(0, 1))
    warn_of_directions(pd.concat(tables))
    return pd.concat(tables, ignore_index=True)


def matched_stations(
    grid: xr.Dataset, stations: xr.Dataset, tolerance_h: float, method: Method
) -> tuple[dict[str, Any], Any]:
    """Return observations (time, place) of each wind, and what takes fields (…, y, x) there."""
    names = [str(name) for name in stations.data_vars]
    stamps, seen = moments(grid["time"]), moments(stations["time"], "time of the stations")
    refuse_other_calendar(seen, stamps, "the stations", "the prediction")
    steps_h(stamps)
    known, wanted = (since(one, stamps[0]) for one in (seen, stamps))
    at = np.searchsorted((wanted[1:] + wanted[:-1]) / 2, known)  # the nearest time of all
    table: Any = pd.DataFrame({name: stations[name].values for name in names})
    table = table.assign(known=known, at=at, off=np.abs(known - wanted[at]))
    table = table.assign(**{n: stations[n].values for n in ("latitude", "longitude")})
    if lost := int(table[["latitude", "longitude"]].isna().any(axis=1).sum()):
        raise ValueError(f"{lost} observations have no latitude or longitude: drop them, .dropna")
    table = table.dropna(how="all", subset=names).drop_duplicates()
    twice = table.duplicated(["known", "latitude", "longitude"])
    if twice.any():
        row = table[twice].iloc[0]
        raise ValueError(
            f"there are two observations at {row.latitude:g}, {row.longitude:g} at "
            f"{seen[twice[twice].index[0]]}, and nothing tells which to take: keep one of each, or "
            "name one height_m"
        )
    places = table[["latitude", "longitude"]].drop_duplicates()
    spots = placed(grid, places.latitude.to_numpy(), places.longitude.to_numpy())
    sizes = np.array([grid.sizes[axis] for axis in ("y", "x")])[:, None]
    inside = ((spots >= -0.5) & (spots <= sizes - 0.5)).all(axis=0)
    if not inside.any():
        raise ValueError(
            f"none of {len(places)} stations ({extent(stations)}) is on the grid of the prediction "
            f"({extent(grid)}): name stations that are"
        )
    places = places[inside].assign(place=np.arange(inside.sum()))
    here = table.merge(places, on=["latitude", "longitude"])
    timely = here[here.off <= tolerance_h + ROUNDED_H]
    if timely.empty:
        raise ValueError(
            f"no observation on the grid is within {tolerance_h:g} h of a time of the prediction; "
            f"the nearest is {here.off.min() * 3600:.6g} s away: name a larger tolerance_h "
            "(--tolerance-h)"
        )
    kept = timely.sort_values(["off", "known"]).drop_duplicates(["at", "place"])
    log.log(
        logging.INFO if len(kept) == len(table) else logging.WARNING,
        "%d of %d stations are on the grid; of their %d observations %d are scored, at %d of %d "
        "times: the others are of other times, or farther from one",
        *(len(places), inside.size, len(here), len(kept), kept["at"].nunique(), len(wanted)),
    )
    observed = {name: np.full((len(wanted), len(places)), np.nan) for name in names}
    for name, values in observed.items():
        values[kept["at"], kept["place"]] = kept[name]
    return observed, partial(taken, spots=np.clip(spots[:, inside], 0, sizes - 1), method=method)


def placed(
    grid: xr.Dataset, latitude: Places, longitude: Places
) -> Float[np.ndarray, "axis place"]:
    """Return the row and column of places on a grid, with fractions.

    In the plane of the steps to the neighbours of the nearest point.
    """
    from scipy.spatial import KDTree

    points, goals = on_sphere(*planes(grid)), on_sphere(latitude, longitude)
    _, nearest = KDTree(points.reshape(-1, 3)).query(goals)
    at = np.array(np.unravel_index(nearest, points.shape[:2]))
    steps = []
    for axis, size in enumerate(points.shape[:2]):
        ends = [at.copy(), at.copy()]
        ends[0][axis], ends[1][axis] = (
            np.maximum(at[axis] - 1, 0),
            np.minimum(at[axis] + 1, size - 1),
        )
        far = (points[*ends[1]] - points[*ends[0]]) / (ends[1][axis] - ends[0][axis])[:, None]
        steps.append(far)
    sides = np.stack(steps, axis=-1)  # place, 3, axis
    off = (goals - points[*at])[..., None]
    square = np.swapaxes(sides, 1, 2) @ sides
    return at + np.linalg.solve(square, np.swapaxes(sides, 1, 2) @ off)[..., 0].T


def taken(
    fields: np.ndarray, spots: Float[np.ndarray, "axis place"], method: Method
) -> Float[np.ndarray, "... place"]:
    """Return fields (…, y, x) at rows and columns with fractions."""
    if method == "nearest":
        return fields[..., *np.rint(spots).astype(int)]
    most = np.array(fields.shape[-2:])[:, None] - 2
    low = np.clip(np.floor(spots).astype(int), 0, most)
    (y, x), (b, a) = low, spots - low
    south = (1 - a) * fields[..., y, x] + a * fields[..., y, x + 1]
    north = (1 - a) * fields[..., y + 1, x] + a * fields[..., y + 1, x + 1]
    return (1 - b) * south + b * north


def scored(
    guesses: dict[str, Float[np.ndarray, "time place"]],
    truth: Float[np.ndarray, "time place"],
    block: int | None,
) -> pd.DataFrame:
    """Return a row for each guess, over what is known of all of them and of the truth."""
    there = np.isfinite(truth) & np.isfinite([*guesses.values()]).all(axis=0)
    if not there.any():
        raise ValueError(
            "no observation lies where prediction and coarse wind are known: look at their missing "
            "values"
        )
    rows = there.any(axis=1)
    known, reference = (np.where(there, one, 0)[rows] for one in (truth, guesses[BASELINE]))
    table = []
    for name, values in guesses.items():
        a, b = values[there], truth[there]
        found = SkillInterval(skill(a, b, guesses[BASELINE][there]), np.nan, np.nan)
        if block is not None and 2 * block <= rows.sum():
            found = skill_interval(np.where(there, values, 0)[rows], known, reference, block=block)
        alike = np.corrcoef(a, b)[0, 1] if min(a.std(), b.std()) > 0 else np.nan
        table.append(
            {
                "scheme": name,
                "observations": int(there.sum()),
                "rmse_m_s": rmse(a, b),
                "mae_m_s": mae(a, b),
                "bias_m_s": bias(a, b),
                "correlation": float(alike),
                "skill": found.skill,
                "skill_low": found.low,
                "skill_high": found.high,
            }
        )
    return pd.DataFrame(table)


def warn_of_unit(
    predicted: Float[np.ndarray, "wind time place"], seen: Float[np.ndarray, "wind time place"]
) -> None:
    """Say if stations tell of winds so much stronger or weaker that the unit may be another."""
    there = np.isfinite(predicted) & np.isfinite(seen)
    ours, theirs = (np.sqrt(np.mean(np.square(one[there]))) for one in (predicted, seen))
    if not ours <= MOST_RATIO * theirs or not theirs <= MOST_RATIO * ours:
        log.warning(
            "winds at the stations are %.2f times as strong as predicted there; beyond a factor of "
            "%g, half-way to knots, look at their unit and height",
            theirs / ours if ours else np.inf,
            MOST_RATIO,
        )


def warn_of_directions(table: pd.DataFrame) -> None:
    """Say if winds are opposed, as where directions are those to which the wind blows."""
    ours = table[(table.scheme == PREDICTION) & table.variable.isin(EARTH)]
    if len(ours) and (ours.correlation < OPPOSED).all():
        log.warning(
            "winds of prediction and stations are opposed (correlation %s): are directions those "
            "to which the wind blows?",
            ", ".join(f"{one:.2f}" for one in ours.correlation),
        )
