"""How well parameters can be known, by the curvature of the posterior: no net, no sampler."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sciml._arguments import check_whole, whole_seed
from sciml._session import as_usual
from sciml.ode.data.noise_levels import chosen_levels
from sciml.ode.data.simulate import chosen_parameters, with_conditions, with_rows
from sciml.ode.methods.blocks import in_blocks
from sciml.ode.methods.diffrax_method import forwards, told_forwards
from sciml.ode.methods.solver import Method, Problem, check_problem, solver
from sciml.ode.observe.noise import check_noise
from sciml.ode.prior import Prior, all_ends, log_prob, names_of
from sciml.provenance import provenance
from sciml.reference.likelihood import log_likelihood
from sciml.reference.record import precise
from sciml.reference.target import priors_of

AT_ONCE = 50  # measurements of one sample, so that long series fit the memory


@as_usual
def laplace(
    problem: Problem,
    data: Any,
    *,
    noise: Any = None,
    method: Method | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> xr.Dataset:
    """Return the covariance that the posterior has about given parameters, by Laplace's method.

        Σ(θ) = (F(θ) + P(θ))⁻¹
        F(θ) = E ∇ ln p(x | θ) ∇ ln p(x | θ)ᵀ,  x ~ p(x | θ)      (Fisher's information)
        P(θ) = −∇² ln p(θ)                                         (of the prior)

    F is a mean over `draws` measurements of one solution, so that any noise with a likelihood
    serves; it is off by about √(2/draws), its square root by half of that. Where the posterior is
    normal this is its covariance. Bounds of a prior are not felt, and other modes are not seen.

    Args:
        problem: a system or a task.
        data: the parameters: simulations, or what `sciml.simulate(parameters=)` takes, with
            levels that the noise samples and with conditions.
        noise: what the measurement does; default `problem.noise`.
        method: the integrator; default the problem's own, in float64.
        draws: measurements of each solution, a multiple of 50.
        seed: of the measurements.

    Returns:
        `covariance (sample, parameter, other)` and `sd (sample, parameter)`, its roots. NaN where
        neither the observation nor the prior holds some combination of parameters.

    Raises:
        ValueError: no noise, draws that are no multiple of 50, levels that are missing, parameters
            outside the prior, or what `sciml.simulate` refuses of them.
        TypeError: the noise has no likelihood, or the problem is none.

    Warns:
        UserWarning: some covariances are NaN.

    Source: MacKay, Information Theory, Inference, and Learning Algorithms, chapter 27, 2003.

    >>> from numpyro.distributions import Normal
    >>> from sciml.ode import Gaussian, Static
    >>> line = Static("line", {"mean": Normal(0.0, 1.0)}, features=1, noise=Gaussian(sd=1.0))
    >>> round(float(laplace(line, [[0.3]]).covariance.squeeze()), 1)  # half of the prior's
    0.5
    """
    check_problem(problem)
    check_whole(1, draws=draws)
    if draws % AT_ONCE:
        raise ValueError(f"draws is {draws}; it must be a multiple of {AT_ONCE}, as 2000")
    noise = problem.noise if noise is None else noise
    check_noise(noise)
    priors = priors_of(problem, noise)
    method = forwards(precise(problem, method))
    theta, known = given(problem, noise, data)
    check_inside(theta, priors, problem.name)
    with jax.enable_x64(method.dtype == "float64"), told_forwards(problem.name):
        told = precision(problem, noise, method, draws, whole_seed(seed))
        rows = (theta, known, np.arange(len(theta), dtype=float))
        covariance = inverse(in_blocks(told, rows, method), problem.name)
    names = list(names_of(priors))
    found = xr.Dataset(
        {
            "covariance": (("sample", "parameter", "other"), covariance),
            "sd": (("sample", "parameter"), np.sqrt(np.einsum("npp->np", covariance))),
        },
        coords={"parameter": names, "other": names},
        attrs={"system": problem.name, "draws": int(draws), "seed": int(seed), **provenance()},
    )
    return with_rows(found, data)


def given(problem: Problem, noise: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return parameters with the levels behind them, and conditions."""
    key = jax.random.key(0)  # nothing is drawn
    theta, levels = chosen_parameters(problem, None, (data, noise), key)
    beside = data["levels"] if isinstance(data, xr.Dataset) and "levels" in data else None
    levels |= chosen_levels(beside, noise, len(theta), data)
    if lacking := [name for name in noise.prior if name not in levels]:
        raise ValueError(
            f"the parameters come without the level {lacking[0]} that the noise samples; pass "
            "what sciml.simulate(problem, samples=…, noise=noise) gives"
        )
    rows = with_conditions(problem, theta, None, data, key)
    columns = [np.asarray(levels[name], float)[:, None] for name in noise.prior]
    return np.concatenate([theta, *columns], axis=1), rows[:, theta.shape[1] :]


def check_inside(theta: np.ndarray, priors: Prior, name: str) -> None:
    """Refuse parameters where the prior has no density, and so no curvature."""
    low, high = np.array(all_ends(priors), float).T
    inside = ((theta >= low) & (theta <= high)).all(axis=1)
    with jax.enable_x64():
        density = log_prob(priors, jnp.asarray(theta[inside]))
    inside[inside] = np.isfinite(density)  # by a rule, as a + b < 1
    if not inside.all():
        row = int(np.argmin(inside))
        raise ValueError(
            f"parameters[{row}] is {theta[row]}, outside the prior of {name}; drop that row, or "
            "widen the prior"
        )


def precision(problem: Problem, noise: Any, method: Method, draws: int, seed: int) -> Any:
    """Return (θ, conditions, number) ↦ F(θ) + P(θ), of several samples, compiled."""
    priors, base = priors_of(problem, noise), jax.random.key(seed)
    solve, size = solver(problem, method), len(problem.parameter_names)

    def score(theta, seen, clean, slope) -> Float[Array, " param"]:
        def density(solution, levels):
            named = dict(zip(noise.prior, levels, strict=True))
            return log_likelihood(noise, seen, solution, named)

        of_solution, of_levels = jax.grad(density, (0, 1))(clean, theta[size:])
        along = jnp.tensordot(of_solution, slope, of_solution.ndim)
        return jnp.concatenate([along, of_levels])

    def one(theta, known, number) -> Float[Array, "param param"]:
        def solution(parameters):
            return solve(jnp.concatenate([parameters, known])[None])[0]

        clean, slope = solution(theta[:size]), jax.jacfwd(solution)(theta[:size])
        levels = {n: jnp.full(AT_ONCE, theta[size + i]) for i, n in enumerate(noise.prior)}
        key = jax.random.fold_in(base, number.astype(jnp.int32))

        def some(total, one_key):
            repeated = jnp.broadcast_to(clean, (AT_ONCE, *clean.shape))
            seen = noise.apply(one_key, repeated, levels)
            scores = jax.vmap(lambda x: score(theta, x, clean, slope))(seen)
            return total + scores.T @ scores, None

        keys = jax.random.split(key, draws // AT_ONCE)
        total, _ = jax.lax.scan(some, jnp.zeros((len(theta),) * 2, theta.dtype), keys)
        return total / draws - jax.hessian(lambda t: log_prob(priors, t))(theta)

    return jax.jit(jax.vmap(one))


def inverse(told: np.ndarray, name: str) -> np.ndarray:
    """Return inverses of symmetric matrices, NaN where one is not positive definite."""
    found = np.full(told.shape, np.nan)
    diagonal = np.einsum("npp->np", told)
    held = np.isfinite(told).all((1, 2)) & (diagonal > 0).all(1)
    scale = np.sqrt(np.where(held[:, None], diagonal, 1.0))
    unit = told / (scale[:, :, None] * scale[:, None, :])  # parameters have units of their own
    held[held] = np.linalg.eigvalsh(unit[held])[:, 0] > LEAST
    found[held] = np.linalg.inv(unit[held])
    if not held.all():
        warnings.warn(
            f"{(~held).sum()} of {len(told)} covariances are NaN: there neither the observation "
            f"nor the prior of {name} holds all parameters, or the solution failed",
            UserWarning,
            stacklevel=3,
        )
    return found / (scale[:, :, None] * scale[:, None, :])


LEAST = 1e-9  # assumed: smallest eigenvalue of a precision with ones on its diagonal
