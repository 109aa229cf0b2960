"""Noises of counts: of a test, of events, and of events that come in clusters."""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from numpyro.distributions import Distribution

from sciml._arguments import check_whole
from sciml._random import flat
from sciml.ode.observe import level
from sciml.ode.observe.level import Levelled, Levels

log = logging.getLogger(__name__)

SLACK = 1e-3  # assumed: of the largest value, what a solver may step beyond
CUT = 1e-3  # assumed: share of values beyond that, from which it is no rounding
MANY = 1e4  # assumed: from here a normal number with a skewness is as good as a Poisson one
MOST_TRIALS = (
    10_000_000  # measured: up to here JAX's binomial numbers are as wide as they should be
)
WIDE = 1e4  # assumed: variance from which that holds of a binomial one


@dataclass(frozen=True)
class Binomial(Levelled):
    """Counts of a test of `trials` individuals, of whom a share x/population is positive.

    k ~ Binomial(trials, x / population),  mean trials x/population

    The share is cut to [0, 1], since a solver may step a rounding below zero.

    Raises:
        ValueError: fewer than one trial, or a population that is not positive.

    >>> Binomial(trials=1000, population=1e6).describe()
    {'kind': 'Binomial', 'trials': 1000, 'population': 1000000.0}
    """

    trials: int
    population: float
    estimate: ClassVar[bool] = False

    def __post_init__(self):
        check_whole(1, **{"Binomial.trials": self.trials})
        size = level.own_number(self, "population")
        if not (level.is_number(size) and 0 < size < math.inf):
            raise ValueError(f"Binomial.population is {size}; it must be positive and finite")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        del levels
        share = jnp.clip(finite(clean) / self.population, 0, 1)
        return where_finite(clean, binomial_counts(key, self.trials, share))


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

    exposure: float | Distribution = 1.0
    estimate: bool = False

    def __post_init__(self):
        level.check(self, "exposure", 0.0, math.inf)
        level.check_estimate(self, "exposure")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        mean = level.value(self, "exposure", levels, clean) * finite(clean)
        return where_finite(clean, poisson_counts(key, jnp.maximum(mean, 0)))


@dataclass(frozen=True)
class NegativeBinomial(Levelled):
    """Counts that scatter more than independent events do.

    k ~ Poisson(g m),  g ~ Gamma(r, 1/r),  m = exposure x;  mean m, variance m + m²/r

    with r = `concentration`: NumPyro's NegativeBinomial2(m, r). The larger r, the nearer to
    `Poisson`; cases of an epidemic have r of about 0.1 to 10.

    Raises:
        ValueError: a level is negative, or both are fixed and to be estimated.

    >>> NegativeBinomial(concentration=10.0).describe()['kind']
    'NegativeBinomial'
    """

    concentration: float | Distribution
    exposure: float | Distribution = 1.0
    estimate: bool = False

    def __post_init__(self):
        level.check(self, "concentration", 0.0, math.inf, is_open=True)
        level.check(self, "exposure", 0.0, math.inf)
        level.check_estimate(self, "concentration")

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return counts, as floats; NaN where the clean observation is not finite."""
        for_rate, for_count = jax.random.split(key)
        mean = jnp.maximum(level.value(self, "exposure", levels, clean) * finite(clean), 0)
        r = jnp.broadcast_to(level.value(self, "concentration", levels, clean), clean.shape)
        rate = mean * jax.random.gamma(for_rate, r, dtype=clean.dtype) / r
        return where_finite(clean, poisson_counts(for_count, rate))


def warn_of_cut(noise: Any, clean: np.ndarray) -> None:
    """Say where a noise of counts cuts off what no count has: means below 0, shares above 1."""
    for each, values in counts_of(noise, clean):
        shares = isinstance(each, Binomial)
        some = values[np.isfinite(values)] / (each.population if shares else 1.0)
        high = 1.0 if shares else np.inf
        slack = SLACK * (1.0 if shares else float(np.abs(some).max(initial=0.0)))
        beyond = (some < -slack) | (some > high + slack)
        if beyond.mean() > CUT:
            log.warning(
                "%s cuts %.3g %% of the values to [0, %g]: they reach from %.3g to %.3g; look at "
                "%s, or take another noise",
                *(type(each).__name__, 100 * beyond.mean(), high, some.min(), some.max()),
                "population= and the unit of what is observed" if shares else "what is observed",
            )


def check_counts(noise: Any, seen: np.ndarray) -> None:
    """Refuse observations that a noise of counts never gives; NaN is missing."""
    for each, values in counts_of(noise, seen):
        most = each.trials if isinstance(each, Binomial) else np.inf
        odd = (values < 0) | (values > most) | (values != np.round(values))
        odd &= ~np.isnan(values)
        if odd.any():
            raise ValueError(
                f"{odd.sum()} of the observations are no counts of {type(each).__name__}, the "
                f"first {values[odd][0]:g}; each must be a whole number from 0 to {most:g}: undo "
                "what they were divided by (exposure=, population=), mark what is missing as NaN, "
                "or take another noise"
            )


def counts_of(noise: Any, clean: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield each noise of counts that a noise is made of, with what it is applied to."""
    if isinstance(noise, Binomial | Poisson | NegativeBinomial):
        yield noise, clean
    elif beneath := getattr(noise, "noise", None):  # of Missing
        yield from counts_of(beneath, clean)
    else:
        for i, each in enumerate(getattr(noise, "noises", {}).values()):
            yield from counts_of(each, clean[..., i])


def poisson_counts(key: Key[Array, ""], mean: Any) -> Any:
    """Return Poisson counts, as floats: above `MANY` rounded normal ones with the right skewness.

    Those of JAX are 0.5 % off in their width at 1e5, 1.2 times too wide at 1e8, and end at 2³¹.
    """
    few = jax.random.poisson(key, jnp.minimum(mean, MANY)).astype(mean.dtype)
    many = rounded_normal(key, jnp.maximum(mean, MANY), jnp.maximum(mean, MANY), 1.0)
    return jnp.where(mean > MANY, many, few)


def binomial_counts(key: Key[Array, ""], trials: int, share: Any) -> Any:
    """Return binomial counts, as floats.

    Of more trials than `MOST_TRIALS`, of which JAX's are up to 1.19 times too wide, the rarer
    outcome is counted: where its variance is above `WIDE` by a rounded normal number with the
    right skewness, else by a Poisson one, whose variance is then a thousandth too large at most.
    """
    if trials <= MOST_TRIALS:
        return jax.random.binomial(key, trials, share, dtype=share.dtype)
    rare = jnp.minimum(share, 1 - share)
    mean, variance = trials * rare, trials * rare * (1 - rare)
    few = jax.random.poisson(key, jnp.minimum(mean, 2 * WIDE)).astype(share.dtype)
    many = rounded_normal(key, mean, jnp.maximum(variance, WIDE), 1 - 2 * rare)
    counts = jnp.clip(jnp.where(variance > WIDE, many, few), 0, trials)
    return jnp.where(share > 0.5, trials - counts, counts)


def rounded_normal(key: Key[Array, ""], mean: Any, variance: Any, skew: Any) -> Any:
    """Return μ + σ z + s (z² − 1)/6, rounded, whose skewness is s/σ (Cornish and Fisher, 1938)."""
    z = flat(jax.random.normal, key, jnp.shape(mean), jnp.result_type(mean))
    return jnp.round(mean + jnp.sqrt(variance) * z + skew * (z**2 - 1) / 6)


def finite(clean: Any) -> Any:
    """Return clean observations, zero where a solution failed."""
    return jnp.where(jnp.isfinite(clean), clean, 0)


def where_finite(clean: Any, counts: Any) -> Any:
    """Return counts as floats, NaN where a solution failed."""
    return jnp.where(jnp.isfinite(clean), counts.astype(clean.dtype), jnp.nan)
