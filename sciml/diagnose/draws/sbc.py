"""Simulation-based calibration: ranks of truths among posterior draws."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from sciml._labels import Labelled, variable
from sciml.diagnose.draws.uniformity import uniformity
from sciml.diagnose.pairs import Posterior, pair
from sciml.diagnose.rank import Rank, join, rank


def sbc(
    posterior: Posterior,
    truth: Labelled,
    *,
    quantities: Mapping[str, tuple[Labelled, Labelled]] | None = None,
    probability: float = 0.95,
    seed: int = 0,
) -> xr.Dataset:
    """Return the ranks of the truths among the posterior draws, and whether they are uniform.

    θ* ~ p(θ), x ~ p(x | θ*), θ₁ … θ_S ~ q(θ | x): if q is the posterior, the rank of θ* among the
    draws is uniform on 0 … S, for each parameter. A ∪-shaped histogram of ranks says that q is too
    narrow, a ∩-shaped one that it is too wide, a slope that it is biased.

    The prior itself passes this test, and so does a posterior with the right marginals and a wrong
    dependence. Ranks of quantities that depend on the data, such as the log-likelihood, see both:
    pass them as `quantities`.

    Args:
        posterior: `posterior (draw, sample, parameter)`, or a function from indices of samples.
        truth: `parameters (sample, parameter)`.
        quantities: name → (its value for each draw (draw, sample), for the truth (sample)).
        probability: with which a calibrated posterior stays within the bands.
        seed: of the random numbers that break ties.

    Returns:
        `rank, pit (sample, parameter)`, where quantities follow the parameters, and what
        `uniformity` says of each: `chi2_p, ks_p, ecdf_p (parameter)`, `ecdf (level, parameter)`,
        `lower, upper (level)`, `count (bin, parameter)`, `count_low, count_high`.

    Raises:
        ValueError: shapes do not fit, or a value is not finite.

    Source: S. Talts et al., arXiv 1804.06788; data-dependent quantities: M. Modrák et al., Bayesian
    Analysis 20 (2025), arXiv 2211.02383.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 2))
    >>> draws = rng.normal(size=(100, 200, 2))
    >>> bool((sbc(draws, truth).ecdf_p > 0.01).all())
    True
    """
    pairs = pair(posterior, truth)
    rng = np.random.default_rng(seed)
    uniform = rng.random(pairs.truth.shape)
    parts = [rank(d, pairs.truth[i], uniform[i]) for i, d in pairs.chunks(label="ranks")]
    extra = {
        name: rank(*check_quantity(name, *values, samples=len(uniform)), rng.random(len(uniform)))
        for name, values in (quantities or {}).items()
    }
    found = join(parts)
    ranks = np.column_stack([found.rank, *(one.rank for one in extra.values())])
    pit = np.column_stack([found.pit, *(one.pit for one in extra.values())])
    return judge_ranks(Rank(ranks, pit), (*pairs.names, *extra), pairs.draws, probability)


def judge_ranks(
    found: Rank, names: tuple[str, ...], draws: int, probability: float = 0.95
) -> xr.Dataset:
    """Return ranks (sample, parameter) with their tests of uniformity."""
    judged = uniformity(found.pit, probability).rename(quantity="parameter")
    dims = ("sample", "parameter")
    judged = judged.assign(rank=(dims, found.rank), pit=(dims, found.pit))
    return judged.assign_coords(parameter=list(names)).assign_attrs(draws=draws)


def check_quantity(
    name: str, draws: Labelled, truth: Labelled, *, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a quantity as finite arrays (draw, sample) and (sample)."""
    values = np.asarray(variable(draws, name, ("draw", "sample")), np.float64)
    known = np.asarray(truth, np.float64)
    if values.ndim != 2 or values.shape[1:] != (samples,) or known.shape != (samples,):
        raise ValueError(
            f"{name} has shapes {values.shape} for draws and {known.shape} for the truth; "
            f"they must be (draw, {samples}) and ({samples},)"
        )
    if np.isnan(values).any() or np.isnan(known).any():
        raise ValueError(f"{name} has values that are not numbers; give every draw one")
    return values, known
