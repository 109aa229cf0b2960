"""How far draws of a net can be trusted at the very observations that they are of."""

import logging
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import logsumexp

from sciml._labels import Observed, truths
from sciml._session import as_usual
from sciml.diagnose import Classifier, local_c2st
from sciml.ode.blackbox import BlackBox
from sciml.ode.coordinates import Coordinates
from sciml.ode.data.evidence import check_seen
from sciml.ode.data.simulate import simulate
from sciml.ode.methods.solver import Problem, chosen_method
from sciml.ode.prior import names_of
from sciml.reference.likelihood import log_likelihood
from sciml.reference.observed import check_observations, conditions_of, observed_by
from sciml.reference.proposals import Density, Proposals, check_proposal, log_joint
from sciml.reference.sharpness import normal_scores, too_wide
from sciml.reference.student import unbounded
from sciml.reference.target import priors_of

log = logging.getLogger(__name__)

DRAWS = 500  # assumed: draws that are weighed, and solutions for each observation
SIMULATIONS = 2000  # assumed: for the local C2ST, with as many draws
NULLS = 39  # derived: p-values down to 0.025
SMALL = Classifier(units=16)  # measured: finds more than 32 do, in 0.4 of the time
DOUBT = 0.75  # derived: where half of the draws would have to move elsewhere
WIDE = 1.4  # assumed: of 80 exact posteriors one has more, docs/lab/too-wide.md
LEVEL = 0.05  # assumed: share of right posteriors that a local C2ST doubts
ROWS = 2**15  # assumed: proposals at once; of 1000 values each they take 130 MB
FEW = 10.0  # assumed: effective draws, below which weights tell no width

LogWeights = Float[np.ndarray, "draw sample"]
Rows = Float[np.ndarray, "draw sample param"]


@as_usual
def trust(proposal: Density, problem: Problem, observed: Observed, *, seed: int = 0) -> xr.Dataset:
    """Return by how much the draws of a net differ from the posterior at each observation.

    Where the likelihood is known, 500 draws θ ~ q(θ | x) have weights w ∝ p(θ) p(x | θ) / q(θ | x)
    of mean 1. The best classifier of draws against the posterior is right with probability

        c2st = ½ + ¼ ⟨|w − 1|⟩,

    ½ where q is the posterior and 1 where they share nothing; `effective` = 1 / ⟨w²⟩ is the share
    of the draws that they are worth. A width that is wrong in one parameter moves few draws: it is
    1/σ_w times that of the posterior, σ_w² being the weighted variance of normal scores of θ, which
    have unit variance by themselves; or of θ over its own spread, and of θ on the whole line, where
    a few far draws made both large. Where the likelihood is not known, 2000 simulations and as
    many draws train the classifiers of `sciml.diagnose.local_c2st`, which see draws that are wrong
    given what the net has learned; 1000 simulations at the draws of each observation tell whether
    more could be learned: `sciml.reference.sharpness`. Of a fit that was refined only the latter is
    asked.

    Args:
        proposal: a fit of a posterior net.
        problem: whose likelihood or simulations are asked; its noise is that of the fit.
        observed: `observation (sample, …)`.
        seed: of draws and simulations.

    Returns:
        `doubted (sample)`: c2st above 0.75, or p below 0.05, or draws 1.4 times too wide, or by
        weight 1.4 times too narrow. `too_wide (sample, parameter)`: how many times they are too
        wide, without likelihood at least. `c2st` and `effective (sample)`; or but for a refined fit
        `p_value` and `statistic (sample)` of the local C2ST. A mode far away that a net does not
        have is not seen.

    Raises:
        ValueError: observations that the problem cannot give.

    >>> import sciml
    >>> from numpyro.distributions import Normal
    >>> line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    >>> data = sciml.simulate(line, samples=1000, noise=line.noise)
    >>> fit = sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=20)
    >>> seen = sciml.simulate(line, parameters=[[1.0]], noise=line.noise).observation
    >>> found = sciml.reference.trust(fit, line, seen)
    >>> bool(0.5 <= found.c2st[0] < 0.9)
    True
    """
    found = judgement(proposal, problem, observed, seed)
    if "c2st" in found:
        warn_of_width(found.too_wide, "too wide by their weights")
        warn_of_width(1 / found.too_wide, "too narrow by their weights, at least")
    else:
        warn_of_width(found.too_wide, "too wide by simulations at the draws, at least")
    return found


def judgement(proposal: Density, problem: Problem, observed: Observed, seed: int) -> xr.Dataset:
    """Return what `trust` does, without a warning."""
    check_proposal(proposal)
    observed = observed_by(proposal, observed)
    noise = getattr(problem, "noise", None)
    if isinstance(problem, BlackBox):  # the shape of its observations is known to the fit alone
        check_seen(observed.values)
    else:
        check_observations(problem, observed, noise)
    if not weighable(problem, tuple(proposal.sample(observed[:1], 1, 0).parameter.values)):
        return doubts(proposal, problem, observed, seed)
    log_weight, theta = weighed(proposal, problem, observed, seed)
    c2st, effective = of_weights(log_weight)
    free = Coordinates.of(priors_of(problem, noise))
    found = widths(theta.values, unbounded(free, theta.values)[0], log_weight)
    times = np.where(effective[:, None] < FEW / DRAWS, np.nan, found)
    off = ((times > WIDE) | (times < 1 / WIDE)).any(axis=1)
    return xr.Dataset(
        {
            "doubted": ("sample", off | (c2st > DOUBT)),
            "c2st": ("sample", c2st),
            "effective": ("sample", effective),
            "too_wide": (("sample", "parameter"), times),
        },
        {"parameter": theta.parameter},
        {"check": f"likelihood weights of {len(log_weight)} draws"},
    )


def weighable(problem: Problem, names: tuple[str, ...]) -> bool:
    """Tell whether the likelihood is known, and depends on what the net estimates alone."""
    noise = getattr(problem, "noise", None)
    return has_likelihood(noise) and names_of(priors_of(problem, noise)) == names


def has_likelihood(noise: Any) -> bool:
    """Tell whether a noise, and each that it is made of, has a density."""
    if noise is None or log_likelihood.dispatch(type(noise)) is log_likelihood.dispatch(object):
        return False
    parts = [*getattr(noise, "noises", {}).values(), getattr(noise, "noise", None)]
    return all(has_likelihood(part) for part in parts if part is not None)


def weighed(
    proposal: Density, problem: Problem, observed: xr.DataArray, seed: int
) -> tuple[LogWeights, xr.DataArray]:
    """Return ln p(θ) p(x | θ) / q(θ | x) of draws, up to a constant each, and the draws θ."""
    method = chosen_method(problem)
    density = log_joint(problem, problem.noise, method)
    drawn: list[xr.DataArray] = []
    parts, each = [], max(1, ROWS // DRAWS)
    for start in range(0, len(observed), each):
        some = observed[start : start + each]
        theta = proposal.sample(some, draws=DRAWS, seed=seed + start).posterior
        made = Proposals.of(proposal, density, some, theta.values).without_border()
        parts.append(made.log_weight())
        drawn.append(theta)
    return np.concatenate(parts, axis=1), xr.concat(drawn, "sample")


def shares(log_weight: LogWeights) -> Float[np.ndarray, "draw sample"]:
    """Return weights that sum to 1; all alike where none is finite."""
    known = np.where(np.isfinite(log_weight).any(axis=0), log_weight, 0.0)
    return np.exp(known - np.asarray(logsumexp(known, axis=0)))


def widths(theta: Rows, free: Rows, log_weight: LogWeights) -> Float[np.ndarray, "sample param"]:
    """Return how many times draws are wider than by weight, in normal scores by rank.

    Or in θ and on the whole line both, where that is more: a few far draws keep their ranks and
    make a spread large. In θ alone it would be the long tail of a skewed posterior.
    """
    share = shares(log_weight)[..., None]
    scores = np.stack([normal_scores(each) for each in np.moveaxis(theta, 1, 0)], axis=1)
    by_rank = times_wider(scores, share)
    plain = times_wider(theta, share)
    usable = np.isfinite(free)  # not on the border of the support
    least = np.minimum(plain, times_wider(np.where(usable, free, 0.0), share))
    plain = np.where(usable.all(axis=0), least, plain)
    return np.where(plain > np.maximum(by_rank, 1), plain, by_rank)


def times_wider(values: Rows, share: Any) -> Float[np.ndarray, "sample param"]:
    """Return the spread of values over that by weight; NaN where all are one."""
    values = np.float64(values) - np.float64(values).mean(axis=0)
    spread = np.where(np.ptp(values, axis=0) > 0, values.std(axis=0), np.nan)
    values = values / spread
    mean = (share * values).sum(axis=0)
    variance = (share * np.square(values - mean)).sum(axis=0)  # about its own mean
    return np.sqrt((1 - np.square(share).sum(axis=0)) / np.maximum(variance, 1e-9))


def of_weights(log_weight: LogWeights) -> tuple[np.ndarray, np.ndarray]:
    """Return the C2ST that weights tell of, and the share that the draws are worth."""
    lost = ~np.isfinite(log_weight).any(axis=0)
    share, count = shares(log_weight), len(log_weight)
    c2st = 0.5 + 0.25 * np.abs(count * share - 1).mean(axis=0)
    effective = 1 / (count * np.square(share).sum(axis=0))
    return np.where(lost, 1.0, c2st), np.where(lost, 0.0, effective)


def doubts(proposal: Density, problem: Problem, observed: xr.DataArray, seed: int) -> xr.Dataset:
    """Return what simulations alone say: those at the draws, and from the prior a local C2ST.

    A fit that was refined answers at one observation; simulations from the prior say nothing of it.
    """
    wide = too_wide(proposal, problem, observed, seed + 3)
    if wide.isnull().any():
        log.warning("most simulations at draws of an observation fail: do not trust them")
    doubted, check = ~(wide <= WIDE).all("parameter"), "simulations at the draws"
    if "refinement" in getattr(proposal, "attrs", {}):
        return xr.Dataset({"doubted": doubted, "too_wide": wide}, attrs={"check": check})
    found = by_classifiers(proposal, problem, observed, seed)
    return xr.Dataset(
        {
            "doubted": (found.p_value < LEVEL) | doubted,
            "p_value": found.p_value,
            "statistic": found.statistic,
            "too_wide": wide,
        },
        attrs={"check": f"local C2ST of {found.attrs['simulations']} simulations, and {check}"},
    )


def by_classifiers(
    proposal: Density, problem: Problem, observed: xr.DataArray, seed: int
) -> xr.Dataset:
    """Return the local C2ST of each observation."""
    noise = getattr(problem, "noise", None)
    data = simulate(problem, SIMULATIONS, seed=seed + 1, noise=noise)
    data = data.isel(sample=data.valid.values)
    truth = truths(data)
    drawn = proposal.sample(data, draws=2, seed=seed).posterior
    at = proposal.sample(observed, draws=DRAWS, seed=seed + 2).posterior
    pairs = [with_inputs(problem, each) for each in (data.observation, observed)]
    options: dict[str, Any] = {"classifier": SMALL, "nulls": NULLS, "seed": seed}
    found = local_c2st(drawn, truth, pairs[0], at=(at, pairs[1]), **options)
    return found.assign_attrs(simulations=len(truth))


def warn_of_width(times: xr.DataArray, how: str) -> None:
    """Say which draws have a wrong width, and what to do."""
    values = times.transpose("sample", "parameter").values
    off = np.flatnonzero((values > WIDE).any(axis=1))
    if len(off):
        i = off[np.nanmax(values[off], axis=1).argmax()]
        worst = int(np.nanargmax(values[i]))
        log.warning(
            "draws of %d of %d observations are %s: those of observation %d %.1f times in %s; fit "
            "to more simulations, or pass this observation to sciml.refine",
            *(len(off), len(values), how, i, values[i, worst], times.parameter.values[worst]),
        )


def with_inputs(problem: Problem, observed: xr.DataArray) -> xr.DataArray | np.ndarray:
    """Return observations, where there are conditions as rows of both, on which draws depend."""
    if not problem.conditions:
        return observed
    known = conditions_of(problem, observed, len(observed))
    return np.concatenate([observed.values.reshape(len(observed), -1), known], axis=1)
