"""Least squares from many starts: the classical way to fit a differential equation."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from tqdm.auto import tqdm

from sciml._labels import Observed
from sciml.baselines.labelled import data_of, labelled, valid_of
from sciml.baselines.residual import residual
from sciml.ode.coordinates import Coordinates
from sciml.ode.data.evidence import as_seen, check_same_grid
from sciml.ode.methods.diffrax_method import forwards
from sciml.ode.methods.solver import Method, chosen_method, solver
from sciml.ode.prior import Truncated, draws
from sciml.ode.system import System


@dataclass(frozen=True)
class Search:
    """Settings of `least_squares`.

    `pool` draws from the prior are simulated once for all observations; each observation is
    fitted from the `starts` draws that are nearest to it. A fit takes at most `steps` steps of
    Levenberg-Marquardt and stops when both θ and the misfit change by less than `tolerance`.
    `lanes` fits run at once.

    Good values: for oscillations, whose misfit has a minimum at every shift by one period, a
    pool of some thousand draws finds the right valley, and a few starts are enough.

    Raises:
        ValueError: a count below 1, or more starts than draws.

    >>> import sciml
    >>> sciml.baselines.Search(pool=500, starts=2).starts
    2
    """

    pool: int = 4000
    starts: int = 4
    steps: int = 30
    tolerance: float = 1e-6
    lanes: int = 256

    def __post_init__(self):
        if min(self.pool, self.starts, self.steps, self.lanes) < 1 or not self.tolerance > 0:
            raise ValueError(f"{self}; all counts must be at least 1 and the tolerance positive")
        if self.starts > self.pool:
            raise ValueError(
                f"starts is {self.starts} and pool {self.pool}; starts are taken from the "
                "pool: it must not be smaller"
            )


def least_squares(
    problem: System,
    data: Observed,
    *,
    noise: Any = None,
    method: Method | None = None,
    settings: Search | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Return the parameters that fit each observation best, within the prior's support.

    Minimises Σ r² over θ, r the residuals of the noise (plain differences without one), in
    coordinates without bounds, by Levenberg-Marquardt from several starts; the best fit wins.
    The prior says where to start and where to stop, its density does not count.

    Args:
        problem: the system.
        data: observations at the times of the problem; failed samples get NaN.
        noise: how to weigh residuals; the levels that it samples are set to their mean.
        method: the integrator; default the problem's own.
        settings: of the search.
        seed: of the pool.

    Returns:
        `estimate (sample, parameter)` and `misfit (sample)`, the root of the mean of r².

    Raises:
        TypeError: the problem is no system or has conditions, the noise is not known, or the prior
            is `Truncated`.
        ValueError: no observation is valid, one has no value at all, or they have another grid than
            the problem's.

    Source: Levenberg 1944, Marquardt 1963, in the library optimistix.

    >>> import sciml
    >>> from numpyro.distributions import Uniform
    >>> decay = sciml.ode.System(
    ...     "decay",
    ...     vector_field=lambda t, u, p: (-p[0] * u[0],),
    ...     initial_state=lambda p: (1.0,),
    ...     prior={"rate": Uniform(0.1, 2.0)},
    ...     observation=sciml.ode.Observation.regular(states=(0,), interval=0.5, length=6),
    ... )
    >>> seen = sciml.simulate(decay, parameters=[[0.7]])
    >>> found = sciml.baselines.least_squares(decay, seen)  # doctest: +SKIP
    >>> round(float(found.estimate[0, 0]), 3)  # doctest: +SKIP
    0.7
    """
    if not isinstance(problem, System):
        raise TypeError(f"{problem.name} is no System; least squares needs an equation to solve")
    if any(isinstance(each, Truncated) for each in problem.prior.values()):
        raise TypeError(
            f"the prior of {problem.name!r} is Truncated; least squares knows the ends of "
            "parameters, and no rules: use sciml.reference.smc"
        )
    if problem.conditions:
        raise TypeError(
            f"{problem.name!r} has conditions, which least squares does not know: use "
            "sciml.reference.smc or nuts, or write one problem for each"
        )
    settings, method = settings or Search(), forwards(chosen_method(problem, method))
    asked = data_of(data, like := as_seen(problem))
    check_same_grid(asked.observation, like, f"the problem {problem.name!r}")
    valid = valid_of(asked)
    if not valid.any():
        raise ValueError(f"no observation is valid, of {valid.size}; there is nothing to fit")
    with jax.enable_x64(method.dtype == "float64"):
        fit, pool = prepared(problem, noise, method, settings, seed)
        observed = np.asarray(asked.observation.values[valid], dtype=method.dtype)
        chunk = min(len(observed), max(1, settings.lanes // settings.starts))
        parts = [
            fit(pool, jnp.asarray(padded(observed[i : i + chunk], chunk)))
            for i in tqdm(range(0, len(observed), chunk), unit="chunk", leave=False)
        ]
        found = [np.concatenate(column)[: len(observed)] for column in zip(*parts, strict=True)]
    theta = np.full((len(valid), len(problem.parameter_names)), np.nan)
    misfit = np.full(len(valid), np.nan)
    theta[valid], misfit[valid] = found
    names = asked.assign_coords(parameter=list(problem.parameter_names))
    return labelled(names, asked, theta, "least_squares", misfit=misfit)


def padded(rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows repeated at the end up to `size`, so that one program serves."""
    return np.pad(rows, [(0, size - len(rows))] + [(0, 0)] * (rows.ndim - 1), mode="edge")


def prepared(problem: System, noise: Any, method: Method, settings: Search, seed: int):
    """Return the compiled fit of a chunk of observations, and the pool (z, solutions)."""
    physical = Coordinates.of(problem.prior)
    solve = jax.jit(solver(problem, method))
    theta = [*draws(problem.prior, settings.pool, jax.random.key(seed)).values()]
    z = physical.inv(jnp.stack(theta, axis=1)).astype(method.dtype)
    chunks = [jax.vmap(physical)(z[i : i + method.chunk]) for i in range(0, len(z), method.chunk)]
    pool = z, jnp.concatenate([solve(part) for part in chunks])

    def misfits(z, observed):
        errors = residual(noise, observed, solve(physical(z)[None])[0])
        return jnp.where(jnp.isfinite(errors), errors, FAILED)

    def fit_one(pool, observed):
        starts = nearest(pool, observed, noise, settings.starts)
        ends, losses = jax.vmap(lambda z: descend(misfits, z, observed, settings))(starts)
        best = jnp.argmin(losses)
        return physical(ends[best]), jnp.sqrt(losses[best])

    return jax.jit(jax.vmap(fit_one, in_axes=(None, 0))), pool


FAILED = 1e3  # assumed: the residual of a solution that failed, far above any that did not


def nearest(pool, observed: Array, noise: Any, starts: int) -> Float[Array, "start param"]:
    """Return the draws whose solutions are nearest to one observation."""
    z, solutions = pool
    loss = jax.lax.map(
        lambda clean: jnp.sum(residual(noise, observed, clean) ** 2), solutions, batch_size=256
    )
    _, index = jax.lax.top_k(-jnp.where(jnp.isfinite(loss), loss, jnp.inf), starts)
    return z[index]


def descend(misfits, start: Float[Array, " param"], observed: Array, settings: Search):
    """Return where Levenberg-Marquardt ends, never worse than its start, and the mean square."""
    import optimistix

    loss = lambda z: jnp.mean(misfits(z, observed) ** 2)  # noqa: E731
    end = optimistix.least_squares(
        misfits,
        optimistix.LevenbergMarquardt(rtol=settings.tolerance, atol=settings.tolerance),
        start,
        args=observed,
        options={"jac": "fwd"},
        max_steps=settings.steps,
        throw=False,
    ).value
    before, after = loss(start), loss(end)
    better = jnp.isfinite(after) & (after <= before)
    return jnp.where(better, end, start), jnp.where(better, after, before)
