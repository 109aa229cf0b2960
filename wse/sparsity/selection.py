"""Which parameters are sparse, and how many weights each keeps."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import jax
import numpy as np

from wse._numbers import check_kinds, one_of
from wse.graph.outline import paths

# sourced: cerebras.pytorch 2.10, sparse: the default filter skips these names and rank <= 1;
# biases are named for nets whose members are stacked, where a bias has rank 2.
EXEMPT = ("*embedding*", "*norm*", "*lm_head*", "*pe_helper*", "*bias*")
DISTRIBUTIONS = ("uniform", "erdos-renyi-kernel")


@dataclass(frozen=True)
class Rule:
    """Which parameters a method makes sparse, and how the zeros are shared out among them.

    Parameters of rank 0 and 1 stay dense. Patterns are those of a shell, on the parameter's path,
    in any case: "layers.*.kernel".

    Attributes:
        only: a sparse parameter's path matches one of these.
        exempt: and none of these.
        keep_last: the last matrix stays dense: of those that would be sparse, the last by path,
            with numbers in their own order ("layers.10" after "layers.9"). If paths do not follow
            the order of the layers, name the last one in `exempt` and pass False.
        distribution: "uniform": every parameter has the same sparsity; "erdos-renyi-kernel":
            density in proportion to (sum of sizes) / (product of sizes), at most 1, with the
            same total (Evci et al., arXiv 1911.11134, section 3).

    Raises:
        ValueError: another distribution.

    >>> import numpy as np
    >>> from wse.sparsity import Rule
    >>> shapes = {"wide": np.ones((64, 64)), "last": np.ones((64, 4))}
    >>> Rule(keep_last=True).counts(shapes, sparsity=0.75)
    (64, None)
    """

    only: tuple[str, ...] = ("*",)
    exempt: tuple[str, ...] = EXEMPT
    keep_last: bool = True
    distribution: str = "uniform"

    def __post_init__(self) -> None:
        check_kinds(self)
        one_of("distribution", self.distribution, DISTRIBUTIONS)

    def chosen(self, params: Any) -> tuple[bool, ...]:
        """For each leaf of `params`, whether it is sparse.

        Raises:
            ValueError: none is.
        """
        names = [name.lower() for name in paths(params)]
        ranks = [np.ndim(leaf) for leaf in jax.tree.leaves(params)]
        found = [
            rank > 1 and _matches(name, self.only) and not _matches(name, self.exempt)
            for name, rank in zip(names, ranks, strict=True)
        ]
        if self.keep_last and any(found):
            last = max((i for i, f in enumerate(found) if f), key=lambda i: _natural(names[i]))
            found[last] = False
        if not any(found):
            raise ValueError(
                f"no parameter is sparse, of {len(names)}: the rule exempts norms, biases, "
                "embeddings and the last matrix; pass Rule(only=..., exempt=..., keep_last=False) "
                "to say otherwise"
            )
        return tuple(found)

    def counts(self, params: Any, sparsity: float) -> tuple[int | None, ...]:
        """For each leaf of `params`, how many weights it keeps, at least 1; None: all of them."""
        chosen = self.chosen(params)
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(params)]
        sparse = [shape for shape, yes in zip(shapes, chosen, strict=True) if yes]
        uniform = self.distribution == "uniform"
        density = 1 - sparsity
        shares = iter([density] * len(sparse) if uniform else erdos_renyi_kernel(sparse, density))
        return tuple(
            max(1, round(prod(shape) * next(shares))) if yes else None
            for shape, yes in zip(shapes, chosen, strict=True)
        )


DEFAULT = Rule()


def erdos_renyi_kernel(shapes: Sequence[tuple[int, ...]], density: float) -> list[float]:
    """Densities ε · sum(shape) / prod(shape), at most 1, that keep `density` of all weights.

    >>> erdos_renyi_kernel([(10, 10), (2, 2)], 0.5)
    [0.48, 1.0]
    """
    sizes = [prod(shape) for shape in shapes]
    dense = {i for i, size in enumerate(sizes) if not size}  # what is empty takes no part
    while True:
        kept = density * sum(sizes) - sum(sizes[i] for i in dense)
        share = kept / max(1, sum(sum(s) for i, s in enumerate(shapes) if i not in dense))
        found = [
            1.0 if i in dense else share * sum(shape) / size
            for i, (shape, size) in enumerate(zip(shapes, sizes, strict=True))
        ]
        over = {i for i, x in enumerate(found) if x > 1}
        if not over:
            return found
        dense |= over


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A path as a key under which numbers sort as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts]
