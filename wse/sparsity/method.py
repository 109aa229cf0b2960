"""What a way of choosing masks must answer."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from wse.sparsity.selection import Rule


@dataclass(frozen=True)
class Renewal:
    """A parameter after an update, when its mask is renewed.

    Attributes:
        mask: which weights are there.
        weight: their values; zero elsewhere.
        gradient: of the update, of all weights where the method reads it.
        key: for what is random.
        first: weights that are there at the start.
        last: weights that are there at the end.
        step: updates so far.
    """

    mask: Bool[Array, "..."]
    weight: Array
    gradient: Array
    key: Key[Array, ""]
    first: int
    last: int
    step: Any


@runtime_checkable
class Method(Protocol):
    """A way of choosing masks.

    Attributes:
        sparsity: the share of zeros in sparse parameters, at the end.
        rule: which parameters are sparse.
        seed: of what is random.
        rescales: whether the first weights grow by 1 / √density.
        reads_gradient: whether `renew` looks at the gradients of weights that are zero.

    >>> from wse.sparsity import Method, RigL
    >>> isinstance(RigL(sparsity=0.9, steps=1000), Method)
    True
    """

    @property
    def sparsity(self) -> float: ...  # noqa: D102
    @property
    def rule(self) -> Rule: ...  # noqa: D102
    @property
    def seed(self) -> int: ...  # noqa: D102
    @property
    def initial(self) -> float:
        """The share of zeros at the start."""
        ...

    @property
    def rescales(self) -> bool: ...  # noqa: D102
    @property
    def reads_gradient(self) -> bool: ...  # noqa: D102

    def score(self, weight: Array, key: Key[Array, ""]) -> Float[Array, "..."]:
        """By what the first mask is chosen: the largest stay."""
        ...

    def due(self, step: Any) -> Any:
        """Whether the mask is renewed after update number `step`, counted from 1."""
        ...

    def renew(self, now: Renewal) -> Bool[Array, "..."]:
        """The next mask."""
        ...


def check_sparsity(name: str, value: Any) -> None:
    """Refuse a share of zeros that is no number, or outside [0, 1)."""
    if not isinstance(value, int | float | np.number) or not 0 <= value < 1:
        raise ValueError(f"{name} is {value!r}; it must be in [0, 1): pass the share of zeros")


def largest(score: Float[Array, "..."], count: Any) -> Bool[Array, "..."]:
    """Mark exactly `count` places of the largest scores; of equal ones the first.

    >>> largest(jnp.array([1.0, 3.0, 2.0, 3.0]), 2).tolist()
    [False, True, False, True]
    """
    order = jnp.argsort(score.ravel(), descending=True, stable=True)
    places = jnp.arange(order.size, dtype=jnp.int32)
    rank: Int[Array, " weight"] = jnp.zeros_like(places).at[order].set(places)
    return (rank < count).reshape(score.shape)


def at_random(weight: Array, key: Key[Array, ""]) -> Float[Array, "..."]:
    """A random score for each weight."""
    return jax.random.uniform(key, weight.shape, jnp.float32)


def magnitude(weight: Array, key: Key[Array, ""]) -> Float[Array, "..."]:
    """The magnitude of each weight as its score."""
    del key
    return jnp.abs(weight)
