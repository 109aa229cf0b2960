"""Which products of a graph a machine computes again together: those of one block.

A block are products one after another whose weights lie together in the user's tree. What enters it
is the least that crosses from what ran before, between its first product and the one before it: of
a U-Net's way up, what comes from below and what comes back from the way down.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

Place = Any  # of a value


@dataclass
class Product:
    """A product or convolution, for all samples of the batch.

    Attributes:
        number: its place among all.
        visit: that runs it.
        path: of its weights, else of those of the product before it.
        read: numbers that it reads.
        written: numbers that it writes.
        read_first: those among them that nothing read before, and what they are made of.
        started: how many it is.
        met: vectors of weights that meet what it writes: a bias is one, a norm's are two.
        is_convolution: whether it is one.
    """

    number: int
    visit: int
    path: str
    read: int
    written: int
    read_first: int
    started: int
    met: int = 0
    is_convolution: bool = False

    @property
    def kept(self) -> int:
        """Numbers that wait: a norm's gradient needs what enters the norm."""
        return self.read_first + self.written * (self.is_convolution and self.met > 1)

    @property
    def moved(self) -> int:
        """Numbers read and written."""
        return self.read + self.written


@dataclass(frozen=True)
class Step:
    """An equation on samples.

    Attributes:
        reads: places that it reads, each with its numbers.
        makes: places that it makes, and whether of what products wrote.
        is_product: whether it is one of the products.
        holds: whether it reads matrices of weights, by a product or a lookup: no cut lies before
            it that is asked for behind it.
    """

    reads: dict[Place, int]
    makes: dict[Place, bool]
    is_product: bool
    holds: bool


@dataclass(frozen=True)
class Block:
    """Products that are computed again together.

    Attributes:
        name: unique.
        first: number of its first product.
        last: number of its last product.
        enters: numbers that enter it.
        kept: numbers that wait within.
    """

    name: str
    first: int
    last: int
    enters: int
    kept: int


def numbered(path: str, times: int = 1) -> str:
    """The path up to its first number: `blocks.3` of `blocks.3.up`; empty without one.

    Args:
        path: of a parameter or a layer.
        times: up to which number, as far as there are so many.
    """
    found = re.match(rf"(?:(?:.*?[._\[])?\d+\]?){{1,{times}}}", path)
    return found[0] if found else ""


def of_products(products: list[Product], steps: list[Step]) -> dict[int, Block]:
    """The block of every product, by its number.

    Where lists lie in lists, as blocks in stages, blocks are of the outer or of the inner list. Of
    the outer ones a convolution that is a block by itself, as what doubles the sides in a U-Net,
    may go with the next one. All this as less waits.
    """
    if not products:
        return {}
    cuts = _Cuts(products, steps)
    outer, inner = _names(products, 1), _names(products, 2)
    found = min(_joined(cuts, outer), cuts.blocks(_starts(inner), inner), key=_waiting)
    return {number: one for one in found for number in range(one.first, one.last + 1)}


def _joined(cuts: "_Cuts", names: list[str]) -> list[Block]:
    starts = _starts(names)
    found = cuts.blocks(starts, names)
    for start, after in pairwise([*starts]):
        if after == start + 1 and cuts.products[start].is_convolution:
            fewer = [x for x in starts if x != after]
            if _waiting(tried := cuts.blocks(fewer, names)) < _waiting(found):
                found, starts = tried, fewer
    return found


def _names(products: list[Product], times: int) -> list[str]:
    return [numbered(x.path, times) or x.path.rpartition(".")[0] or x.path for x in products]


def _starts(names: list[str]) -> list[int]:
    return [0, *(i for i in range(1, len(names)) if names[i - 1] != names[i])]


class _Cuts:
    """The blocks of a graph by where they start."""

    def __init__(self, products: list[Product], steps: list[Step]) -> None:
        self.products, self.steps = products, steps
        self.at = [i for i, step in enumerate(steps) if step.is_product]
        self.made: dict[Place, tuple[int, bool]] = {}
        for i, step in enumerate(steps):
            for place, of_products in step.makes.items():
                self.made.setdefault(place, (i, of_products))
        self.waits = cache(self._waits)

    def blocks(self, starts: list[int], names: list[str]) -> list[Block]:
        """Those that start with these products; one whose name came before has a number."""
        ends, seen = [*starts[1:], len(self.products)], Counter[str]()
        found: list[Block] = []
        for start, end in zip(starts, ends, strict=True):
            name = names[end - 1]
            seen[name] += 1
            number = f"#{seen[name]}" if seen[name] > 1 else ""
            found.append(Block(f"{name}{number}", start, end - 1, *self.waits(start, end)))
        return found

    def _waits(self, start: int, end: int) -> tuple[int, int]:
        """Numbers that enter, and those that wait within."""
        return self._enters(start, end), sum(x.kept for x in self.products[start:end])

    def _enters(self, start: int, end: int) -> int:
        high = self.at[start]
        low = next((i for i in range(high - 1, -1, -1) if self.steps[i].holds), -1) + 1
        after = self.at[end] if end < len(self.at) else len(self.steps)
        last: dict[Place, tuple[int, int]] = {}
        for i in range(low, after):
            last |= {place: (i, count) for place, count in self.steps[i].reads.items()}
        crosses = [0] * (high - low + 1)
        for place, (read, count) in last.items():
            made, of_products = self.made.get(place, (-1, False))
            if start and not of_products:  # made of the batch, which is there in any case
                continue
            for cut in range(max(made + 1, low), min(read, high) + 1):
                crosses[cut - low] += count
        return min(crosses)


def _waiting(found: list[Block]) -> int:
    return sum(x.enters for x in found) + max(x.kept for x in found)
