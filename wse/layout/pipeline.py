"""The layer-pipelined placement: each layer a rectangle of PEs, samples flowing through them.

The kernel model of the ISPD 2020 contest (cerebras.net/ispd-2020-contest): a layer of H x W places,
R x S taps, C channels, K filters and stride T, executed with parameters (h, w, c, k), takes a
rectangle of 3 k across and h w (c + 1) down (forward, delta and weight update; a row more for
input and output), and per sample

    ceil(H / h) ceil(W / w) ceil(C / c) ceil(K / k) R S / T^2   cycles.

A PE holds (C / c)(K / k) R S + (W + S - 1)/w (H + R - 1)/h (K / k) words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import ceil, prod
from typing import Any, TypeAlias

import numpy as np

from wse._numbers import check_kinds, each_of_kind, positive
from wse.layout.pieces import VALUE_BYTES, Shape, Wafer, check_axes, grid_of, part

Ways: TypeAlias = np.ndarray
SHELVES = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True)
class Kernel:
    """A layer, as the contest describes it.

    Attributes:
        name: what tables call it.
        height: H.
        width: W.
        taps: (R, S).
        channels: C.
        filters: K.
        stride: T.

    Raises:
        ValueError: a size that is not positive.

    >>> from wse import layout
    >>> layout.Rectangle(layout.Kernel("dense", channels=784, filters=500), (1, 1, 8, 10)).cycles
    4900
    """

    name: str
    channels: int
    filters: int
    height: int = 1
    width: int = 1
    taps: tuple[int, int] = (1, 1)
    stride: int = 1

    def __post_init__(self) -> None:
        for name in ("channels", "filters", "height", "width", "stride"):
            positive(f"{name} of {self.name!r}", getattr(self, name), "pass 1 or more")
        check_axes("taps", self.taps)
        if len(self.taps) != 2:
            raise ValueError(f"taps of {self.name!r} are {self.taps}; pass two, as taps=(3, 3)")
        check_kinds(self)

    @classmethod
    def of(cls, shape: Shape) -> "Kernel":
        """A layer of two axes, as the contest describes it; its batch flows through in time.

        Raises:
            ValueError: a layer of another number of axes, for which the contest has no kernel.

        >>> Kernel.of(Shape("c", 4, (256, 128), 3, 32, (3, 3))).height
        256
        """
        if len(shape.size) != 2:
            raise ValueError(
                f"{shape.name!r} has an image of {len(shape.size)} axes; the kernel model knows "
                "two: stream its weights, as wse.layout.plan lays it out"
            )
        (height, width), taps = shape.size, (shape.taps[0], shape.taps[1])
        return cls(shape.name, shape.channels, shape.filters, height, width, taps, shape.stride)


@dataclass(frozen=True)
class Rectangle:
    """A kernel with its execution parameters.

    Attributes:
        kernel: the layer.
        parts: (h, w, c, k).
        column: its western edge on the wafer.
        row: its northern edge.

    >>> from wse import layout
    >>> found = layout.Rectangle(layout.Kernel("dense", 784, 500), (1, 1, 8, 10))
    >>> found.columns, found.rows, found.pes, found.cycles
    (30, 9, 270, 4900)
    """

    kernel: Kernel
    parts: tuple[int, int, int, int]
    column: int = 0
    row: int = 0

    def __post_init__(self) -> None:
        check_kinds(self)

    @property
    def columns(self) -> int:
        """Its width in PEs."""
        return 3 * self.parts[3]

    @property
    def rows(self) -> int:
        """Its height in PEs."""
        h, w, c, _ = self.parts
        return h * w * (c + 1)

    @property
    def pes(self) -> int:
        """Its PEs."""
        return self.columns * self.rows

    @property
    def cycles(self) -> int:
        """Per sample."""
        k = self.kernel
        sizes = (k.height, k.width, k.channels, k.filters)
        turns = prod(part(n, p) for n, p in zip(sizes, self.parts, strict=True))
        return ceil(turns * prod(k.taps) / k.stride**2)

    @property
    def words(self) -> float:
        """Per PE: weights, and the image with its rim."""
        return _words(self.kernel, *self.parts)


@dataclass(frozen=True)
class Placement:
    """All layers of a net on the wafer at once.

    Attributes:
        wafer: the grid.
        rectangles: one per layer, placed.

    >>> from wse import layout
    >>> placed = layout.pipeline(layout.dense_kernels(784, 500, 300, 10), pes=3660)
    >>> placed.pes, [x.cycles for x in placed.rectangles], round(placed.samples_per_s(850e6))
    (3660, [462, 450, 430], 1839827)
    """

    wafer: Wafer
    rectangles: tuple[Rectangle, ...]

    def __repr__(self) -> str:
        """One line; `rectangles` has the layers."""
        where = f"{len(self.rectangles)} layers on {self.pes:,} PEs"
        return f"Placement({where}: {self.cycles_per_sample:,} cycles a sample)"

    @property
    def cycles_per_sample(self) -> int:
        """Of the slowest layer: samples follow each other at this distance."""
        return max(x.cycles for x in self.rectangles)

    @property
    def pes(self) -> int:
        """PEs in use."""
        return sum(x.pes for x in self.rectangles)

    def samples_per_s(self, clock_hz: float) -> float:
        """The rate of the arithmetic alone."""
        return clock_hz / self.cycles_per_sample


def dense_kernels(*sizes: int) -> tuple[Kernel, ...]:
    """A dense net by its sizes, inputs first.

    Raises:
        ValueError: fewer than two sizes, or one that is not positive.

    >>> from wse import layout
    >>> kernels = layout.dense_kernels(784, 500, 300, 10)
    >>> len(kernels), layout.pipeline(kernels, pes=3660).cycles_per_sample
    (3, 462)
    """
    if len(sizes) < 2:
        raise ValueError(f"sizes are {sizes}; inputs and outputs are two: pass 784, 10")
    return tuple(Kernel(f"dense_{i}", n, m) for i, (n, m) in enumerate(pairwise(sizes), 1))


def pipeline(
    kernels: Sequence[Kernel], wafer: Wafer | None = None, *, pes: int | None = None
) -> Placement:
    """The placement with the fewest cycles per sample.

    For a number of cycles every layer takes the fewest PEs that reach it within a PE's memory; the
    fewest cycles whose rectangles fit are found by halving. Where the smallest rectangles do not
    pack, those that are narrowest on a shelf of the whole, half, ... an eighth of the rows are
    tried.

    Args:
        kernels: the layers.
        wafer: the grid; None: one CS-2.
        pes: use no more than these; None: the whole grid.

    Raises:
        ValueError: no layers, or layers that do not fit at any speed.

    >>> pipeline(dense_kernels(784, 500, 300, 10), pes=3660).cycles_per_sample
    462
    """
    grid = grid_of(wafer)
    limit = grid.pes if pes is None else positive("pes", pes, "pass 1 or more, or leave it out")
    remedy = (
        "pass kernels, as wse.layout.dense_kernels(784, 10), or Kernel.of each wse.layout.Shape"
    )
    each_of_kind("kernels", kernels, Kernel, remedy)
    low, high = 1, max(Rectangle(kernel, (1, 1, 1, 1)).cycles for kernel in kernels)
    best = _placed(kernels, high, grid, limit)
    if best is None:
        raise ValueError(
            f"{len(kernels)} layers do not fit on {limit} PEs of {grid.data_bytes} bytes at any "
            "speed; use fewer weights, a larger wafer, or weight streaming"
        )
    while low < high:
        middle = (low + high) // 2
        found = _placed(kernels, middle, grid, limit)
        low, high = (middle + 1, high) if found is None else (low, middle)
        best = found or best
    return best


@dataclass(frozen=True)
class _Splits:
    """The ways to split a kernel's image and channels: h, w, c, each an array over the ways.

    `turns` are the cycles of one filter, `held` the fewest filter parts whose words a PE holds.
    """

    kernel: Kernel
    parts: tuple[Ways, Ways, Ways]
    turns: Ways
    held: Ways
    rows: Ways

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, kernel: Kernel, wafer: Wafer) -> "_Splits":
        # All of them: words fall with every part, also where the largest part's size does not.
        ways = [
            (h, w, c)
            for h in range(1, 1 + min(kernel.height, wafer.rows // 2))
            for w in range(1, 1 + min(kernel.width, wafer.rows // (2 * h)))
            for c in range(1, 1 + min(kernel.channels, wafer.rows // (h * w) - 1))
        ] or [(1, 1, 1)]
        h, w, c = np.array(ways).T
        high, wide, deep = -(-kernel.height // h), -(-kernel.width // w), -(-kernel.channels // c)
        # A PE's words are inversely proportional to the filter parts.
        words = _words(kernel, h, w, c, 1)
        held = np.ceil(words * VALUE_BYTES / wafer.data_bytes).astype(int)
        fits = (held <= kernel.filters) & (h * w * (c + 1) <= wafer.rows)
        chosen = [x[fits] for x in (h, w, c, high * wide * deep, held, h * w * (c + 1))]
        return cls(kernel, (chosen[0], chosen[1], chosen[2]), *chosen[3:])

    def within(self, cycles: int, wafer: Wafer, rows: int) -> "_Fast":
        """With the fewest filter parts that take so many cycles and fit, in so many rows."""
        kernel = self.kernel
        one = cycles * kernel.stride**2 // prod(kernel.taps)
        many = np.clip(one // self.turns, 1, kernel.filters)
        k = np.maximum(-(-kernel.filters // many), self.held)
        legal = (one >= self.turns) & (3 * k <= wafer.columns) & (self.rows <= rows)
        return _Fast(self, k, np.flatnonzero(legal))


@dataclass(frozen=True)
class _Fast:
    """Splits with filter parts `k`; those that are legal by their places."""

    splits: _Splits
    k: Ways
    legal: Ways

    def least(self, narrow: bool) -> Rectangle:
        """The narrowest, or the one of fewest PEs."""
        columns, rows = 3 * self.k[self.legal], self.splits.rows[self.legal]
        first, then = (columns, rows) if narrow else (rows * columns, columns)
        i = self.legal[np.argmin(first * (1 + then.max()) + then)]
        h, w, c = (int(x[i]) for x in self.splits.parts)
        return Rectangle(self.splits.kernel, (h, w, c, int(self.k[i])))


def _words(kernel: Kernel, h: Any, w: Any, c: Any, f: int) -> Any:
    weights = kernel.channels / c * kernel.filters / f * prod(kernel.taps)
    rim = (kernel.width + kernel.taps[1] - 1) / w * (kernel.height + kernel.taps[0] - 1) / h
    return weights + rim * kernel.filters / f


def _placed(kernels: Sequence[Kernel], cycles: int, wafer: Wafer, limit: int) -> Placement | None:
    """A placement within these cycles and PEs, if one is found."""
    ways = {kernel: _Splits.of(kernel, wafer) for kernel in kernels}  # equal ones once
    for shelves in (0, *SHELVES):
        rows = wafer.rows // max(1, shelves)
        found = {kernel: one.within(cycles, wafer, rows) for kernel, one in ways.items()}
        if not all(one.legal.size for one in found.values()):
            return None
        least = {kernel: one.least(narrow=shelves > 0) for kernel, one in found.items()}
        chosen = [least[kernel] for kernel in kernels]
        if sum(x.pes for x in chosen) <= limit and (places := _pack(chosen, wafer)):
            return Placement(wafer, places)
    return None


def _pack(rectangles: Sequence[Rectangle], wafer: Wafer) -> tuple[Rectangle, ...] | None:
    """Put rectangles on shelves, the tallest first; None if they do not fit."""
    placed: dict[int, Rectangle] = {}
    column = row = shelf = 0
    for i in sorted(range(len(rectangles)), key=lambda i: -rectangles[i].rows):
        this = rectangles[i]
        if column + this.columns > wafer.columns:
            column, row = 0, row + shelf
            shelf = 0
        if row + this.rows > wafer.rows:
            return None
        placed[i] = replace(this, column=column, row=row)
        column, shelf = column + this.columns, max(shelf, this.rows)
    return tuple(placed[i] for i in range(len(rectangles)))
