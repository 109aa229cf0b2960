"""How sure scores of point estimates are: intervals by resampling."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from sciml._labels import Labelled
from sciml.diagnose.point.recovery import SCORES, in_order, recovery, scores

FEWEST = 10


def bootstrap(
    truth: Labelled,
    estimate: Labelled,
    *,
    names: tuple[str, ...],
    regimes: Mapping[str, Bool[np.ndarray, " sample"]] | None = None,
    resamples: int = 500,
    probability: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Return the scores of `recovery` with their intervals.

    Samples are drawn with replacement, and so are the repetitions of a training with other seeds:
    the interval says what another test set, and another training, would give. A score is the mean
    over repetitions; its interval runs between quantiles of the resampled scores.

    Args:
        truth: parameters of the test set; named ones are put into the order of `names`.
        estimate: (sample, param), or (seed, sample, param) from repeated trainings.
        names: of the parameters.
        regimes: name → mask of samples; "all" is always reported.
        resamples: how often to resample.
        probability: of the intervals.
        seed: of the resampling.

    Returns:
        `r2, mse, mae, median_se, p90_se (regime, parameter)`, each with `…_low` and `…_high`, and
        `samples (regime)`. With one repetition the intervals tell of the test set alone; with a few
        they are too narrow, since a few seeds span little.

    Raises:
        ValueError: shapes differ, a value is not finite, or there are fewer than 10 resamples.

    >>> import numpy as np
    >>> truth = np.random.default_rng(0).normal(size=(50, 1))
    >>> found = bootstrap(truth, truth[None] + 0.1, names=("a",), resamples=20)
    >>> bool((found.r2_low < found.r2_high).all())
    True
    """
    repeated = () if np.ndim(estimate) == 2 else ("seed",)
    truth, runs = in_order(truth, estimate, names, *repeated)
    runs = runs[None] if runs.ndim == 2 else runs
    check(truth, runs, resamples, probability)
    masks = dict(regimes or {})
    whole = [recovery(truth, run, names=names, regimes=masks) for run in runs]
    found = sum(whole[1:], whole[0])[list(SCORES)] / len(whole)
    everything = np.ones(len(truth), bool)
    intervals = [
        interval(truth[mask], runs[:, mask], resamples, probability, seed)
        for mask in (everything, *masks.values())
    ]
    low, high = np.stack(intervals, axis=1)
    dims = ("regime", "parameter")
    for i, name in enumerate(SCORES):
        found[f"{name}_low"], found[f"{name}_high"] = (dims, low[:, i]), (dims, high[:, i])
    return found.assign(samples=whole[0].samples).assign_attrs(
        resamples=resamples, probability=probability, repetitions=len(runs)
    )


def interval(
    truth: np.ndarray, runs: np.ndarray, resamples: int, probability: float, seed: int
) -> Float[np.ndarray, "end score param"]:
    """Return the ends of the intervals of all scores; NaN without samples."""
    if not len(truth):
        return np.full((2, len(SCORES), truth.shape[1]), np.nan)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        samples = rng.integers(len(truth), size=len(truth))
        seeds = rng.integers(len(runs), size=len(runs))
        rows = [scores(truth[samples], runs[s, samples]) for s in seeds]
        drawn.append(np.mean([[row[name] for name in SCORES] for row in rows], axis=0))
    tails = (1 - probability) / 2
    return np.quantile(drawn, [tails, 1 - tails], axis=0)


def learning_curve(
    truth: Labelled,
    estimates: Mapping[int, Labelled],
    *,
    names: tuple[str, ...],
    resamples: int = 500,
    seed: int = 0,
) -> xr.Dataset:
    """Return `bootstrap` of nets trained on ever more samples, along `training_samples`.

    Args:
        truth: parameters of one test set.
        estimates: number of training samples → estimates, with repetitions or without.
        names: of the parameters.
        resamples: how often to resample.
        seed: of the resampling.

    Raises:
        ValueError: there are no estimates, or `bootstrap` refuses them.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> draw = np.random.default_rng(0)
    >>> truth = draw.uniform(size=(50, 1))
    >>> guesses = {n: truth + draw.normal(size=(50, 1)) / n for n in (10, 100)}
    >>> curve = diagnose.learning_curve(truth, guesses, names=("rate",), resamples=20)
    >>> curve.training_samples.values.tolist()
    [10, 100]
    """
    if not estimates:
        raise ValueError("estimates is empty; give a number of training samples → estimates")
    sizes = sorted(estimates)
    parts = [
        bootstrap(truth, estimates[size], names=names, resamples=resamples, seed=seed)
        for size in sizes
    ]
    curve = xr.concat(parts, "training_samples", combine_attrs="override").isel(regime=0, drop=True)
    return curve.assign_coords(training_samples=sizes)


def check(truth: np.ndarray, runs: np.ndarray, resamples: int, probability: float) -> None:
    """Refuse estimates that do not fit the truth, and intervals that mean nothing."""
    if runs.ndim != 3 or runs.shape[1:] != truth.shape:
        raise ValueError(
            f"estimate has shape {runs.shape}; it must be {truth.shape}, or (seed, *{truth.shape})"
        )
    if not (np.isfinite(truth).all() and np.isfinite(runs).all()):
        odd = sum(int((~np.isfinite(x)).sum()) for x in (truth, runs))
        raise ValueError(f"truth or estimate has values that are not finite, {odd}; leave them out")
    if resamples < FEWEST or not 0 < probability < 1:
        raise ValueError(
            f"resamples is {resamples} and probability {probability}; "
            f"take {FEWEST} or more, better 500, and a probability within (0, 1)"
        )
