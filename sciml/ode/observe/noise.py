"""Measurement noise."""

import functools
import math
import re
import zlib
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpyro.distributions import Distribution

from sciml._labels import NOISE
from sciml._random import flat
from sciml.ode.observe import level
from sciml.ode.observe.level import Levelled, Levels, Spread
from sciml.ode.prior import draws

Series = Float[Array, "time *channel"]
LEAST = 1e-10  # sourced: sbibm 1.1 takes logarithms of populations from here on
DRAWN = re.compile(r":u\d+(\[[\d,]*\])\s+=\s+random_bits")  # shapes of what a jaxpr draws


def least(observed: Array) -> Array:
    """Return from where on to take a logarithm beside an observation, whatever its unit."""
    return LEAST * jnp.where(observed > 0, jnp.minimum(observed, 1.0), 1.0)


@runtime_checkable
class Noise(Protocol):
    """What a measurement does to noise-free observations; pure, and may be compiled.

    A level is a number, or a scalar distribution from which every sample draws its own. Any
    frozen dataclass with these four members serves.

    >>> import numpy as np
    >>> import sciml
    >>> class Rounded:
    ...     estimate, prior = False, {}
    ...     def apply(self, key, clean, levels):
    ...         return clean.round(1)
    ...     def describe(self):
    ...         return {"kind": "Rounded"}
    >>> isinstance(Rounded(), sciml.ode.Noise)
    True
    """

    @property
    def estimate(self) -> bool:
        """Whether the sampled levels are to be estimated beside the parameters."""
        ...

    @property
    def prior(self) -> dict[str, Distribution]:
        """The distributions of the sampled levels, by name."""
        ...

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return the measurement of clean (sample, time[, channel]) or (sample, feature).

        Of each level that is drawn `levels` has (sample,): multiply by `levels["sd"][:, None]`.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this noise, as JSON takes it."""
        ...


def check_noise(noise: Any) -> None:
    """Refuse what is neither a noise nor None."""
    if noise is None or (isinstance(noise, Noise) and not isinstance(noise, type)):
        return
    said = noise.__name__ if isinstance(noise, type) else repr(noise)
    raise TypeError(
        f"the noise is {said}; it must be a noise or None: noise=sciml.ode.Gaussian(sd=0.1)"
    )


@dataclass(frozen=True)
class Gaussian(Spread):
    """Independent normal noise: x + sd ε, ε ~ N(0, 1).

    Raises:
        ValueError: sd is negative, or fixed and to be estimated.

    >>> Gaussian(sd=0.1).describe()
    {'kind': 'Gaussian', 'sd': 0.1}
    """

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return clean observations with noise added."""
        return clean + level.value(self, "sd", levels, clean) * normal(key, clean)


@dataclass(frozen=True)
class AR1(Levelled):
    """Stationary autoregressive noise of first order.

    x_t = φ x_{t−1} + sd √(1 − φ²) ε_t,  ε ~ N(0, 1),  x_0 ~ N(0, sd²)

    `sd` is the marginal standard deviation, the same at all times; it has no default, since the
    level of the published data is not certain: its files name φ ≈ 0.8 and "stddev" ≈ 0.07, while
    the published errors fit a marginal sd near 0.3. `correlation` is φ, from one sample to the
    next, whatever the time between them.

    Raises:
        ValueError: sd is negative, |φ| is not below 1, or both are fixed and to be estimated.

    >>> AR1(sd=0.3, correlation=0.8).describe()['kind']
    'AR1'
    """

    sd: float | Distribution
    correlation: float | Distribution = 0.8  # derived: mean of the published ones is 0.801
    estimate: bool = False

    def __post_init__(self):
        """Check both levels."""
        level.check(self, "sd", 0.0, math.inf)
        level.check(self, "correlation", -1.0, 1.0, is_open=True)
        level.check_estimate(self)

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return clean observations with noise added; channels have independent noise."""
        channels_first = jnp.moveaxis(clean, -1, 1) if clean.ndim == 3 else clean
        sd = level.value(self, "sd", levels, clean)
        correlation = level.value(self, "correlation", levels, clean)
        noise = sd * autoregression(key, channels_first.shape, correlation)
        return clean + (jnp.moveaxis(noise, 1, -1) if clean.ndim == 3 else noise)

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "*batch time"]:
        """Draw noise of fixed levels along the last axis."""
        if level.is_number(self.sd) and level.is_number(self.correlation):
            return self.sd * autoregression(key, shape, self.correlation)
        raise ValueError(f"{', '.join(self.prior)} of AR1 are drawn; numbers are needed: use apply")


@dataclass(frozen=True)
class LogNormal(Spread):
    """Multiplicative noise: x exp(sd ε), ε ~ N(0, 1), so that log x is measured with error sd.

    The median is x and signs stay. For small sd the relative error is sd.

    Raises:
        ValueError: sd is negative, or fixed and to be estimated.

    >>> LogNormal(sd=0.1).describe()
    {'kind': 'LogNormal', 'sd': 0.1}
    """

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return clean observations times log-normal factors of median 1."""
        return clean * jnp.exp(level.value(self, "sd", levels, clean) * normal(key, clean))


@dataclass(frozen=True)
class Combined(Levelled):
    """Additive and relative noise at once: x + √(sd² + (share x)²) ε, ε ~ N(0, 1).

    So are concentrations measured: `sd` is the error near zero, in the unit of x, and `share` the
    relative error of large values. Pharmacometrics calls it the combined error model.

    Raises:
        ValueError: a level is negative, or both are fixed and to be estimated.

    >>> Combined(sd=0.1, share=0.2).describe()
    {'kind': 'Combined', 'sd': 0.1, 'share': 0.2}
    """

    sd: float | Distribution
    share: float | Distribution
    estimate: bool = False

    def __post_init__(self):
        """Check both levels."""
        level.check(self, "sd", 0.0, math.inf)
        level.check(self, "share", 0.0, math.inf)
        level.check_estimate(self)

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return clean observations with noise added."""
        sd, share = (level.value(self, name, levels, clean) for name in ("sd", "share"))
        return clean + jnp.hypot(sd, share * clean) * normal(key, clean)


def combined_sd(sd: Any, share: Any, clean: Any) -> tuple[Any, Any]:
    """Return √(sd² + (share u)²), and where it is 0: 1 there, so that gradients are finite."""
    exact = (sd == 0) & (share * clean == 0)
    return jnp.where(exact, 1.0, jnp.hypot(sd, jnp.where(exact, 1.0, share * clean))), exact


def normal(key: Key[Array, ""], clean: Any) -> Any:
    """Return standard normal draws, one for every observation, in their dtype."""
    return flat(jax.random.normal, key, clean.shape, clean.dtype)


@functools.partial(jax.jit, static_argnames="shape")
def autoregression(
    key: Key[Array, ""], shape: tuple[int, ...], correlation: Any
) -> Float[Array, "*batch time"]:
    """Return noise of unit variance along the last axis, by doubling: log2(time) passes.

    After pass k each value holds the terms of the sum Σ_j φ^j e_{t−j} with j < 2^(k+1). The
    correlation is a number, or an array that multiplies the shape.
    """
    draws = flat(jax.random.normal, key, shape)
    noise = draws.at[..., 1:].multiply(jnp.sqrt(1 - correlation**2))
    lag = 1
    while lag < shape[-1]:
        earlier = jnp.pad(noise[..., :-lag], [(0, 0)] * (len(shape) - 1) + [(lag, 0)])
        noise = noise + correlation**lag * earlier
        lag *= 2
    return noise


def innovations(error: Series, observed: Series, correlation: Any) -> tuple[Series, Series]:
    """Return e_t − φᵍ e_{t−g} and φᵍ, g steps after the last value seen; of the first, e and 0."""
    index = jax.lax.broadcasted_iota(int, observed.shape, 0)
    seen = jax.lax.cummax(jnp.where(jnp.isnan(observed), -1, index), axis=0)
    last = jnp.concatenate([jnp.full_like(seen[:1], -1), seen[:-1]])  # −1 where there is none
    earlier = jnp.take_along_axis(error, jnp.maximum(last, 0), axis=0)
    steps = jnp.maximum(index - last, 1).astype(error.dtype)
    decay = jnp.where(last < 0, 0.0, correlation**steps)
    return error - decay * earlier, decay


def draw_levels(noise: Noise | None, key: Key[Array, ""], samples: int) -> Levels:
    """Return each sample's own levels, name → (sample,); empty where all are fixed.

    >>> import jax
    >>> from numpyro.distributions import Uniform
    >>> from sciml.ode import Gaussian, draw_levels
    >>> levels = draw_levels(Gaussian(Uniform(0.1, 0.3)), jax.random.key(0), 5)
    >>> levels["sd"].shape
    (5,)
    """
    return draws(noise.prior if noise else {}, samples, key)


def level_priors(noise: Noise | None) -> dict[str, Distribution]:
    """Return the priors of a noise's sampled levels, by the names that they have as targets."""
    return {f"{NOISE}{name}": prior for name, prior in (noise.prior if noise else {}).items()}


def check_applied(noise: Noise, clean: Any) -> None:
    """Refuse a noise that does not give each sample its own measurement, by its own levels and key.

    It is traced for a number of samples that no other axis has, so that none can stand in for them;
    then for another number, which must change the shape of its first axis and of what it draws.
    """
    rest, kind = clean.shape[1:], type(noise).__name__
    count = 1 + max(rest, default=1)
    seen, program, keyed = applied(noise, count, clean)
    if seen is None or (isinstance(seen, str) and not noise.prior):
        return  # without levels it may hold an error of each sample, of as many as are simulated
    other, more, _ = applied(noise, count + 1, clean)
    if isinstance(seen, tuple) and count in seen[1:]:
        seen = seen if other == (count + 1, *seen[1:]) else f"{seen} and {other}"
    if not isinstance(seen, tuple) or seen[:1] != (count,):
        own = ", ".join(f"levels[{name!r}][:{', None' * len(rest)}]" for name in noise.prior)
        raise ValueError(
            f"{kind}.apply gives {seen} of observations {(count, *rest)}, the "
            "first axis being the samples; it must measure each sample by itself"
            + (f", by levels of shape {(count,)}: write {own}" if own else "")
        )
    drawn = DRAWN.findall(program)
    if drawn and drawn == DRAWN.findall(more):
        raise ValueError(
            f"{kind}.apply draws as many numbers for {count} samples as for {count + 1}, so that "
            "all have one error; each must have its own: draw by the shape of what it is given"
        )
    if (drawn and not keyed) or applied(noise, count, clean)[1] != program:
        raise ValueError(
            f"{kind}.apply draws without the key that it is given, as by np.random or a key of its "
            "own; compiled, its numbers would be the same each time: jax.random.normal(key, shape)"
        )


def applied(noise: Noise, count: int, clean: Any) -> tuple[Any, str, bool]:
    """Return the shape of what a noise makes of so many samples, how, and whether of the key.

    Of one that raises, what it says in place of a shape; None if it computes in NumPy, which cannot
    be traced.
    """
    like = jax.ShapeDtypeStruct((count, *clean.shape[1:]), clean.dtype)
    levels = {name: jax.ShapeDtypeStruct((count,), clean.dtype) for name in noise.prior}
    trace = jax.make_jaxpr(lambda k, x, drawn: noise.apply(k, x, drawn), return_shape=True)
    try:
        program, found = trace(jax.random.key(0), like, levels)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        return None, "", False
    except (TypeError, ValueError) as error:
        return str(error).splitlines()[0], "", False
    keyed = any(program.jaxpr.invars[0] in each.invars for each in program.eqns)
    plain = [each for each in program.consts if not jnp.issubdtype(each.dtype, jax.dtypes.prng_key)]
    told = [zlib.crc32(np.asarray(each).tobytes()) for each in plain]
    return found.shape, re.sub("0x[0-9a-f]+", "", f"{program.jaxpr} {told}"), keyed


def measure(
    noise: Noise | None, key: Key[Array, ""], clean: Any, given: "dict[str, Any] | None" = None
) -> tuple[Any, Levels]:
    """Return the measurement of clean observations, and the levels that were drawn for it.

    The same key gives the same numbers. Fixed levels leave the whole key to the noise; levels that
    are given, name → (sample,), take the place of draws.

    >>> import jax
    >>> from sciml.ode import Gaussian
    >>> seen, levels = measure(Gaussian(sd=0.1), jax.random.key(0), jax.numpy.ones((3, 5)))
    >>> seen.shape, levels
    ((3, 5), {})
    """
    if noise is None:
        return clean, {}
    check_applied(noise, clean)
    if not noise.prior:
        return noise.apply(key, clean, {}), {}
    for_levels, for_noise = jax.random.split(key)
    fixed = {name: jnp.asarray(value, clean.dtype) for name, value in (given or {}).items()}
    levels = draw_levels(noise, for_levels, len(clean)) | fixed
    return noise.apply(for_noise, clean, levels), levels
