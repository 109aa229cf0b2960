"""Pruning as training goes on."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

from wse._numbers import check_kinds
from wse.sparsity.method import Renewal, check_sparsity, largest, magnitude
from wse.sparsity.selection import DEFAULT, Rule


@dataclass(frozen=True)
class Gradual:
    """Gradual magnitude pruning: every so often the smallest weights go, along a cubic.

    s(t) = s_f + (s_i − s_f) (1 − (t − begin) / (end − begin))³ between `begin` and `end`; a weight
    that is gone stays gone. Source: Zhu and Gupta, arXiv 1710.01878, equation 1.

    Attributes:
        sparsity: s_f, the share of zeros at the end.
        begin: the update after which pruning starts.
        end: the update after which it has reached `sparsity`.
        every: updates between two prunings.
        initial: s_i, the share at the start.
        rule: which parameters are sparse.
        seed: takes no part; as of all methods.

    Raises:
        ValueError: a sparsity outside [0, 1), one that falls, or steps that do not follow.

    >>> from wse.sparsity import Gradual
    >>> Gradual(0.9, begin=100, end=1000).sparsity
    0.9
    """

    sparsity: float
    begin: int
    end: int
    every: int = 100
    initial: float = 0.0
    rule: Rule = DEFAULT
    seed: int = 0
    rescales = False
    reads_gradient = False
    score = staticmethod(magnitude)

    def __post_init__(self) -> None:
        check_sparsity("sparsity", self.sparsity)
        check_sparsity("initial", self.initial)
        check_kinds(self)
        if self.initial > self.sparsity:
            raise ValueError(
                f"initial is {self.initial} and sparsity {self.sparsity}; pruning only adds "
                "zeros: pass initial <= sparsity"
            )
        if not 0 < self.begin < self.end or self.every < 1:
            raise ValueError(
                f"begin, end, every are {self.begin}, {self.end}, {self.every}; they must hold "
                "0 < begin < end and every >= 1: pass steps of the training"
            )

    def due(self, step: Any) -> Any:
        """Every `every` updates from `begin` on, and at `end`."""
        on_beat = (step - self.begin) % self.every == 0
        return (step >= self.begin) & (on_beat & (step < self.end) | (step == self.end))

    def progress(self, step: Any) -> Any:
        """The part of the way from `initial` to `sparsity`: 1 − (1 − x)³."""
        x = jnp.clip((step - self.begin) / (self.end - self.begin), 0, 1)
        return 1 - (1 - x) ** 3

    def renew(self, now: Renewal) -> Bool[Array, "..."]:
        """The largest of the weights that are left."""
        gone = (now.first - now.last) * self.progress(now.step)
        count = jnp.round(now.first - gone).astype(jnp.int32)
        return largest(jnp.where(now.mask, jnp.abs(now.weight), -1), count)
