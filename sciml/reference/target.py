"""The posterior of a problem in unconstrained coordinates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml.ode.coordinates import Coordinates
from sciml.ode.methods.solver import Method, Problem, solvable, solver
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.noise import level_priors
from sciml.ode.prior import Prior, draws, names_of, parts
from sciml.reference.likelihood import log_likelihood
from sciml.reference.observed import conditions_of, observed_of


@dataclass(frozen=True)
class Target:
    """ln p(z) + ln p(x | z) of one observation x, with parameters θ(z) and z without bounds.

    `names` are the parameters and, behind them, the sampled levels of the noise, as `noise_sd`.
    θ(z) are `Coordinates`. Both densities count their Jacobian, so that they are densities of z.

    `log_prior(z)`, `log_likelihood(z)` and `physical(z)` take one z of shape (param,).

    >>> import jax.numpy as jnp
    >>> import sciml
    >>> from sciml.reference import target
    >>> problem = sciml.ode.gaussian_linear()
    >>> found = target(problem, jnp.zeros(10), problem.noise, sciml.ode.RungeKutta4())
    >>> len(found.names), found.physical(jnp.zeros(10)).shape
    (10, (10,))
    """

    names: tuple[str, ...]
    log_prior: Callable[[Float[Array, " param"]], Float[Array, ""]]
    log_likelihood: Callable[[Float[Array, " param"]], Float[Array, ""]]
    physical: Callable[[Float[Array, " param"]], Float[Array, " param"]]
    draw: Callable[[Array, int], Float[Array, "draw param"]]

    def log_density(self, z: Float[Array, " param"]) -> Float[Array, ""]:
        """Return the logarithm of the posterior of z, up to a constant."""
        return self.log_prior(z) + self.log_likelihood(z)


def target(problem: Problem, observed: Any, noise: Any, method: Method) -> Target:
    """Return the posterior of θ, and of the noise's sampled levels, given one observation.

    Args:
        problem: a system or a task.
        observed: (time,), (time, channel) or (feature,), at the times of the problem, with its
            conditions as coordinates; NaN is missing.
        noise: what the measurement did; its class must have a likelihood.
        method: the integrator.

    Raises:
        ValueError: no noise, or an observation that the problem cannot give.
        TypeError: the noise has no likelihood.

    >>> import jax.numpy as jnp
    >>> import sciml
    >>> from sciml.reference import target
    >>> problem = sciml.ode.gaussian_linear()
    >>> found = target(problem, jnp.zeros(10), problem.noise, sciml.ode.RungeKutta4())
    >>> float(found.log_likelihood(jnp.zeros(10))) > float(found.log_likelihood(jnp.ones(10)))
    True
    """
    priors = priors_of(problem, noise)
    physical = Coordinates.of(priors)
    size = len(problem.parameter_names)
    solve = solver(problem, method)
    known = conditions_of(problem, observed, 1)
    observed = jnp.asarray(observed_of(problem, observed, noise))

    def log_prior(z):
        theta = physical(z)
        each = zip(parts(priors), physical.apart(theta), physical.log_slopes(z, theta), strict=True)
        return jnp.sum(jnp.stack([p.log_prob(value) + slope for (_, p), value, slope in each]))

    def likelihood(z):
        values = physical(z)
        levels = dict(zip(noise.prior, values[size:], strict=True))
        row = jnp.concatenate([values[:size], jnp.asarray(known[0], values.dtype)])
        clean = solve(row[None])[0]
        value = log_likelihood(noise, observed.astype(clean.dtype), clean, levels)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)  # a solution that failed

    def draw(key, count):
        return physical.inv(jnp.stack([*draws(priors, count, key).values()], axis=1))

    return Target(names_of(priors), log_prior, likelihood, physical, draw)


def priors_of(problem: Problem, noise: Any) -> Prior:
    """Return the priors of the parameters and, behind them, of the noise's sampled levels."""
    problem = solvable(problem)
    if noise is None:
        raise ValueError(
            f"noise is None; the posterior of {problem.name} needs a likelihood: "
            "pass noise=problem.noise or another noise"
        )
    check_channels(noise, problem.observed, repr(problem.name))
    return dict(problem.prior) | level_priors(noise)
