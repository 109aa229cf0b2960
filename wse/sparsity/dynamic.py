"""Masks that move: some weights go, as many others come."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

from wse._numbers import check_kinds
from wse.sparsity.method import Renewal, at_random, check_sparsity, largest
from wse.sparsity.selection import DEFAULT, Rule


@dataclass(frozen=True)
class _Moving:
    """Drop the smallest of the weights, grow as many others.

    The share that moves falls as a cosine, f(t) = drop / 2 · (1 + cos(π t / T)), until
    T = stop · steps. Grown weights start at zero, their moments too. Masks move after the
    optimizer's own update, and by the weights after it.

    Attributes:
        sparsity: the share of zeros in sparse parameters, throughout.
        steps: updates of the whole training.
        drop: the share of weights that move at first.
        every: updates between two moves.
        stop: the part of the training after which masks stay.
        rule: which parameters are sparse.
        seed: of what is random.
        rescales: as of `wse.sparsity.Static`.

    Raises:
        ValueError: a share outside its range, or no steps.
    """

    sparsity: float
    steps: int
    drop: float = 0.3  # sourced: vendor's model zoo, params_gpt3_125m_{set75,rigl75}.yaml
    every: int = 100  # sourced: as drop
    stop: float = 0.75  # sourced: as drop
    rule: Rule = DEFAULT
    seed: int = 0
    rescales: bool = True
    score = staticmethod(at_random)

    def __post_init__(self) -> None:
        check_sparsity("sparsity", self.sparsity)
        check_kinds(self)
        if self.steps < 1 or self.every < 1:
            raise ValueError(
                f"steps, every are {self.steps}, {self.every}; both must be positive: pass the "
                "number of updates of the whole training"
            )
        if not (0 < self.drop <= 1 and 0 < self.stop <= 1):
            raise ValueError(
                f"drop, stop are {self.drop}, {self.stop}; both must be in (0, 1]: pass shares"
            )

    @property
    def initial(self) -> float:
        """The share of zeros at the start."""
        return self.sparsity

    def due(self, step: Any) -> Any:
        """Every `every` updates, up to `stop`."""
        return (step % self.every == 0) & (step <= self.stop * self.steps)

    def share(self, step: Any) -> Any:
        """The share of weights that move after an update."""
        return self.drop / 2 * (1 + jnp.cos(jnp.pi * step / (self.stop * self.steps)))

    def _moved(self, now: Renewal, score: Array) -> Bool[Array, "..."]:
        """Drop by magnitude; grow by score, among all that did not survive."""
        moving = jnp.round(self.share(now.step) * now.first).astype(jnp.int32)
        survivors = largest(jnp.where(now.mask, jnp.abs(now.weight), -1), now.first - moving)
        return survivors | largest(jnp.where(survivors, -1, score), moving)


@dataclass(frozen=True)
class SET(_Moving):
    """Sparse evolutionary training: weights grow at random places.

    Source: Mocanu et al., Nature Communications 9, 2383 (2018); there grown weights are drawn
    at random, here they start at zero.

    >>> SET(sparsity=0.9, steps=1000).steps
    1000
    """

    reads_gradient = False

    def renew(self, now: Renewal) -> Bool[Array, "..."]:
        """Drop the smallest, grow at random."""
        return self._moved(now, at_random(now.weight, now.key))


@dataclass(frozen=True)
class RigL(_Moving):
    """Rigged lottery: weights grow where the gradient of the dense layer is largest.

    Source: Evci et al., arXiv 1911.11134, algorithm 1; there an update of the mask takes the place
    of one of the weights, here it follows it.

    >>> RigL(sparsity=0.9, steps=1000).steps
    1000
    """

    reads_gradient = True

    def renew(self, now: Renewal) -> Bool[Array, "..."]:
        """Drop the smallest, grow where the gradient is largest."""
        return self._moved(now, jnp.abs(now.gradient))
