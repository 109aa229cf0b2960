"""Tests of accuracy with random points: is the truth as far from a point as the draws are?"""

from typing import Any

import numpy as np
import xarray as xr

from sciml._labels import Labelled, by_name, labels_of, truths, variable
from sciml.diagnose.draws.uniformity import uniformity
from sciml.diagnose.pairs import Pairs, Posterior, belonging, pair
from sciml.diagnose.rank import Rank, join, rank
from sciml.diagnose.samples.features import flat

FOLDS = 5
RIDGES = np.logspace(-3, 5, 9)  # penalties among which cross-validation chooses


def tarp(
    posterior: Posterior,
    truth: Labelled,
    *,
    references: Labelled | None = None,
    probability: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Return the expected coverage of balls around reference points.

    Parameters are scaled to [0, 1] by the range of the truths. For each sample, f is the share of
    draws nearer to a reference point θ_r than the truth is: f = #{|θ_s − θ_r| < |θ* − θ_r|} / S,
    with a random number filling the gap to the next share, so that f is uniform exactly if q is
    the posterior. The coverage of level 1 − α is the share of samples with f ≤ 1 − α.

    Random reference points that know nothing of x see wrong dependence among parameters, which
    ranks of single parameters miss, but they need many samples, and a posterior that equals the
    prior passes. Only points that depend on x make the test sufficient: take `informed_references`.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples.
        truth: `parameters (sample, parameter)`.
        references: points (sample, parameter), which may depend on x but never on the truth of the
            same sample; without them they are uniform over the range of the truths.
        probability: of the band.
        seed: of the references and of the random numbers that fill the gaps.

    Returns:
        `fraction (sample)`, `coverage, lower, upper (level)`, `ks_p`, `chi2_p`, `p_value` (of
        leaving the band so far), and `area` = ∫_½^1 (coverage − level) d level: negative where
        over-confident, positive where under-confident; biased posteriors have fractions near 0
        and 1 as the references fall.

    Raises:
        ValueError: shapes do not fit, or a value is not finite.

    Source: P. Lemos, A. Coogan, Y. Hezaveh, L. Perreault-Levasseur, Sampling-based accuracy testing
    of posterior estimators, ICML 2023, arXiv 2302.03026.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 2))
    >>> draws = rng.normal(size=(100, 200, 2))
    >>> float(tarp(draws, truth).p_value) > 0.01
    True
    """
    pairs = pair(posterior, truth)
    rng = np.random.default_rng(seed)
    points = reference_points(pairs, references, rng)
    uniform = rng.random(len(points))
    parts = [
        distance_rank(pairs, d, points, i, uniform) for i, d in pairs.chunks(label="references")
    ]
    return judge_tarp(join(parts), probability)


def distance_rank(
    pairs: Pairs, draws: np.ndarray, points: np.ndarray, indices: np.ndarray, uniform: np.ndarray
) -> Rank:
    """Return the rank of the truth's distance from its reference among those of the draws."""
    low, high = pairs.truth.min(axis=0), pairs.truth.max(axis=0)
    scale = np.where(high > low, high - low, 1.0)
    there = points[indices]
    of_draws = np.square((draws - there) / scale).sum(axis=-1)
    of_truth = np.square((pairs.truth[indices] - there) / scale).sum(axis=-1)
    return rank(of_draws, of_truth, uniform[indices])


def judge_tarp(found: Rank, probability: float = 0.95) -> xr.Dataset:
    """Return the coverage of the balls, from the fractions of nearer draws (sample)."""
    judged = uniformity(found.pit[:, None], probability).isel(quantity=0)
    judged = judged.rename(ecdf="coverage", ecdf_p="p_value")
    level = np.concatenate([[0.0], judged.level.values, [1.0]])
    off = np.concatenate([[0.0], judged.coverage.values - judged.level.values, [0.0]])
    area = np.trapezoid(off[level >= 0.5], level[level >= 0.5])
    kept = judged[["coverage", "lower", "upper", "ks_p", "chi2_p", "p_value"]]
    return kept.assign(fraction=("sample", found.pit), area=float(area))


def reference_points(
    pairs: Pairs, references: Labelled | None, rng: np.random.Generator
) -> np.ndarray:
    """Return the given points, or random ones over the range of the truths."""
    if references is None:
        low, high = pairs.truth.min(axis=0), pairs.truth.max(axis=0)
        return low + (high - low) * rng.random(pairs.truth.shape)
    given = variable(references, "references", ("sample", "parameter"))
    points = np.asarray(given, np.float64)
    if given.ndim == 2:
        points = np.asarray(by_name(given, pairs.names, "the references"), np.float64)
    if points.shape != pairs.truth.shape or not np.isfinite(points).all():
        raise ValueError(
            f"references have shape {points.shape}; they must be finite and, as the truth, "
            f"{pairs.truth.shape}"
        )
    return points


def informed_references(observation: Labelled, truth: Labelled, *, seed: int = 0) -> Any:
    """Return points that depend on the observations: linear estimates of θ from x, cross-fitted.

    Every estimate comes from a ridge regression on the other four fifths of the samples, so it is
    a function of its own x alone. With such points `tarp` also sees a posterior that ignores x.

    Args:
        observation: (sample, …); missing values (NaN) count as the mean.
        truth: `parameters (sample, parameter)`.
        seed: of the split.

    Returns:
        `(sample, parameter)`, with the names of the parameters if these have any.

    Raises:
        ValueError: there are fewer than 10 samples, or the shapes do not fit.

    >>> import numpy as np
    >>> theta = np.random.default_rng(0).normal(size=(100, 2))
    >>> informed_references(theta[:, :1], theta).shape
    (100, 2)
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold

    x = flat(observation)
    values = belonging(truths(truth), variable(observation, "observation", ("sample",)), "truths")
    known = np.asarray(values, np.float64)
    if len(x) != len(known) or len(x) < 2 * FOLDS:
        raise ValueError(
            f"there are {len(x)} observations and {len(known)} truths; "
            f"they must be as many, and at least {2 * FOLDS}"
        )
    points = np.empty(known.shape)
    for rest, fold in KFold(FOLDS, shuffle=True, random_state=seed).split(x):
        mean, sd = np.nanmean(x[rest], axis=0), np.nanstd(x[rest], axis=0)
        z = np.nan_to_num((x - mean) / np.where(sd > 0, sd, 1.0), nan=0.0)
        model = RidgeCV(RIDGES).fit(z[rest], known[rest])
        points[fold] = np.reshape(model.predict(z[fold]), (len(fold), -1))
    return values.copy(data=points) if labels_of(values) else points
