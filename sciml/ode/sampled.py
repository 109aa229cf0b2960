"""Draws of one distribution, by one compiled program where it is sure to be a tree of arrays."""

from typing import Any

import jax
from jaxtyping import Array, Key

TREES = ("numpyro.distributions.continuous", "numpyro.distributions.truncated")


def sampled(distribution: Any, key: Key[Array, ""], samples: int) -> Any:
    """Return so many draws, traceable.

    Each operation by itself would be a program of its own, and together they take seconds to
    compile at the first call. What others wrote may hold more than its tree tells, and is called.
    """
    call = compiled if is_tree(distribution) else called
    return call(distribution, key, samples)


def is_tree(distribution: Any) -> bool:
    """Tell whether a distribution, and what it is made of, is one whose tree holds all of it."""
    base = getattr(distribution, "base_dist", None)
    return type(distribution).__module__ in TREES and (base is None or is_tree(base))


def called(distribution: Any, key: Key[Array, ""], samples: int) -> Any:
    """Return what the distribution itself draws."""
    return distribution.sample(key, (samples,))


compiled = jax.jit(called, static_argnames="samples")
