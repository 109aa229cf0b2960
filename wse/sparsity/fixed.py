"""Masks that are chosen once."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Bool

from wse._numbers import check_kinds, positive
from wse.sparsity.method import Renewal, at_random, check_sparsity, magnitude
from wse.sparsity.selection import DEFAULT, Rule


@dataclass(frozen=True)
class _Fixed:
    """A mask that never changes.

    Attributes:
        sparsity: the share of zeros in sparse parameters.
        rule: which parameters are sparse.
        seed: of what is random.
        block: the side of the squares in which weights stay or go together, 1 for each by itself.
            Every column of blocks then keeps the same number, so that the share of zeros is the
            nearest one that allows it, and `packed` can leave the zeros out; `density` says the
            share that was reached.
    """

    sparsity: float
    rule: Rule = DEFAULT
    seed: int = 0
    block: int = 1
    rescales = False
    reads_gradient = False

    def __post_init__(self) -> None:
        check_sparsity("sparsity", self.sparsity)
        positive("block", self.block, "pass block=32")
        check_kinds(self)

    @property
    def initial(self) -> float:
        """The share of zeros at the start."""
        return self.sparsity

    def due(self, step: Any) -> bool:
        """Never."""
        del step
        return False

    def renew(self, now: Renewal) -> Bool[Array, "..."]:
        """The same mask."""
        return now.mask


@dataclass(frozen=True)
class Static(_Fixed):
    """Weights chosen at random before training, and zero throughout.

    Attributes:
        rescales: multiply the weights that stay by 1 / √density at the start, so that sums over
            fewer inputs keep their variance; deep nets collapse without (Evci et al., arXiv
            2010.03533, section 3, there for each unit by its own number of inputs).

    >>> Static(sparsity=0.9).sparsity
    0.9
    """

    rescales: bool = True
    score = staticmethod(at_random)


@dataclass(frozen=True)
class Magnitude(_Fixed):
    """One-shot pruning: the weights of smallest magnitude at the start, of a net that is trained.

    Of blocks, those with the smallest sum of magnitudes.

    Source: Han et al., arXiv 1506.02626.

    >>> Magnitude(sparsity=0.9).sparsity
    0.9
    """

    score = staticmethod(magnitude)
