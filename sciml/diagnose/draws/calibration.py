"""One call for all that posterior draws and truths alone can say."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import xarray as xr

from sciml.diagnose.draws.arviz_tree import leaf
from sciml.diagnose.draws.contraction import judge_contraction
from sciml.diagnose.draws.coverage import central, highest, judge_coverage
from sciml.diagnose.draws.sbc import judge_ranks
from sciml.diagnose.draws.tarp import distance_rank, judge_tarp, reference_points
from sciml.diagnose.pairs import MEMORY_BYTES, Labelled, Pairs, Posterior, pair
from sciml.diagnose.rank import join, rank

LogProb: TypeAlias = Callable[[np.ndarray, np.ndarray], Labelled]


def calibration(
    posterior: Posterior,
    truth: Labelled,
    *,
    log_prob: LogProb | None = None,
    references: Labelled | None = None,
    prior: Labelled | None = None,
    seed: int = 0,
    memory_bytes: int = MEMORY_BYTES,
) -> xr.DataTree:
    """Return ranks, coverage, TARP and contraction, from one pass over the draws.

    The pass goes chunk by chunk with a progress bar and keeps a few numbers per sample; where
    `posterior` is a function, no more draws than one chunk exist at any time.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples to
            such draws, as `lambda i: fit.sample(data.isel(sample=i), seed=int(i[0]))`. With one
            seed for all chunks would share random numbers; the tests count on none shared.
        truth: `parameters (sample, parameter)`.
        log_prob: (parameters (sample, parameter), indices of samples) → log q(θ | x) (sample),
            called draw by draw; adds the joint coverage by highest density.
        references: for TARP: `informed_references(observation, truth)`.
        prior: draws (draw, parameter) for the contraction; without them the truths.
        seed: of everything random. A random number belongs to a place: another order of the
            parameters changes p-values as another seed does, and ranks not at all.
        memory_bytes: which a chunk may take.

    Returns:
        A tree of groups: `checks` with `p_value, adjusted (check)`, of every test, and corrected
        for their number by Holm's rule; `sbc`, `coverage`, `tarp`, `contraction`, as the functions
        of these names return them; `prior_sbc`, which `arviz_plots.plot_ecdf_pit` plots.

    Raises:
        ValueError: shapes do not fit, or a value is not finite.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 2))
    >>> draws = rng.normal(size=(100, 200, 2))
    >>> float(calibration(draws, truth).checks.adjusted.min()) > 0.01
    True
    """
    pairs = pair(posterior, truth)
    rng = np.random.default_rng(seed)
    uniform = rng.random(pairs.truth.shape)
    points = reference_points(pairs, references, rng)
    gap, joint_gap = rng.random((2, len(points)))
    ranks, balls, joint, means, variances = [], [], [], [], []
    for indices, draws in pairs.chunks(memory_bytes, "calibration"):
        ranks.append(rank(draws, pairs.truth[indices], uniform[indices]))
        balls.append(distance_rank(pairs, draws, points, indices, gap))
        means.append(draws.mean(axis=0))
        variances.append(draws.var(axis=0, ddof=1))
        if log_prob is not None:
            joint.append(density_rank(pairs, draws, indices, log_prob, joint_gap))
    found = join(ranks)
    credibility, names = central(found.pit), pairs.names
    if joint:
        credibility = np.column_stack([credibility, highest(np.concatenate(joint))])
        names = (*names, "joint")
    mean, variance = np.concatenate(means), np.concatenate(variances)
    parts = {
        "sbc": judge_ranks(found, pairs.names, pairs.draws),
        "coverage": judge_coverage(credibility, names),
        "tarp": judge_tarp(join(balls)),
        "contraction": judge_contraction(mean, variance, pairs.truth, pairs.names, prior=prior),
    }
    leaves = map(leaf, pairs.names)
    pit = {n: (("chain", "draw"), u[None]) for n, u in zip(leaves, found.pit.T, strict=True)}
    return xr.DataTree.from_dict(
        {"checks": summary(parts), **parts, "prior_sbc": xr.Dataset(pit)}, name="calibration"
    )


def density_rank(
    pairs: Pairs, draws: np.ndarray, indices: np.ndarray, log_prob: LogProb, gap: np.ndarray
) -> np.ndarray:
    """Return the rank of the truth's density among those of the draws, as a fraction."""
    known = np.asarray(log_prob(pairs.truth[indices], indices), np.float64)
    values = np.stack([np.asarray(log_prob(draw, indices), np.float64) for draw in draws])
    if known.shape != (len(indices),) or np.isnan(values).any() or np.isnan(known).any():
        raise ValueError(
            f"log_prob returned shape {known.shape} for {len(indices)} samples, or values that are "
            f"not numbers; it must return ({len(indices)},)"
        )
    return rank(values, known, gap[indices]).pit


def summary(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """Return the p-value of every check, and corrected for their number."""
    found = {
        **{f"ranks of {n}": p for n, p in parts["sbc"].ecdf_p.to_series().items()},
        **{f"coverage of {n}": p for n, p in parts["coverage"].p_value.to_series().items()},
        "TARP": float(parts["tarp"].p_value),
    }
    p_values = np.array(list(found.values()))
    return xr.Dataset(
        {"p_value": ("check", p_values), "adjusted": ("check", holm(p_values))},
        coords={"check": list(found)},
        attrs={"samples": parts["sbc"].sizes["sample"], "draws": parts["sbc"].attrs["draws"]},
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return p-values corrected for their number, valid however the tests depend on each other."""
    order = np.argsort(p_values)
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
