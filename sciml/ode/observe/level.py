"""The level of a noise: a number, or the distribution that every sample draws its own from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, TypeGuard

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpyro.distributions import Distribution

from sciml._numbers import real
from sciml.ode.prior import bounds, check_distribution, check_scalar, describe

Levels = dict[str, Float[Array, " sample"]]


def is_number(level: Any) -> TypeGuard[float]:
    """Tell a fixed level from a distribution."""
    return isinstance(level, int | float)


def check(noise: Any, name: str, low: float, high: float, *, is_open: bool = False) -> None:
    """Keep a level as Python's own number; refuse one outside [low, high], or a prior of such.

    Raises:
        ValueError: it is outside, infinite, or neither a number nor a scalar distribution; with
            `is_open` a number must not be an end either.
    """
    said, level = f"{type(noise).__name__}.{name}", own_number(noise, name)
    rule = f"must lie in {'(' if is_open else '['}{low}, {high}{')' if is_open else ']'}"
    if is_number(level):
        inside = low < level < high if is_open else low <= level <= high
        if not inside or math.isinf(level):
            raise ValueError(f"{said} is {level}; it {rule}, and be finite")
        return
    check_scalar(level, said)
    first, last = bounds(level)
    if first < low or last > high:
        raise ValueError(
            f"{said} is drawn from [{first}, {last}]; it {rule}: cut or change the distribution"
        )


def own_number(noise: Any, name: str) -> Any:
    """Return a level; one that NumPy, JAX or xarray computed is kept as Python's own number."""
    said, level = f"{type(noise).__name__}.{name}", getattr(noise, name)
    is_one = isinstance(level, Real | Decimal) or getattr(level, "ndim", None) == 0
    if is_one and not isinstance(level, bool | np.bool_):
        if type(level) not in (int, float):
            object.__setattr__(noise, name, level := float(real(level, said)))
    elif not isinstance(level, Distribution):
        check_distribution(level, said, ", or a number as 0.1; PerChannel has one of each channel")
    return level


def check_estimate(noise: Any, name: str = "sd") -> None:
    """Refuse to estimate levels that are all fixed, and what is meant as a prior."""
    kind = type(noise).__name__
    if not isinstance(noise.estimate, bool | np.bool_):
        raise TypeError(
            f"{kind}.estimate is {noise.estimate!r}; it must be True or False. This is the noise "
            f"sciml.ode.{kind}; a prior is one of numpyro.distributions"
        )
    if noise.estimate and not noise.prior:
        raise ValueError(
            f"{kind}.estimate is True but its levels are numbers; what is estimated must be "
            f"drawn: pass {kind}({name}=numpyro.distributions.Uniform(0.05, 0.5), estimate=True)"
        )


def sampled(levels: Mapping[str, Any]) -> dict[str, Distribution]:
    """Return those levels that are distributions."""
    return {name: level for name, level in levels.items() if not is_number(level)}


def value(noise: Any, name: str, levels: Levels, clean: Any) -> Any:
    """Return a level as a number, or as one per sample in a shape that multiplies `clean`."""
    fixed = getattr(noise, name)
    if is_number(fixed):
        return fixed
    return jnp.asarray(levels[name]).reshape(-1, *[1] * (clean.ndim - 1))


def told(level: Any) -> Any:
    """Return a level as a file says it: a number, or the family and numbers of a distribution."""
    return level if is_number(level) else describe(level)


@dataclass(frozen=True)
class Levelled:
    """What noises share whose fields are their levels."""

    @property
    def prior(self) -> dict[str, Distribution]:
        """The distributions of the sampled levels, by name."""
        return sampled(vars(self))

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this noise: its kind and its fields."""
        given = {name: told(level) for name, level in vars(self).items()}
        if not given.get("estimate", True):
            del given["estimate"]
        return {"kind": type(self).__name__, **given}


@dataclass(frozen=True)
class Spread(Levelled):
    """What noises share whose one level is a standard deviation."""

    sd: float | Distribution
    estimate: bool = False

    def __post_init__(self):
        check_estimate(self)
        check(self, "sd", 0.0, math.inf)
