"""Scalar priors: checked, drawn, described."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

if TYPE_CHECKING:
    from numpyro.distributions import Distribution

DISTRIBUTION = ("sample", "log_prob", "support", "event_shape", "batch_shape")


def check_scalar(distribution: Any, name: str) -> None:
    """Refuse what is not the distribution of one real number."""
    if any(getattr(distribution, part, None) is None for part in DISTRIBUTION):
        raise ValueError(
            f"{name} is {distribution!r}; it must be a numpyro distribution, "
            "as numpyro.distributions.Uniform(0.0, 1.0)"
        )
    if distribution.event_shape or distribution.batch_shape:
        shape = (*distribution.batch_shape, *distribution.event_shape)
        raise ValueError(f"{name} has the shape {shape}; it must be scalar: name each component")
    if distribution.support.is_discrete:
        raise ValueError(
            f"{name} is {type(distribution).__name__}, which gives whole numbers; nets and "
            "samplers here take every parameter for a real number: take a continuous prior, as "
            "Uniform, or one problem for each value"
        )


def bounds(distribution: "Distribution") -> tuple[float, float]:
    """Return the ends of the support, infinite where it has none."""
    support = distribution.support
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def support(prior: "Mapping[str, Distribution]") -> dict[str, list[float | None]]:
    """Return name → [low, high], with None for an infinite end, as JSON wants it."""
    return {
        name: [end if math.isfinite(end) else None for end in bounds(distribution)]
        for name, distribution in prior.items()
    }


def describe(distribution: "Distribution") -> dict[str, Any]:
    """Return the family and its numbers; of a truncated or transformed one also its base."""
    described: dict[str, Any] = {"kind": type(distribution).__name__}
    for name in distribution.arg_constraints:
        value = vars(distribution).get(name)  # of two ways to say one number, one is kept
        if value is not None and np.ndim(value) == 0:
            described[name] = float(value)
    base = getattr(distribution, "base_dist", None)
    return described if base is None else {**described, "base": describe(base)}


def draw(
    prior: "Mapping[str, Distribution]", samples: int, key: Key[Array, ""], owner: str
) -> Float[np.ndarray, "sample param"]:
    """Return independent draws of all parameters, checked; `owner` names whose prior it is."""
    columns = {name: np.asarray(drawn) for name, drawn in draws(prior, samples, key).items()}
    for name, drawn in columns.items():
        check_draws(drawn, prior[name], f"{name} of {owner}")
    return np.stack([*columns.values()], axis=1)


def draws(
    prior: "Mapping[str, Distribution]", samples: int, key: Key[Array, ""]
) -> dict[str, Float[Array, " sample"]]:
    """Return independent draws of each parameter, traceable."""
    keys = jax.random.split(key, max(len(prior), 1))
    return {
        name: jnp.asarray(distribution.sample(k, (samples,)))
        for (name, distribution), k in zip(prior.items(), keys, strict=False)
    }


def within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Tell which values lie between two ends, but for rounding to float32, which ends are not."""
    slack = 1e-6 * np.maximum(np.abs(values), 1)
    return (values >= low - slack) & (values <= high + slack)


def check_draws(drawn: np.ndarray, distribution: "Distribution", name: str) -> None:
    """Refuse draws that cannot be parameters."""
    low, high = bounds(distribution)
    possible = np.isfinite(drawn) & within(drawn, low, high)
    if not possible.all():
        example = drawn[int(np.argmin(possible))]
        raise ValueError(
            f"{int((~possible).sum())} of {drawn.size} draws of {name} are impossible, such as "
            f"{example}; draws must be finite and lie in [{low}, {high}]: check the numbers of "
            f"{describe(distribution)}"
        )
    if drawn.size > 1 and drawn.min() == drawn.max():
        raise ValueError(
            f"all {drawn.size} draws of {name} are {drawn.flat[0]}; a parameter that never varies "
            f"cannot be estimated: widen {describe(distribution)}, or make it a constant of the "
            "equation"
        )
