"""Draws about those of a net, weighted until they are draws of the posterior itself."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy.special import logsumexp
from tqdm.auto import tqdm

from sciml._labels import Observed
from sciml._precision import with_room
from sciml._session import as_usual
from sciml.ode.coordinates import Coordinates
from sciml.ode.methods.solver import Method, Problem, chosen_method
from sciml.ode.prior import names_of
from sciml.provenance import provenance
from sciml.reference.observed import check_observations, conditions_of, observed_by
from sciml.reference.proposals import Density, Proposals, check_proposal, log_joint
from sciml.reference.student import Student, shares_of
from sciml.reference.target import priors_of
from sciml.reference.weights import systematic

log = logging.getLogger(__name__)

ROWS = 2**15  # assumed: proposals at once; of 1000 values each they take 130 MB
PER_DRAW = 4  # assumed: proposals for each draw that is kept
LEAST = 50.0  # assumed: effective proposals below which a few of them would seem to be all
ROUNDS = 4  # assumed: of t's, each nearer than the last where the net is far off


@as_usual
def importance(
    proposal: Density,
    problem: Problem,
    data: Observed,
    *,
    draws: int = 1000,
    proposals: int | Sequence[int] | None = None,
    noise: Any = None,
    method: Method | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Return draws of the posterior, by weighing those of a net with the likelihood.

    Half of the n proposals are θ ~ q(θ | x), the net's. Weighed by p(θ) p(x | θ) / q, they place a
    Student t about the posterior, which has the tails that q may lack and makes an eighth; all of
    these place the next t, until there are four. Every proposal has the weight
    w = p(θ) p(x | θ) / m(θ), m being the mixture of the five; draws are taken by weight (systematic
    resampling, so one proposal may come more than once).
    They follow the posterior however q is shaped, the better the larger ε n, with the efficiency
    ε = (Σ w)² / (n Σ w²) in (0, 1]. Where ε n is below 50, weights are raised to a power until so
    many count, so that the draws lie between m and the posterior, rather too wide than too
    narrow. A mode that q does not have is not found, and not noticed.

    Args:
        proposal: a fit of a posterior net.
        problem: whose solver and prior are asked, for `proposals` solutions an observation.
        data: `observation (sample, …)`, as the fit was trained on, with its conditions.
        draws: how many for each observation.
        proposals: n; default four for each draw. Take so many that ε n is hundreds: intervals from
            N effective draws hold 1/N less than they say. Of several n the next one is taken, anew,
            for observations of which ε n is less than `draws`.
        noise: what the measurement did; default `problem.noise`.
        method: the integrator; default the problem's own.
        seed: of proposals and draws.

    Returns:
        `posterior (draw, sample, parameter)`; `proposals (sample)`, n; `efficiency (sample)`, ε;
        `log_evidence (sample)`, ln p(x) = ln Σ w / n. Where no proposal has any weight, draws are
        NaN, ε is 0 and the evidence −∞.

    Raises:
        ValueError: no noise, draws or observation; observations of another shape or other times
            than the problem's, or without any value; fewer proposals than draws; or levels of the
            noise that are drawn but were not estimated.
        TypeError: the noise has no likelihood, or the fit is no density.

    Source: Dax et al., arXiv 2210.05686; for weights against a mixture of rounds Cornuet,
    Marin, Mira, Robert, Scand. J. Stat. 39:798-812, 2012.

    >>> import sciml
    >>> from numpyro.distributions import Normal
    >>> line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    >>> data = sciml.simulate(line, samples=1000, noise=line.noise)
    >>> fit = sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=20)
    >>> seen = sciml.simulate(line, parameters=[[1.0]], noise=line.noise)
    >>> found = sciml.reference.importance(fit, line, seen, draws=100)
    >>> found.posterior.shape, bool(found.efficiency[0] > 0.2)
    ((100, 1, 1), True)
    """
    check_proposal(proposal)
    counts = (PER_DRAW * draws,) if proposals is None else tuple(np.atleast_1d(proposals).tolist())
    check_counts(counts, draws)
    observed = observed_by(proposal, data)
    noise = noise or getattr(problem, "noise", None)
    weigher = Weigher(proposal, problem, noise, chosen_method(problem, method), draws, seed)
    check_observations(problem, observed, noise)
    conditions_of(problem, observed, observed.sizes["sample"])
    found = weigher(observed, counts[0])
    for count in counts[1:]:
        short = np.flatnonzero(found.efficiency * found.proposals < draws)
        if short.size:
            found = replaced(found, short, weigher(observed.isel(sample=short), count))
    warn_of_few(found)
    described = {"noise": str(noise), "integrator": str(weigher.method), "seed": seed}
    return found.assign_attrs(described, **provenance())


class Weigher:
    """A net, the problem whose likelihood corrects it, and the random numbers."""

    def __init__(
        self, proposal: Density, problem: Problem, noise: Any, method: Method, draws: int, seed: int
    ):
        """Compile nothing yet; refuse a noise without likelihood."""
        self.proposal, self.method, self.draws = proposal, method, draws
        priors = priors_of(problem, noise)
        self.names, self.coordinates = names_of(priors), Coordinates.of(priors)
        self.density = log_joint(problem, noise, method)
        self.rng = np.random.default_rng(seed)

    def __call__(self, observed: xr.DataArray, count: int) -> xr.Dataset:
        """Return draws of every observation by weight, chunk by chunk."""
        total = observed.sizes["sample"]
        chunks = -(-total * count // ROWS)
        size = -(-total // chunks)
        # The last chunk is filled up with the last sample, so that one program serves
        chosen = [np.minimum(np.arange(i, i + size), total - 1) for i in range(0, total, size)]
        made = {"total": len(chosen) * size * count, "unit": "proposal", "unit_scale": True}
        with tqdm(desc="weighing", leave=False, delay=1, **made) as bar:
            parts = [self.weighed(observed.isel(sample=some), count, bar) for some in chosen]
        return xr.concat(parts, "sample").isel(sample=slice(total))

    def weighed(self, observed: xr.DataArray, count: int, bar: tqdm) -> xr.Dataset:
        """Return draws by weight, of observations that fit in memory."""
        each = count // (2 * ROUNDS)
        own = self.proposal.sample(observed, draws=count - ROUNDS * each, seed=self.number())
        check_names(own.parameter.values, self.names)

        def look(theta: np.ndarray) -> Proposals:
            made = Proposals.of(self.proposal, self.density, observed, theta)
            bar.update(made.joint.size)
            return made

        found = look(own.posterior.values).without_border()
        for _ in range(ROUNDS):
            student = Student.about(self.coordinates, found.theta, found.log_weight())
            found = found.joined(look(student.draw(self.rng, each)), student)
        return drawn(own.coords, found.theta, found.log_weight(), self.draws, self.number())

    def number(self) -> int:
        """Return a seed."""
        return int(self.rng.integers(2**31))


def replaced(found: xr.Dataset, at: np.ndarray, better: xr.Dataset) -> xr.Dataset:
    """Return the draws with those of some samples in place of their own."""
    found = found.copy(deep=True)
    for name, values in found.items():
        values[{"sample": at}] = better[name].values
    return found


def drawn(
    coords: Any, theta: np.ndarray, log_weight: np.ndarray, draws: int, seed: int
) -> xr.Dataset:
    """Return draws by weight, the efficiency and the evidence of each sample."""
    share = shares_of(log_weight, min(LEAST, len(theta) / 2))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), share.shape[1])
        chosen = np.asarray(picked(share, keys, draws))
    posterior = np.take_along_axis(theta, chosen[..., None], axis=0)
    lost = ~np.isfinite(log_weight).any(axis=0)
    posterior[:, lost] = np.nan
    total, squares = (np.asarray(logsumexp(k * log_weight, axis=0)) for k in (1, 2))
    with np.errstate(invalid="ignore"):  # −∞ + ∞ where nothing has any weight
        efficiency = np.where(lost, 0, np.exp(2 * total - squares) / len(theta))
    return xr.Dataset(
        {
            "posterior": (("draw", "sample", "parameter"), with_room(posterior)),
            "proposals": ("sample", np.full(posterior.shape[1], len(theta))),
            "efficiency": ("sample", efficiency),
            "log_evidence": ("sample", total - np.log(len(theta))),
        },
        coords=coords,
    )


@partial(jax.jit, static_argnums=2)
@partial(jax.vmap, in_axes=(1, 0, None), out_axes=1)
def picked(share, key, draws):
    """Return the draws of one sample by their shares."""
    return systematic(share, key, draws)


def warn_of_few(found: xr.Dataset) -> None:
    """Say of which observations the draws are none, or not those of the posterior."""
    share, made = found.efficiency.values, found.proposals.values
    lost, effective = share == 0, share * made
    if lost.any():
        log.warning(
            "no proposal explains %d of %d observations, of which %d is the first: their draws are "
            "NaN; they lie far beyond those of the training, or the noise never makes such values",
            *(lost.sum(), lost.size, lost.argmax()),
        )
    few = ~lost & (effective < np.minimum(LEAST, made / 2))
    if few.any():
        at = int(np.where(few, effective, np.inf).argmin())
        log.warning(
            "%d of %d observations have few effective proposals, %d but %.1f of %d: their draws "
            "lie between the net's and the posterior; take more proposals=, or pass such an "
            "observation to sciml.refine",
            *(few.sum(), few.size, at, effective[at], made[at]),
        )


def check_counts(counts: Sequence[int], draws: int) -> None:
    """Refuse too few proposals, and fewer after more."""
    if not (counts and 1 <= draws <= counts[0] and counts[0] >= 2 * ROUNDS):
        raise ValueError(
            f"draws is {draws} of {counts[0] if counts else 0} proposals; there must be at least "
            f"{2 * ROUNDS} proposals, and draws from 1 to as many"
        )
    if list(counts) != sorted(set(counts)):
        raise ValueError(f"proposals are {counts}; each number must be larger than the last")


def check_names(names: Any, needed: tuple[str, ...]) -> None:
    """Refuse a fit whose targets are not all that the likelihood depends on."""
    if tuple(names) != needed and {*names} == {*needed}:
        raise ValueError(
            f"the fit estimates {', '.join(names)}, and the problem has them as "
            f"{', '.join(needed)}; both must have one order: write the prior as in the fit's"
        )
    if tuple(names) != needed:
        raise ValueError(
            f"the fit estimates {', '.join(names)}, but the likelihood depends on "
            f"{', '.join(needed)}: fit with the levels of the noise as targets (estimate=True), or "
            "pass the noise and the problem of the fit"
        )
