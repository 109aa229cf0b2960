"""One parameter value from several observations of it."""

import logging

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from sciml._arguments import check_whole
from sciml._labels import Observed, of_samples
from sciml._session import as_usual
from sciml.ode.methods.solver import Problem
from sciml.ode.prior import Prior
from sciml.provenance import provenance
from sciml.reference.importance import drawn
from sciml.reference.proposals import Density, Proposals
from sciml.reference.several.individuals import Individuals, usable
from sciml.reference.student import Student

log = logging.getLogger(__name__)

TURNS = 8  # assumed: of t's, each nearer than the last; the product may be much narrower
FEW = 50.0  # assumed: effective proposals, below which a posterior is flagged


@as_usual
def trials(
    proposal: Density,
    problem: Problem | Prior,
    data: Observed,
    *,
    by: str | None = None,
    draws: int = 1000,
    proposals: int = 4000,
    likelihood: bool = False,
    seed: int = 0,
) -> xr.Dataset:
    """Return the posterior of ONE parameter value from n independent observations of it.

    The posteriors of a net, each of which has the prior p in it, are multiplied,

        p(θ | x₁ … x_n) ∝ p(θ)^{1 − n} Πᵢ q(θ | xᵢ),

    whatever n is. A net that is off by a part of its posterior's width in the same direction
    everywhere is off by √n times this part of the product's: compare with `likelihood`.
    Draws are made from Student t's, each placed about the weighted draws of all before, and taken
    by weight.

    Args:
        proposal: a fit of a posterior net.
        problem: that it was trained on; or its prior alone, name → distribution.
        data: `observation (sample, …)`, one trial a sample, all at one θ. Those that are not
            `valid` or missing altogether are left out.
        by: a coordinate along `sample` that says to which θ a trial belongs, as `"cell"`: groups of
            any size. None: all trials are of one θ.
        draws: of each posterior.
        proposals: for each group; n times as many densities are computed.
        likelihood: multiply the problem's own likelihoods in place of the net's posteriors.
        seed: of everything.

    Returns:
        `posterior (draw, sample, parameter)`, one sample a group, labelled by `by`; `trials
        (sample)`, n; `efficiency (sample)` of the proposals; `flagged (sample)`: fewer than 50 of
        them are effective, or more than half of the trials are unlike the training.
        `log_shared (sample)`, of the net alone: ln of how much more likely one θ makes the trials
        than a θ of its own for each, both under the prior. Below 0 they are not of one θ.

    Raises:
        ValueError: no trial, no such coordinate, another prior or noise than the fit's, a prior
            with a rule, or fewer than 80 proposals.
        TypeError: the fit is a point net, or the data are no Dataset.

    >>> import sciml
    >>> from numpyro.distributions import Normal
    >>> line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    >>> data = sciml.simulate(line, samples=1000, noise=line.noise)
    >>> fit = sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=20)
    >>> same = sciml.simulate(line, parameters=[[1.0]] * 4, noise=line.noise)  # four times one cell
    >>> sciml.trials(fit, line, same, draws=100, proposals=80).posterior.shape
    (100, 1, 1)
    """
    check_whole(1, draws=draws)
    check_whole(10 * TURNS, proposals=proposals)
    observed, kept = usable(proposal, data)
    every, seen = grouped(observed, by), observed[kept]
    groups = every[kept]
    warn_of_lost(every, groups)
    each = Individuals.of(proposal, problem, seen, likelihood)
    own = proposal.sample(seen, 1, 0)
    unlike = own["flagged"].values if "flagged" in own else np.full(len(seen), False)
    labels, parts, rng = [*dict.fromkeys(groups.tolist())], [], np.random.default_rng(seed)
    for label in labels:
        chosen = groups == label
        found = product(each, seen[chosen], (draws, proposals), rng)
        few = found.efficiency.values * proposals < FEW
        more = {
            "trials": ("sample", [int(chosen.sum())]),
            "flagged": ("sample", few | (unlike[chosen].mean() > 0.5)),
        }
        parts.append(found.assign(more))
    joined = xr.concat(parts, "sample")
    joined = joined.drop_vars(["proposals"] + (["log_shared"] if likelihood else []))
    if joined.flagged.any():
        log.warning("%d of %d posteriors are flagged", int(joined.flagged.sum()), len(labels))
    coords = {} if by is None else {by: ("sample", labels)}
    return joined.assign_coords(coords).assign_attrs(seed=seed, **provenance())


def grouped(observed: xr.DataArray, by: str | None) -> np.ndarray:
    """Return to which group each sample belongs."""
    if by is None:
        return np.zeros(len(observed), int)
    if by not in observed.coords or observed[by].dims != ("sample",):
        names = [*map(str, of_samples(observed))]
        raise ValueError(
            f"by is {by!r}; it must be a coordinate along `sample`, of which there are "
            f"{', '.join(names) or 'none'}: data.assign_coords({by}=('sample', [...]))"
        )
    if lacking := np.flatnonzero(observed[by].isnull().values).tolist():
        raise ValueError(
            f"{by} of sample {lacking[0]} is missing, so nothing tells whose trial it is "
            f"({len(lacking)} of {len(observed)}): name it, or leave these samples out by .isel"
        )
    return observed[by].values


def warn_of_lost(every: np.ndarray, groups: np.ndarray) -> None:
    """Say of which of all groups no usable trial is left."""
    names, used = [*dict.fromkeys(every.tolist())], {*groups.tolist()}
    if lost := [str(one) for one in names if one not in used]:
        said = "no trial of %s can be used, so that there is no posterior of it: %d of %d groups"
        log.warning(said, ", ".join(lost[:3]), len(lost), len(names))


def product(
    each: Individuals, seen: xr.DataArray, sizes: tuple[int, int], rng: np.random.Generator
) -> xr.Dataset:
    """Return draws of the product of the posteriors of some trials, by weight."""
    draws, proposals = sizes
    number, count = len(seen), proposals // (TURNS + 1)
    first = max(1, -(-(proposals - TURNS * count) // number))
    own = each.proposal.sample(seen, first, int(rng.integers(2**31))).posterior
    # Of the mixture of all trials' posteriors, whose density is known with theirs.
    theta = own.values.reshape(-1, 1, len(each.names))
    theta = rng.permutation(theta)[: proposals - TURNS * count]
    found = looked(each, seen, theta)
    for _ in range(TURNS):
        student = Student.about(each.coordinates, found.theta, found.log_weight())
        found = found.joined(looked(each, seen, student.draw(rng, count)), student)
    log_weight = found.log_weight()
    coords = {"parameter": list(each.names)}
    made = drawn(coords, found.theta, log_weight, draws, int(rng.integers(2**31)))
    return made.rename(log_evidence="log_shared")


def looked(each: Individuals, seen: xr.DataArray, theta: np.ndarray) -> Proposals:
    """Return proposals (draw, 1, param) with ln of the product, and of the trials' mixture."""
    number = len(seen)
    alone = each.look(seen, np.repeat(theta, number, axis=1))
    log_prior = each.log_prior(alone.theta[:, :1])
    with np.errstate(invalid="ignore"):
        whole = alone.joint.sum(axis=1, keepdims=True) - (number - 1) * log_prior
    mixture = np.asarray(logsumexp(alone.log_q, axis=1, keepdims=True)) - np.log(number)
    inside = np.isfinite(mixture) & np.isfinite(whole)
    return Proposals(
        alone.theta[:, :1], np.where(inside, whole, -np.inf), mixture, counts=(len(theta),)
    )
