"""Residuals of a fit: differences in units of their standard deviation, for every noise."""

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
from sciml.ode.observe.noise import LEAST, combined_sd, innovations, least

Observed = Float[Array, "time *channel"]


@singledispatch
def residual(noise: Any, observed: Observed, clean: Observed) -> Observed:
    """Return residuals in units of their standard deviation; plain differences without noise.

    Their sum of squares is twice the negative log likelihood, but for a constant, and as nearly
    as a sum of squares can be. A missing observation (NaN) leaves 0.
    """
    if noise is None:
        return difference(observed, clean)
    raise TypeError(
        f"{type(noise).__name__} has no residuals; pass noise=None for plain differences, or "
        "register its own with residual.register"
    )


def difference(observed: Observed, clean: Observed) -> Observed:
    """Return observed − clean, 0 where missing."""
    return jnp.where(jnp.isnan(observed), 0.0, observed - clean)


def mean(level: Any) -> Any:
    """Return a level, or the mean of the distribution that it is drawn from."""
    return level if isinstance(level, int | float) else level.mean


@residual.register
def gaussian(noise: Gaussian, observed: Observed, clean: Observed) -> Observed:
    """(x − u) / sd."""
    return difference(observed, clean) / mean(noise.sd)


@residual.register
def log_normal(noise: LogNormal, observed: Observed, clean: Observed) -> Observed:
    """(ln x − ln u) / sd."""
    logarithms = (jnp.log(jnp.maximum(x, least(observed))) for x in (observed, clean))
    return difference(*logarithms) / mean(noise.sd)


@residual.register
def binomial(noise: Binomial, observed: Observed, clean: Observed) -> Observed:
    """2 √n (arcsin √(k/n) − arcsin √p): the transform with nearly constant variance 1."""
    share = jnp.clip(clean / noise.population, LEAST, 1 - 1e-7)
    seen = jnp.clip(observed / noise.trials, LEAST, 1 - 1e-7)
    angles = (jnp.arcsin(jnp.sqrt(x)) for x in (seen, share))
    return 2 * jnp.sqrt(noise.trials) * difference(*angles)


@residual.register
def poisson(noise: Poisson, observed: Observed, clean: Observed) -> Observed:
    """2 (√k − √m): the transform with nearly constant variance 1."""
    m = jnp.maximum(mean(noise.exposure) * clean, LEAST)
    return 2 * difference(jnp.sqrt(jnp.maximum(observed, LEAST)), jnp.sqrt(m))


@residual.register
def negative_binomial(noise: NegativeBinomial, observed: Observed, clean: Observed) -> Observed:
    """2 √r (arsinh √(k/r) − arsinh √(m/r)): the transform with nearly constant variance 1."""
    r, m = mean(noise.concentration), jnp.maximum(mean(noise.exposure) * clean, LEAST)
    roots = (jnp.arcsinh(jnp.sqrt(x / r)) for x in (jnp.maximum(observed, LEAST), m))
    return 2 * jnp.sqrt(r) * difference(*roots)


@residual.register
def combined(noise: Combined, observed: Observed, clean: Observed) -> Observed:
    """(x − u) / √(sd² + (share u)²); where that divides by 0, 0 of what is exact, else ∞."""
    sd, exact = combined_sd(mean(noise.sd), mean(noise.share), clean)
    error = difference(observed, clean)
    return jnp.where(exact, jnp.where(error == 0, 0.0, jnp.inf), error / sd)


@residual.register
def per_channel(noise: PerChannel, observed: Observed, clean: Observed) -> Observed:
    """Return the residuals of the channels, each under its own noise."""
    parts = [
        residual(own, observed[:, i : i + 1], clean[:, i : i + 1])
        for i, own in enumerate(noise.noises.values())
    ]
    return jnp.concatenate(parts, axis=1)


@residual.register
def ar1(noise: AR1, observed: Observed, clean: Observed) -> Observed:
    """(e_t − φᵍ e_{t−g}) / (sd √(1 − φ²ᵍ)), g steps after the last value seen; the first is e / sd.

    White, also across gaps: their squares sum to eᵀ C⁻¹ e over what was seen.
    """
    error = difference(observed, clean) / mean(noise.sd)
    new, decay = innovations(error, observed, mean(noise.correlation))
    return jnp.where(jnp.isnan(observed), 0.0, new / jnp.sqrt(1 - decay**2))


@residual.register
def missing(noise: Missing, observed: Observed, clean: Observed) -> Observed:
    """Return the residuals of what is left."""
    return residual(noise.noise, observed, clean)
