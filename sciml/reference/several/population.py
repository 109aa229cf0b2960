"""A population: its mean and spread, and its members, from the posterior of each by itself."""

import json
import logging
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import binom

from sciml._arguments import check_whole
from sciml._labels import Observed, of_samples
from sciml._session import as_usual
from sciml.ode.methods.solver import Problem
from sciml.ode.prior import Corner, Prior, ends, parts
from sciml.provenance import provenance
from sciml.reference.proposals import Density, Proposals
from sciml.reference.several.hierarchy import AGREE, Hyper, run, settled
from sciml.reference.several.individuals import Individuals, filled, usable

log = logging.getLogger(__name__)

WIDER = 2.25  # assumed: variance of proposals about the population, over that of the population
FEW = 10.0  # assumed: effective proposals of an individual, below which it is flagged
NOISE = 1.0  # sourced: largest variance of the log-likelihood, Talbot & Golomb
OUTSIDE = 0.05, 0.5  # assumed: share of a population there that is told of, and refused
FALSE = 0.05  # share of proper observations that a fit flags


@as_usual
def population(
    proposal: Density,
    problem: Problem | Prior,
    data: Observed,
    *,
    draws: int = 1000,
    proposals: int = 500,
    hyper: Hyper | None = None,
    likelihood: bool = False,
    seed: int = 0,
) -> xr.Dataset:
    """Return the mean and spread of a population, and its members, from one observation of each.

    Every individual i has its own θᵢ. On the whole line, where its prior is about N(0, 1), it is
    sᵢ ~ N(μ, Σ), Σ = diag(σ) R diag(σ). The net's posteriors q(θ | xᵢ) under the prior p of the
    training are used again,

        p(μ, Σ | x₁ … x_n) ∝ p(μ, Σ) Πᵢ ∫ N(s; μ, Σ) q(θ(s) | xᵢ) / p(θ(s)) ds,

    each integral being a mean over the same `proposals`: half of them draws of q, half of Student
    t's about the population so far, weighed against their mixture. NUTS draws μ and Σ. Given these
    the draws of an individual are its proposals taken by weight: between its own posterior and the
    population's mean. What was interrupted begins again, with the same numbers.

    Args:
        proposal: a fit of a posterior net.
        problem: that it was trained on; or its prior alone, name → distribution, for a simulator
            of your own.
        data: `observation (sample, …)`, one individual a sample. Those that are not `valid` or
            missing altogether are left out, and NaN in the result.
        draws: of the population, by four chains; of chains four times as long where they disagree.
        proposals: for each individual.
        hyper: the prior of μ, σ and R.
        likelihood: weigh by the problem's own likelihood in place of the net's, for one solution a
            proposal: the errors of the net then cost efficiency only.
        seed: of everything.

    Returns:
        `mean` and `spread (draw, parameter)`: μ and σ on the scale that the attribute `scale`
        tells as JSON: `identity`, `log` for θ > 0, `logit` between two bounds. `correlation (draw,
        parameter, other)`: R. `median (draw, parameter)`: θ(μ), in the parameters' own units.
        `member (draw, parameter)`: a further individual of this population. `posterior (draw,
        sample, parameter)`: the individuals that were observed. `effective (sample)`: the share
        that an individual's proposals are worth, on average. `flagged (sample)`: fewer than 10 of
        them, left out, or unlike the training. `outside (parameter)`: share of the population where
        the net has seen nothing, beyond the central 99.9 % of the prior. Attributes: `verdict` says
        in words whether the draws can be trusted, `variance` is that of the log-likelihood by its
        proposals (it should be below 1), `r_hat`, `divergences`.

    Raises:
        ValueError: no individual, too few draws, another prior or noise than the fit's, a prior
            with a rule, half of the population where the net has seen nothing, or half of the
            individuals with fewer than 10 effective proposals.
        TypeError: the fit is a point net, or the data are no Dataset.

    Source: Hogg, Myers, Bovy, Astrophys. J. 725:2166-2175, 2010; for the variance Talbot, Golomb,
    Mon. Not. R. Astron. Soc. 526:3495-3503, 2023.

    >>> import sciml
    >>> problem = sciml.ode.sir()
    >>> data = sciml.simulate(problem, 20, noise=problem.noise)  # doctest: +SKIP
    >>> found = sciml.population(proposal, problem, data)  # doctest: +SKIP
    """
    check_whole(100, draws=draws)
    check_whole(40, proposals=proposals)
    hyper = hyper or Hyper()
    observed, kept = usable(proposal, data)
    each = Individuals.of(proposal, problem, observed[kept], likelihood)
    found, told = result(each, observed, kept, (draws, proposals), hyper, seed)
    return found.assign_attrs(
        **told,
        verdict=verdict(found, kept, proposals, told),
        individuals=int(kept.sum()),
        scale=json.dumps(scales(each)),
        likelihood="of the problem" if likelihood else "of the net",
        hyper=str(hyper),
        seed=seed,
        **provenance(),
    )


def result(
    each: Individuals,
    observed: xr.DataArray,
    kept: np.ndarray,
    sizes: tuple[int, int],
    hyper: Hyper,
    seed: int,
) -> tuple[xr.Dataset, dict[str, float]]:
    """Return draws of the population and of its members, and what the sampler says of them."""
    draws, proposals = sizes
    points, log_weight = prepared(each, observed[kept], proposals, seed)
    mean, factor, r_hat, divergences = run(points, log_weight, hyper, draws, seed)
    rng = np.random.default_rng(seed)
    member = mean + np.einsum("tpq,tq->tp", factor, rng.normal(size=mean.shape))
    low, high = each.ends
    beyond = ((member < low) | (member > high)).mean(axis=0)
    chosen, share = shrunken(points, log_weight, mean, factor, rng)
    effective = np.zeros(len(kept))
    effective[kept] = share.mean(axis=1)
    found = labelled(each, observed, kept, (mean, factor, member, chosen)).assign(
        effective=("sample", effective),
        flagged=("sample", flags(each.proposal, observed, kept, effective * proposals)),
        outside=("parameter", beyond),
    )
    variance = float((1 / share - 1).sum(axis=0).mean() / proposals)
    return found, {"variance": variance, "r_hat": r_hat, "divergences": divergences}


def prepared(
    each: Individuals, seen: xr.DataArray, proposals: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return points (sample, draw, param) of every individual, and ln of their weights."""
    rng, count = np.random.default_rng(seed), len(seen)
    seen = seen[filled(count)]
    found = each.drawn(seen, proposals - 2 * (proposals // 4), int(rng.integers(2**31)))
    for _ in range(2):
        mean, cov, _ = settled(*by_sample(each, found, count))
        student = each.student(mean, WIDER * cov, len(seen))
        made = each.look(seen, student.draw(rng, proposals // 4))
        found = found.joined(made, student)
    return by_sample(each, found, count)


def by_sample(each: Individuals, found: Proposals, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and ln of weights by individual, those of the largest weight being about 1.

    Of the first `count` individuals; those behind them fill up a program.
    """
    points, log_weight = (part[:, :count] for part in each.standard(found))
    lost = ~np.isfinite(log_weight).any(axis=0)
    if lost.any():
        raise ValueError(
            f"no draw of individual {lost.argmax()} has any weight ({lost.sum()} of {lost.size} "
            "individuals): its posterior lies at the border of the prior, or the net has not "
            "learned it; leave it out, or fit under a wider prior"
        )
    return np.moveaxis(points, 0, 1), (log_weight - log_weight.max(axis=0)).T


def shrunken(
    points: np.ndarray, log_weight: np.ndarray, mean: np.ndarray, factor: np.ndarray, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return a point of each individual for each draw of the population, (draw, sample, param).

    And which share its proposals are worth there, (sample, draw).
    """
    inverse = np.linalg.inv(factor)
    chosen, worth = [], []
    for own, logs in zip(points, log_weight, strict=True):
        white = np.einsum("tpq,tkq->tkp", inverse, own - mean[:, None])
        share = logs - 0.5 * np.square(white).sum(axis=-1)
        share = np.exp(share - share.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        worth.append(1 / (np.square(share).sum(axis=1) * len(own)))
        at = (np.cumsum(share, axis=1) < rng.uniform(size=(len(share), 1))).sum(axis=1)
        chosen.append(own[np.minimum(at, len(own) - 1)])
    return np.stack(chosen, axis=1), np.array(worth)


def labelled(
    each: Individuals, observed: xr.DataArray, kept: np.ndarray, found: tuple[Any, ...]
) -> xr.Dataset:
    """Return arrays with their labels; individuals that were left out are NaN."""
    mean, factor, member, chosen = found
    posterior = np.full((len(mean), len(kept), mean.shape[1]), np.nan)
    count = chosen.shape[1]
    posterior[:, kept] = each.physical(chosen[:, filled(count)])[:, :count]
    cov = np.einsum("tpq,trq->tpr", factor, factor)
    sd = np.sqrt(np.einsum("tpp->tp", cov))
    own = of_samples(observed)
    by_parameter = ("draw", "parameter")
    return xr.Dataset(
        {
            "mean": (by_parameter, each.centre + each.scale * mean),
            "spread": (by_parameter, each.scale * sd),
            "correlation": (("draw", "parameter", "other"), cov / sd[:, None] / sd[..., None]),
            "median": (by_parameter, each.physical(mean)),
            "member": (by_parameter, each.physical(member)),
            "posterior": (("draw", "sample", "parameter"), posterior),
        },
        coords={**own, "parameter": list(each.names), "other": list(each.names)},
    )


def flags(
    proposal: Density, observed: xr.DataArray, kept: np.ndarray, worth: np.ndarray
) -> np.ndarray:
    """Return which individuals are not to be trusted."""
    count = int(kept.sum())
    own = proposal.sample(observed[kept][filled(count)], 1, 0)
    flagged = ~kept | (worth < FEW)
    if "flagged" in own:
        flagged[kept] |= own["flagged"].values[:count]
    return flagged


def verdict(found: xr.Dataset, kept: np.ndarray, proposals: int, told: dict[str, float]) -> str:
    """Say whether the draws can be trusted, and warn if not; refuse what is worth nothing."""
    beyond, few = found.outside.values, found.effective.values[kept] * proposals < FEW
    name, most = found.parameter.values[beyond.argmax()], beyond.max()
    if most > OUTSIDE[1]:
        raise ValueError(
            f"{most:.0%} of the population of {name} lie beyond the central 99.9 % of its prior, "
            "where the net has seen nothing: fit under a prior that holds the population, or "
            "train longer a net whose posteriors are as wide as the prior; likelihood=True asks "
            "the problem instead"
        )
    if few.mean() > 0.5:
        raise ValueError(
            f"of {few.sum()} of {few.size} individuals fewer than {FEW:.0f} of {proposals} "
            "proposals are effective, so that their integrals are noise; take more proposals, or "
            "fit under a prior that is nearer to the population"
        )
    r_hat, variance, doubts = told["r_hat"], told["variance"], []
    unlike, usual = found.flagged.values[kept] & ~few, binom.ppf(0.99, few.size, FALSE)
    if not r_hat < AGREE:
        doubts.append(f"the chains disagree (R-hat {r_hat:.3f}): take more draws")
    if few.any():
        doubts.append(f"{few.sum()} individuals have few effective proposals")
    if unlike.sum() > usual:
        doubts.append(
            f"{unlike.sum()} of {few.size} individuals are unlike the training of the net, where "
            f"{usual:.0f} may seem so by chance: fit under a prior and conditions that hold them"
        )
    if variance > NOISE:
        doubts.append(
            f"the log-likelihood has the variance {variance:.2g} by its proposals, more than "
            f"{NOISE:.0f}: take more"
        )
    if most > OUTSIDE[0]:
        doubts.append(f"{most:.0%} of the population of {name} lie where the net has seen nothing")
    if doubts:
        log.warning("the population is not to be trusted: %s", "; ".join(doubts))
    return "; ".join(doubts) or f"the chains agree (R-hat {r_hat:.3f}) and the proposals suffice"


def scales(each: Individuals) -> dict[str, str]:
    """Return by parameter what `mean` and `spread` are of: the identity, log, logit or a simplex.

    That of θ > 0 is log θ; with another end it is log |θ − end|.
    """
    kinds = {}
    for names, distribution in parts(each.prior):
        reach = ends(distribution, len(names))
        for name, pair in zip(names, reach, strict=True):
            finite = sum(np.isfinite(pair))
            kinds[name] = ("identity", "log", "logit")[finite]
        if isinstance(distribution, Corner):
            kinds |= dict.fromkeys(names, "simplex")
    return kinds
