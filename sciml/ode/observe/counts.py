"""Noises of counts: of a test, of events, and of events that come in clusters."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from sciml.ode.observe import level
from sciml.ode.observe.level import Levelled, Levels

if TYPE_CHECKING:
    from numpyro.distributions import Distribution


@dataclass(frozen=True)
class Binomial(Levelled):
    """Counts of a test of `trials` individuals, of whom a share x/population is positive.

    k ~ Binomial(trials, x / population),  mean trials x/population

    The share is cut to [0, 1], since a solver may step a rounding below zero.

    Raises:
        ValueError: fewer than one trial, or a population that is not positive.
    """

    trials: int
    population: float
    estimate: ClassVar[bool] = False

    def __post_init__(self):
        """Check both numbers."""
        if self.trials < 1:
            raise ValueError(f"Binomial.trials is {self.trials}; it must be at least 1")
        if not self.population > 0:
            raise ValueError(f"Binomial.population is {self.population}; it must be positive")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        del levels
        share = jnp.clip(finite(clean) / self.population, 0, 1)
        return where_finite(clean, jax.random.binomial(key, self.trials, share, dtype=share.dtype))


@dataclass(frozen=True)
class Poisson(Levelled):
    """Counts of independent events, `exposure` times x of them on average.

    k ~ Poisson(exposure x),  mean and variance exposure x

    `exposure` is the share that is reported, the length of an interval, or the volume counted; it
    may be a distribution, to be estimated. Below zero x counts as zero.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> counts = Poisson(exposure=0.5).apply(jax.random.key(0), jnp.full((1, 1000), 8.0), {})
        >>> bool(abs(counts.mean() - 4) < 0.2)
        True

    Raises:
        ValueError: exposure is negative, or fixed and to be estimated.
    """

    exposure: "float | Distribution" = 1.0
    estimate: bool = False

    def __post_init__(self):
        """Check the level."""
        level.check("Poisson.exposure", self.exposure, 0.0, math.inf)
        level.check_estimate(self, "exposure")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        mean = level.value(self, "exposure", levels, clean) * finite(clean)
        return where_finite(clean, jax.random.poisson(key, jnp.maximum(mean, 0)))


@dataclass(frozen=True)
class NegativeBinomial(Levelled):
    """Counts that scatter more than independent events do.

    k ~ Poisson(g m),  g ~ Gamma(r, 1/r),  m = exposure x;  mean m, variance m + m²/r

    with r = `concentration`: NumPyro's NegativeBinomial2(m, r). The larger r, the nearer to
    `Poisson`; cases of an epidemic have r of about 0.1 to 10.

    Raises:
        ValueError: a level is negative, or both are fixed and to be estimated.
    """

    concentration: "float | Distribution"
    exposure: "float | Distribution" = 1.0
    estimate: bool = False

    def __post_init__(self):
        """Check both levels."""
        rule = {"is_open": level.is_number(self.concentration)}
        level.check("NegativeBinomial.concentration", self.concentration, 0.0, math.inf, **rule)
        level.check("NegativeBinomial.exposure", self.exposure, 0.0, math.inf)
        level.check_estimate(self, "concentration")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        for_rate, for_count = jax.random.split(key)
        mean = jnp.maximum(level.value(self, "exposure", levels, clean) * finite(clean), 0)
        r = jnp.broadcast_to(level.value(self, "concentration", levels, clean), clean.shape)
        rate = mean * jax.random.gamma(for_rate, r, dtype=clean.dtype) / r
        return where_finite(clean, jax.random.poisson(for_count, rate))


def finite(clean: Any) -> Any:
    """Return clean observations, zero where a solution failed."""
    return jnp.where(jnp.isfinite(clean), clean, 0)


def where_finite(clean: Any, counts: Any) -> Any:
    """Return counts as floats, NaN where a solution failed."""
    return jnp.where(jnp.isfinite(clean), counts.astype(clean.dtype), jnp.nan)
