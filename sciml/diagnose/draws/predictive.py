"""Whether observations look like what the posterior predicts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from sciml._labels import Labelled, labels_of, marked, measured_alike, variable
from sciml._numbers import short
from sciml.diagnose.draws.arviz_tree import counted, series
from sciml.diagnose.pairs import belonging
from sciml.diagnose.rank import rank

ROWS_AT_ONCE = 4096  # simulations in one call
LEVELS = (0.5, 0.8, 0.95)


def replicate(
    simulate: Callable[[Any], Any],
    posterior: Labelled,
    *,
    draws: int = 100,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Any:
    """Return observations simulated from posterior draws, with a progress bar.

    Args:
        simulate: parameters (sample, parameter) → observations (sample, time, …), with the noise
            of the measurement, as `lambda p: sciml.simulate(problem, parameters=p, noise=noise)`.
            The parameters are a DataArray with their names where the posterior has names: by them
            levels of the noise that were estimated, as `noise_sd`, are applied too, and conditions
            that the posterior carries.
        posterior: `posterior (draw, sample, parameter)`.
        draws: how many to use, evenly spread; all if there are fewer.
        rows_at_once: simulations in one call.

    Returns:
        `(draw, sample, time, …)`, with axes and labels where `simulate` gives them.

    Raises:
        TypeError: `simulate` is no function, as a problem itself.
        ValueError: the simulator returns another number of rows than it got.

    >>> import numpy as np
    >>> posterior = np.ones((50, 3, 2))  # (draw, sample, parameter)
    >>> replicate(lambda theta: theta.sum(axis=1, keepdims=True), posterior, draws=10).shape
    (10, 3, 1)
    """
    if not callable(simulate):
        raise TypeError(
            f"simulate is {short(simulate)}; it must be a function of parameters: pass lambda p: "
            "sciml.simulate(problem, parameters=p, noise=problem.noise)"
        )
    values = variable(posterior, "posterior", ("draw", "sample", "parameter"))
    chosen = np.unique(np.linspace(0, values.shape[0] - 1, draws).round().astype(int))
    used = np.asarray(values[chosen], np.float64)
    rows: Any = used.reshape(-1, used.shape[-1])
    if names := labels_of(values):
        given = {
            n: (("sample",), np.tile(values[n].values, len(used)), values[n].attrs)
            for n in marked(values)
        }
        rows = xr.DataArray(rows, {"parameter": list(names), **given}, ("sample", "parameter"))
    starts = range(0, len(rows), rows_at_once)
    made = []
    for start in tqdm(starts, "replicate", unit="call", leave=False, disable=len(starts) < 2):
        part = rows[start : start + rows_at_once]
        try:
            found = variable(simulate(part), "observation", ("sample",))
        except TypeError as error:
            error.add_note(f"the parameters are a {type(part).__name__}; np.asarray(p) is bare")
            raise
        if len(found) != len(part):
            raise ValueError(
                f"simulate returned {len(found)} observations for {len(part)} parameters; "
                "it must return one for each row"
            )
        made.append(found.copy())  # which it may fill anew at the next call
    whole = np.concatenate([np.asarray(part) for part in made])
    whole = whole.reshape(*used.shape[:2], *whole.shape[1:])
    if not isinstance(made[0], xr.DataArray):
        return whole
    rest = made[0].dims[1:]
    kept = {name: c for name, c in made[0].coords.items() if set(c.dims) <= set(rest)}
    return xr.DataArray(whole, dims=("draw", "sample", *rest), coords=kept, name="observation")


def predictive(
    observation: Labelled,
    replicated: Labelled,
    *,
    seed: int = 0,
) -> xr.DataTree:
    """Compare observations with replicates drawn from their own posteriors.

    A posterior that is calibrated on simulations says nothing of a real observation; but if what
    it predicts does not look like the observation, model or posterior is wrong. The p-values use
    the observation twice and so are conservative: they crowd around ½ where all is well. Missing
    values (NaN) of the observation are left out of its replicates too; replicates that failed (all
    NaN) are not counted.

    Args:
        observation: (sample, time, …).
        replicated: (draw, sample, time, …): `replicate(simulate, posterior)`.
        seed: of the random numbers that break ties.

    Returns:
        The groups `observed_data` and `posterior_predictive`, as ArviZ plots them, and `check`:
        `p_value (statistic, sample)`, two-sided, of the mean, standard deviation, extremes and
        roughness (mean square of neighbours' differences) of each series; `inside (level,
        sample)`: the share of its values within the central band of each level; `failed (sample)`.

    Raises:
        ValueError: axes do not fit, there are fewer than 2 replicates, or none is finite.

    Source: A. Gelman, X.-L. Meng, H. Stern, Statistica Sinica 6 (1996) 733.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> seen, replicated = rng.normal(size=(20, 5)), rng.normal(size=(100, 20, 5))
    >>> sorted(predictive(seen, replicated).check.data_vars)
    ['failed', 'inside', 'p_value']
    """
    dims, observed = series(observation, ("sample",))
    observed = np.asarray(observed, np.float64)
    copies = variable(replicated, "observation", ("draw", "sample"))
    like = variable(observation, "observation", ("sample",))
    if isinstance(like, xr.DataArray):
        copies = measured_alike(copies, like.expand_dims("draw"), "replicates")
    copies = belonging(copies, like, "the replicates")
    copies = np.asarray(copies, np.float64)
    alive = check(observed, copies)
    hidden = np.where(np.isnan(observed), np.nan, copies)
    rng = np.random.default_rng(seed)
    found = [one_sample(observed[i], hidden[alive[:, i], i], rng) for i in range(len(observed))]
    p_values, inside = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    checks = xr.Dataset(
        {
            "p_value": (("statistic", "sample"), p_values),
            "inside": (("level", "sample"), inside),
            "failed": ("sample", (~alive).sum(axis=0)),
        },
        coords={"statistic": list(STATISTICS), "level": list(LEVELS)},
    )
    replicates = (("chain", "draw", *dims), copies[None])
    return xr.DataTree.from_dict(
        {
            "observed_data": counted({"observation": (dims, observed)}, like),
            "posterior_predictive": counted({"observation": replicates}, like),
            "check": checks,
        }
    )


def roughness(values: np.ndarray) -> np.ndarray:
    """Return the mean square difference of neighbours along the second axis."""
    if values.shape[1] < 2:
        return np.zeros(len(values))
    square = np.square(np.diff(values, axis=1)).reshape(len(values), -1)
    return np.nansum(square, axis=1) / np.maximum((~np.isnan(square)).sum(axis=1), 1)


def flattened(statistic: Callable[..., np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a statistic of all numbers of each series."""
    return lambda values: statistic(values.reshape(len(values), -1), axis=1)


STATISTICS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": flattened(np.nanmean),
    "sd": flattened(np.nanstd),
    "lowest": flattened(np.nanmin),
    "highest": flattened(np.nanmax),
    "roughness": roughness,
}


def one_sample(
    observed: np.ndarray, copies: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values (statistic) and shares inside the bands (level) of one observation."""
    p_values = []
    for statistic in STATISTICS.values():
        place = rank(statistic(copies)[:, None], statistic(observed[None]), rng.random(1)).pit[0]
        p_values.append(2 * min(place, 1 - place))
    seen = ~np.isnan(observed)
    place = rank(copies[:, seen], observed[seen], rng.random(int(seen.sum()))).pit
    off = np.abs(2 * place - 1)
    return np.array(p_values), np.array([np.mean(off <= level) for level in LEVELS])


def check(observed: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return which replicates (draw, sample) did not fail; refuse those that fit nothing."""
    if copies.ndim < 3 or copies.shape[1:] != observed.shape or len(copies) < 2:
        raise ValueError(
            f"replicated has shape {copies.shape}; to fit the observation it must be "
            f"{('2 or more', *observed.shape)}"
        )
    axes = tuple(range(2, copies.ndim))
    alive = np.asarray(np.isfinite(copies).all(axis=axes))
    lost = (alive.sum(axis=0) < 2) | np.isnan(observed).all(axis=tuple(range(1, observed.ndim)))
    if lost.any():
        raise ValueError(
            f"{int(lost.sum())} of {len(lost)} samples have no two finite replicates, or no "
            "observed value; leave them out"
        )
    return alive
