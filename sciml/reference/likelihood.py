"""Densities of observations given the noise-free solution, for every noise that has one."""

import math
from functools import singledispatch
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml.ode import (
    AR1,
    Binomial,
    Combined,
    Gaussian,
    LogNormal,
    Missing,
    NegativeBinomial,
    PerChannel,
    Poisson,
)
from sciml.ode.observe.level import is_number
from sciml.ode.observe.noise import LEAST, combined_sd, innovations, least
from sciml.ode.problems.slcp import NormalPairs
from sciml.ode.problems.two_moons import Crescent
from sciml.ode.sbml.noise import RowNoise
from sciml.reference.counts import of_events, of_trials

Levels = dict[str, Any]
Observed = Float[Array, "time *channel"]
Vector = Float[Array, " feature"]


@singledispatch
def log_likelihood(
    noise: Any,
    observed: Float[Array, "..."],  # noqa: ARG001
    clean: Float[Array, "..."],  # noqa: ARG001
    levels: Levels,  # noqa: ARG001
) -> Array:
    """Return ln p(observed | clean) of ONE sample under a noise; NaN in `observed` is missing.

    Args:
        noise: a noise of `sciml.ode`; its class chooses the density.
        observed: (time,), (time, channel) or (feature,).
        clean: the noise-free solution, of the same shape (for a task without an ODE: θ).
        levels: the sampled levels of the noise, name → number; levels that are not sampled are
            taken from the noise.

    Raises:
        TypeError: the noise has no density that could be written down.

    >>> from sciml.ode import Gaussian
    >>> round(float(log_likelihood(Gaussian(sd=1.0), jnp.zeros(2), jnp.zeros(2), {})), 3)
    -1.838
    """
    raise TypeError(
        f"{type(noise).__name__} has no likelihood; pass a noise that has one, such as "
        "Gaussian(sd=0.1), or register its density with log_likelihood.register"
    )


def level(noise: Any, name: str, levels: Levels) -> Any:
    """Return a level, sampled or fixed."""
    return levels.get(name, getattr(noise, name))


def sd_of(noise: Any, levels: Levels) -> Any:
    """Return the standard deviation, sampled or fixed; refuse 0, of which no density comes."""
    sd = level(noise, "sd", levels)
    if is_number(sd) and sd == 0:
        raise ValueError(
            f"{type(noise).__name__}.sd is 0, so that all but the solution itself is impossible; a "
            "likelihood needs the error of the measurement: pass a noise with sd above 0"
        )
    return sd


def total(densities: Array, observed: Array) -> Array:
    """Return the sum of the log densities of what was observed."""
    return jnp.where(jnp.isnan(observed), 0.0, densities).sum()


def present(observed: Array, clean: Array) -> Array:
    """Return the observation with its gaps closed by the solution, so that gradients are finite."""
    return jnp.where(jnp.isnan(observed), clean, observed)


def normal(error: Array, sd: Any) -> Array:
    """Return ln N(error; 0, sd²)."""
    return -0.5 * (error / sd) ** 2 - jnp.log(sd) - 0.5 * math.log(2 * math.pi)


@log_likelihood.register
def gaussian(noise: Gaussian, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Σ ln N(x; u, sd²)."""
    sd = sd_of(noise, levels)
    return total(normal(present(observed, clean) - clean, sd), observed)


@log_likelihood.register
def log_normal(noise: LogNormal, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Σ ln N(ln |x|; ln |u|, sd²) − ln |x|, x and u having one sign.

    Zero is what the noise makes of zero alone: there it says nothing of sd, elsewhere it is never.
    """
    there = present(observed, clean)
    sign = jnp.where(there < 0, -1.0, 1.0)
    size, median = sign * there, sign * clean
    x, u = (jnp.log(jnp.maximum(each, least(size))) for each in (size, median))
    densities = normal(x - u, sd_of(noise, levels)) - x
    of_zero = jnp.where(jnp.abs(clean) > LEAST, -jnp.inf, 0.0)
    possible = jnp.where(median < -LEAST, -jnp.inf, densities)
    return total(jnp.where(size > 0, possible, of_zero), observed)


@log_likelihood.register
def binomial(noise: Binomial, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Σ ln C(n, k) pᵏ (1 − p)ⁿ⁻ᵏ with p = u / population."""
    n = level(noise, "trials", levels)
    p = jnp.clip(clean / level(noise, "population", levels), LEAST, 1 - 1e-7)
    k = jnp.where(jnp.isnan(observed), 0.0, observed)
    densities = jnp.where(k > n, -jnp.inf, of_trials(jnp.minimum(k, n), n, p, 1 - p))
    return total(whole(observed, densities), observed)


@log_likelihood.register
def poisson(noise: Poisson, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Σ k ln m − m − ln k!  with m = exposure u."""
    m = jnp.maximum(level(noise, "exposure", levels) * clean, LEAST)
    k = jnp.where(jnp.isnan(observed), 0.0, observed)
    return total(whole(observed, of_events(k, m)), observed)


@log_likelihood.register
def negative_binomial(
    noise: NegativeBinomial, observed: Observed, clean: Observed, levels: Levels
) -> Array:
    """Σ ln Γ(k + r) / (Γ(r) k!) + r ln r/(r + m) + k ln m/(r + m)  with m = exposure u."""
    m = jnp.maximum(level(noise, "exposure", levels) * clean, LEAST)
    r = level(noise, "concentration", levels)
    k = jnp.where(jnp.isnan(observed), 0.0, observed)
    densities = jnp.log(r / (k + r)) + of_trials(r, k + r, r / (r + m), m / (r + m))
    return total(whole(observed, densities), observed)


def whole(observed: Array, densities: Array) -> Array:
    """Return densities of counts: what is no whole number, or below zero, never occurs."""
    return jnp.where((observed < 0) | (observed != jnp.round(observed)), -jnp.inf, densities)


@log_likelihood.register
def combined(noise: Combined, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Σ ln N(x; u, sd² + (share u)²).

    Where that is 0, as of nothing under sd = 0, u alone is observed, which says nothing of levels.
    """
    sd, exact = combined_sd(level(noise, "sd", levels), level(noise, "share", levels), clean)
    error = present(observed, clean) - clean
    of_exact = jnp.where(error == 0, 0.0, -jnp.inf)
    return total(jnp.where(exact, of_exact, normal(error, sd)), observed)


@log_likelihood.register
def per_channel(noise: PerChannel, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Return the sum of the densities of the channels, each under its own noise."""
    given = {name: noise.levels_of(name, levels) if levels else {} for name in noise.names}
    parts = [
        log_likelihood(own, observed[:, i : i + 1], clean[:, i : i + 1], given[name])
        for i, (name, own) in enumerate(noise.noises.items())
    ]
    return jnp.stack(parts).sum()


@log_likelihood.register
def ar1(noise: AR1, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Return the exact density of stationary noise, also across gaps.

    Given the last value seen, g steps ago, x_t ~ N(φᵍ x_{t−g}, sd² (1 − φ²ᵍ)); the first value
    seen is N(0, sd²).
    """
    sd, phi = sd_of(noise, levels), level(noise, "correlation", levels)
    error = present(observed, clean) - clean
    new, decay = innovations(error, observed, phi)
    return total(normal(new, sd * jnp.sqrt(1 - decay**2)), observed)


@log_likelihood.register
def missing(noise: Missing, observed: Observed, clean: Observed, levels: Levels) -> Array:
    """Return the density of what is left: values are lost whatever they are."""
    return log_likelihood(noise.noise, observed, clean, levels)


@log_likelihood.register
def rows(noise: RowNoise, observed: Vector, clean: Vector, levels: Levels) -> Array:
    """Σ ln p(x | y, σ) over rows, each with its own scale and distribution."""
    del levels
    return noise.log_density(observed, clean)


@log_likelihood.register
def crescent(noise: Crescent, observed: Vector, clean: Vector, levels: Levels) -> Array:
    """Ln N(r; radius, spread²) − ln π r on the half ring, in polar coordinates r, a."""
    del levels
    u, v = observed - noise.centre(clean)
    r = jnp.sqrt(jnp.maximum(u**2 + v**2, LEAST))
    inside = normal(r - noise.radius, jnp.asarray(noise.spread)) - jnp.log(math.pi * r)
    return jnp.where(u > 0, inside, -jnp.inf)


@log_likelihood.register
def pairs(
    noise: NormalPairs, observed: Vector, clean: Float[Array, " param"], levels: Levels
) -> Array:
    """Σ ln N(x; m_θ, S_θ) over the points, by the triangle L of S = L Lᵀ."""
    del levels
    first, below, last = noise.cholesky(clean)
    x, y = observed.reshape(noise.pairs, 2).T
    e1 = (x - clean[0]) / first
    e2 = (y - clean[1] - below * e1) / last
    return (normal(e1, 1.0) + normal(e2, 1.0) - jnp.log(first * last)).sum()
