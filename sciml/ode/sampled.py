"""Draws of one distribution, by one compiled program where it is sure to be a tree of arrays."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

TREES = ("numpyro.distributions.continuous", "numpyro.distributions.truncated")


def sampled(distribution: Any, key: Key[Array, ""], samples: int) -> Any:
    """Return so many draws, traceable.

    Each operation by itself would be a program of its own, and together they take seconds to
    compile at the first call. What others wrote may hold more than its tree tells, and is called.
    """
    leaves, tree = jax.tree.flatten(distribution)
    leaves = [as_now(leaf) for leaf in leaves]
    if not is_tree(distribution):
        theirs = type(distribution).__module__.startswith("numpyro.")
        whole = jax.tree.unflatten(tree, leaves) if theirs else distribution
        return whole.sample(key, (samples,))
    # In the order of their names. NumPyro's own differs from process to process, and with it the
    # program, which would not be found among those that earlier ones have compiled.
    order = tuple(jax.tree.leaves(named(jax.tree.unflatten(tree, range(len(leaves))))))
    return compiled([leaves[i] for i in order], key, samples, (tree, order))


def as_now(leaf: Any) -> Any:
    """Return a number of a distribution that was made in double precision in that of now."""
    wide = isinstance(leaf, jax.Array) and leaf.dtype == np.float64
    return np.asarray(leaf, jnp.result_type(float)) if wide else leaf


def is_tree(distribution: Any) -> bool:
    """Tell whether a distribution, and what it is made of, is one whose tree holds all of it."""
    base = getattr(distribution, "base_dist", None)
    return type(distribution).__module__ in TREES and (base is None or is_tree(base))


def named(distribution: Any) -> dict[str, Any]:
    """Return the numbers of a distribution, and of those it is made of, by name."""
    names = type(distribution).gather_pytree_data_fields()
    values = zip(names, distribution.tree_flatten()[0], strict=True)
    return {name: named(x) if name == "base_dist" else x for name, x in values}


@partial(jax.jit, static_argnums=(2, 3))
def compiled(numbers: list[Any], key: Key[Array, ""], samples: int, of: tuple[Any, Any]) -> Any:
    """Return draws of the distribution of which these are the numbers, ordered by name."""
    tree, order = of
    placed = dict(zip(order, numbers, strict=True))
    distribution = jax.tree.unflatten(tree, [placed[i] for i in range(len(numbers))])
    return distribution.sample(key, (samples,))
