"""Proposals for posterior draws: of a net, and of Student t's placed about them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.special import logsumexp

from sciml._numbers import short
from sciml.ode.methods.blocks import in_blocks
from sciml.ode.methods.solver import Method, Problem, solver
from sciml.ode.prior import log_prob
from sciml.reference.likelihood import log_likelihood
from sciml.reference.observed import conditions_of
from sciml.reference.student import Student
from sciml.reference.target import priors_of


@runtime_checkable
class Density(Protocol):
    """A posterior that is drawn from and has a density: a `Fit` of a net that gives one."""

    def sample(self, data: Any, draws: int, seed: int) -> xr.Dataset:
        """Return `posterior (draw, sample, parameter)`."""
        ...

    def log_prob(self, data: Any, parameters: Any) -> xr.DataArray:
        """Return log q(θ | x) `(sample)`."""
        ...


def check_proposal(proposal: Any) -> None:
    """Refuse what is no posterior net: what has no draws, or no density."""
    if not all(callable(getattr(proposal, name, None)) for name in ("sample", "log_prob")):
        raise TypeError(
            f"proposal is {short(proposal)}; it must be a fit of a posterior net: pass what "
            "sciml.fit(sciml.models.SplineFlow(), data) gives"
        )


def log_joint(problem: Problem, noise: Any, method: Method) -> Callable:
    """Return (θ, x) ↦ ln p(θ) + ln p(x | θ), row by row, θ being parameters and sampled levels.

    Conditions are those that observations carry.
    """
    priors = priors_of(problem, noise)
    solve, size = solver(problem, method), len(problem.parameter_names)

    def one(theta: Float[Array, " param"], clean: Array, observed: Array) -> Float[Array, ""]:
        levels = dict(zip(noise.prior, theta[size:], strict=True))
        value = log_prob(priors, theta) + log_likelihood(noise, observed, clean, levels)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)  # a solution that failed

    @jax.jit
    def rows(theta, seen, known):
        clean = solve(jnp.concatenate([theta[:, :size], known], axis=1))
        return jax.vmap(one)(theta, clean, seen)

    def joint(theta: np.ndarray, observed: xr.DataArray) -> np.ndarray:
        known = conditions_of(problem, observed, len(theta))
        return in_blocks(rows, (theta, observed.values, known), method, progress=False)

    return joint


@dataclass(frozen=True)
class Proposals:
    """Proposals of a net, and of t's placed about them, round by round.

    Attributes:
        theta: (draw, sample, param).
        joint: ln p(θ) + ln p(x | θ) of each, (draw, sample).
        log_q: ln q(θ | x) of each.
        students: the t's.
        counts: how many proposals the net made, and each t.
    """

    theta: Float[np.ndarray, "draw sample param"]
    joint: Float[np.ndarray, "draw sample"]
    log_q: Float[np.ndarray, "draw sample"]
    students: tuple[Student, ...] = ()
    counts: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        proposal: Density,
        density: Callable,
        observed: xr.DataArray,
        theta: np.ndarray,
    ) -> "Proposals":
        """Return proposals with both densities, rounded as the net takes them."""
        theta = theta.astype(np.float32)
        count, samples, size = theta.shape
        rows = theta.reshape(-1, size)
        seen = again(observed, count)
        joint = density(rows, seen)
        both = joint, net_density(proposal, seen, rows)
        joint, log_q = (np.reshape(np.float64(part), (count, samples)) for part in both)
        return cls(theta, joint, log_q, counts=(count,))

    def without_border(self) -> "Proposals":
        """Return the net's draws; those rounded onto the border of the support count nothing."""
        return replace(self, joint=np.where(np.isfinite(self.log_q), self.joint, -np.inf))

    def joined(self, other: "Proposals", student: Student) -> "Proposals":
        """Return these and those that a t made."""
        return Proposals(
            np.concatenate([self.theta, other.theta]),
            np.concatenate([self.joint, other.joint]),
            np.concatenate([self.log_q, other.log_q]),
            (*self.students, student),
            self.counts + other.counts,
        )

    def log_weight(self) -> Float[np.ndarray, "draw sample"]:
        """Return ln w against the mixture of all that proposed."""
        each = [self.log_q, *(student.log_prob(self.theta) for student in self.students)]
        shares = np.array(self.counts) / len(self.theta)
        mixture = np.asarray(logsumexp(np.stack(each), axis=0, b=shares[:, None, None]))
        there = np.isfinite(mixture)
        return np.where(there, self.joint - np.where(there, mixture, 0), -np.inf)


def net_density(proposal: Density, seen: xr.DataArray, rows: np.ndarray) -> np.ndarray:
    """Return ln q(θ | x) row by row, −∞ for draws that overflowed."""
    found = proposal.log_prob(seen, beside(seen, rows)).values
    return np.where(np.isnan(found), -np.inf, found)


def again(observed: xr.DataArray, count: int) -> xr.DataArray:
    """Return all observations so many times, one after the other."""
    return observed.isel(sample=np.tile(np.arange(observed.sizes["sample"]), count))


def beside(observed: xr.DataArray, rows: np.ndarray) -> Any:
    """Return parameters (row, param) with the labels of the observations that they belong to."""
    if "sample" not in observed.indexes:
        return rows
    labels = {"sample": observed.indexes["sample"]}
    return xr.DataArray(rows, labels, ("sample", "parameter"))
