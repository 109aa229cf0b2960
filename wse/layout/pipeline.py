"""The layer-pipelined placement: each layer a rectangle of PEs, samples flowing through them.

The kernel model of the ISPD 2020 contest (cerebras.net/ispd-2020-contest): a layer of H x W places,
R x S taps, C channels, K filters and stride T, executed with parameters (h, w, c, k), takes a
rectangle of 3 k across and h w (c + 1) down (forward, delta and weight update; a row more for
input and output), and per sample

    ceil(H / h) ceil(W / w) ceil(C / c) ceil(K / k) R S / T^2   cycles.

A PE holds (C / c)(K / k) R S + (W + S - 1)/w (H + R - 1)/h (K / k) words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, prod

from wse.layout.pieces import VALUE_BYTES, Wafer, part
from wse.layout.splits import splits

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
    """

    name: str
    channels: int
    filters: int
    height: int = 1
    width: int = 1
    taps: tuple[int, int] = (1, 1)
    stride: int = 1

    def __post_init__(self) -> None:
        sizes = (self.channels, self.filters, self.height, self.width, *self.taps, self.stride)
        if min(sizes) < 1:
            raise ValueError(f"sizes of {self.name!r} are {sizes}; all must be 1 or more")


@dataclass(frozen=True)
class Rectangle:
    """A kernel with its execution parameters.

    Attributes:
        kernel: the layer.
        parts: (h, w, c, k).
        column: its western edge on the wafer.
        row: its northern edge.
    """

    kernel: Kernel
    parts: tuple[int, int, int, int]
    column: int = 0
    row: int = 0

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
        k = self.kernel
        h, w, c, f = self.parts
        weights = k.channels / c * k.filters / f * prod(k.taps)
        rim = (k.width + k.taps[1] - 1) / w * (k.height + k.taps[0] - 1) / h
        return weights + rim * k.filters / f


@dataclass(frozen=True)
class Placement:
    """All layers of a net on the wafer at once.

    Attributes:
        wafer: the grid.
        rectangles: one per layer, placed.
    """

    wafer: Wafer
    rectangles: tuple[Rectangle, ...]

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
    """A dense net by its sizes, inputs first."""
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
    grid = wafer or Wafer.of()
    limit = grid.pes if pes is None else pes
    if not kernels:
        raise ValueError("no layers to place; pass at least one kernel")
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


def _rectangles(kernel: Kernel, cycles: int, wafer: Wafer) -> Iterator[Rectangle]:
    turns = cycles * kernel.stride**2 // prod(kernel.taps)
    for h in splits(kernel.height, wafer.rows):
        for w in splits(kernel.width, wafer.rows // h):
            places = part(kernel.height, h) * part(kernel.width, w)
            for c in splits(kernel.channels, wafer.rows):
                left = turns // (places * part(kernel.channels, c))
                if left < 1:
                    continue
                k = part(kernel.filters, min(left, kernel.filters))
                found = Rectangle(kernel, (h, w, c, k))
                small = found.columns <= wafer.columns and found.rows <= wafer.rows
                if small and found.words * VALUE_BYTES <= wafer.data_bytes:
                    yield found


def _placed(kernels: Sequence[Kernel], cycles: int, wafer: Wafer, limit: int) -> Placement | None:
    """A placement within these cycles and PEs, if one is found."""
    options = [list(_rectangles(kernel, cycles, wafer)) for kernel in kernels]
    if not all(options):
        return None
    chosen = [[min(found, key=lambda x: (x.pes, x.columns)) for found in options]]
    for shelves in SHELVES:
        low = [[x for x in found if x.rows <= wafer.rows // shelves] for found in options]
        if all(low):
            chosen.append([min(found, key=lambda x: (x.columns, x.rows)) for found in low])
    for found in chosen:
        if sum(x.pes for x in found) <= limit and (places := _pack(found, wafer)):
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
