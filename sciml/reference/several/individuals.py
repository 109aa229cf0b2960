"""What each of many observations says by itself: proposals, and its likelihood over their density.

The likelihood is a net's, up to a constant: L(θ) = q(θ | x) / p(θ); or the problem's own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.ode.coordinates import Coordinates
from sciml.ode.data.evidence import valid_in
from sciml.ode.methods.solver import Problem, chosen_method
from sciml.ode.observe.noise import level_priors
from sciml.ode.prior import (
    Prior,
    Truncated,
    check_entries,
    draws,
    log_density,
    names_of,
    parts,
    widths,
)
from sciml.reference.importance import check_names
from sciml.reference.observed import (
    check_observations,
    check_prior_of,
    check_problem_of,
    observed_by,
)
from sciml.reference.proposals import (
    Density,
    Proposals,
    again,
    check_proposal,
    log_joint,
    net_density,
)
from sciml.reference.student import Student, unbounded
from sciml.reference.target import priors_of

SHARES = 0.0005, 0.1587, 0.5, 0.8413, 0.9995  # of a prior: its ends, and a standard deviation
TOGETHER = 8  # assumed: individuals are filled up to a multiple of it
PRIOR_DRAWS = 2**16  # assumed: by which the prior's middle and width are known to 0.5 %

Rows = Float[np.ndarray, "draw sample param"]


@dataclass(frozen=True)
class Individuals:
    """A net, the prior that it was trained under, and the likelihood where that is asked.

    s = (z − centre) / scale are the coordinates of a population: z is θ on the whole line, centre
    and scale are the prior's median and half of the width of its middle 68 % there. `ends` are s
    between which 99.9 % of the prior lie.
    """

    proposal: Density
    names: tuple[str, ...]
    prior: Prior
    coordinates: Coordinates
    centre: Float[np.ndarray, " param"]
    scale: Float[np.ndarray, " param"]
    ends: Float[np.ndarray, "end param"]
    weigh: Callable[..., Proposals] | None

    @classmethod
    def of(
        cls, proposal: Density, problem: Problem | Prior, seen: Any, likelihood: bool
    ) -> "Individuals":
        """Return them for a problem, or a prior, which must be those of the net."""
        check_proposal(proposal)
        names = tuple(map(str, proposal.sample(seen[:1], 1, 0).parameter.values))
        prior, weigh = prior_of(proposal, problem, names), None
        if likelihood:
            if isinstance(problem, Mapping):
                raise ValueError(
                    "likelihood is True and a prior is given, which has no likelihood; pass the "
                    "problem that the fit was trained on"
                )
            noise: Any = getattr(problem, "noise", None)
            prior, method = priors_of(problem, noise), chosen_method(problem)
            check_observations(problem, seen, noise)
            density = log_joint(problem, noise, method)
            weigh = partial(Proposals.of, proposal, density)
        check_names(names, names_of(prior))
        coordinates = Coordinates.of(prior)
        own = np.stack([*draws(prior, PRIOR_DRAWS, jax.random.key(0)).values()], axis=-1)
        z, _ = unbounded(coordinates, own[:, None])
        least, low, centre, high, most = np.quantile(z[:, 0], SHARES, axis=0)
        scale = (high - low) / 2
        reach = (np.stack([least, most]) - centre) / scale
        return cls(proposal, names, prior, coordinates, centre, scale, reach, weigh)

    def look(self, seen: xr.DataArray, theta: Rows) -> Proposals:
        """Return proposals with ln q, and ln of what they are weighed by: q, or p(θ) p(x | θ)."""
        if self.weigh is not None:
            return self.weigh(seen, theta)
        theta = theta.astype(np.float32)
        count, samples, size = theta.shape
        seen = again(seen, count)
        log_q = net_density(self.proposal, seen, theta.reshape(-1, size))
        log_q = np.float64(log_q).reshape(count, samples)
        return Proposals(theta, log_q, log_q, counts=(count,))

    def drawn(self, seen: xr.DataArray, count: int, seed: int) -> Proposals:
        """Return the net's own draws."""
        theta = self.proposal.sample(seen, count, seed).posterior.values
        return self.look(seen, theta).without_border()

    def log_prior(self, theta: Rows) -> Float[np.ndarray, "draw sample"]:
        """Return ln p(θ)."""
        distributions = tuple(each for _, each in parts(self.prior))
        with jax.enable_x64(True):
            return np.asarray(density(widths(self.prior), distributions, np.float64(theta)))

    def standard(self, found: Proposals) -> tuple[Rows, Float[np.ndarray, "draw sample"]]:
        """Return s, and ln of the likelihood over the density of the proposals as one of s.

        Points on the border of the support have no weight.
        """
        z, slope = unbounded(self.coordinates, found.theta)
        s = (z - self.centre) / self.scale
        with np.errstate(invalid="ignore"):
            value = found.log_weight() - self.log_prior(found.theta) - slope
        usable = np.isfinite(s).all(axis=-1) & np.isfinite(value)
        return np.where(usable[..., None], s, 0.0), np.where(usable, value, -np.inf)

    def student(self, mean: np.ndarray, cov: np.ndarray, samples: int) -> Student:
        """Return a t about a mean and covariance of s, for each of so many observations."""
        factor = self.scale[:, None] * np.linalg.cholesky(cov)
        centre = self.centre + self.scale * mean
        size = len(centre)
        return Student(
            self.coordinates,
            np.broadcast_to(centre, (samples, size)),
            np.broadcast_to(factor, (samples, size, size)),
        )

    def physical(self, s: Float[np.ndarray, "*point param"]) -> Float[np.ndarray, "*point param"]:
        """Return θ(s)."""
        with jax.enable_x64(True):
            return np.asarray(self.coordinates(jnp.asarray(self.centre + self.scale * s)))


# As a whole, since one by one its operations take longer to compile.
density = jax.jit(log_density, static_argnums=0)


def filled(count: int) -> np.ndarray:
    """Return the numbers of so many individuals, the last one again up to a multiple of eight.

    So one program serves several numbers of them.
    """
    return np.minimum(np.arange(-(-count // TOGETHER) * TOGETHER), count - 1)


def prior_of(proposal: Density, problem: Problem | Prior, names: tuple[str, ...]) -> Prior:
    """Return the prior of what a net estimates, which must be the net's own and without a rule."""
    if isinstance(problem, Mapping):
        check_entries(problem)
        check_prior_of(proposal, problem, "the given prior")
        both = dict(problem)
    else:
        if getattr(proposal, "grid", None) is not None:
            check_problem_of(proposal, problem)
        both = dict(problem.prior) | level_priors(getattr(problem, "noise", None))
    prior = {key: each for key, each in both.items() if isinstance(key, tuple) or key in names}
    for key, each in prior.items():
        if isinstance(each, Truncated):
            raise ValueError(
                f"the prior of {', '.join(key)} has the rule {each.inside!r}; a population density "
                "would have another mass inside for each mean and spread: take parameters "
                "without a rule"
            )
    return prior


def usable(proposal: Density, data: Any) -> tuple[xr.DataArray, np.ndarray]:
    """Return the observations, and which of them did not fail and are not missing altogether."""
    observed: Any = observed_by(proposal, data).transpose("sample", ...)
    rows = observed.values.reshape(len(observed), -1)
    kept = ~np.isnan(rows).all(axis=1)
    if infinite := np.flatnonzero(np.isinf(rows).any(axis=1)).tolist():
        raise ValueError(
            f"the observation of sample {infinite[0]} is infinite; values must be finite, or NaN "
            "where they are missing"
        )
    if isinstance(data, xr.Dataset):
        kept &= valid_in(data)
    if not kept.any():
        raise ValueError(
            f"all {len(kept)} samples failed or are missing altogether; at least one must be usable"
        )
    return observed, kept
