"""The ways to split a layer that are worth trying."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod

from wse.layout.pieces import Layout, Wafer, part


@lru_cache(maxsize=4096)
def splits(size: int, limit: int, ratio: float = 1.0) -> tuple[int, ...]:
    """Numbers of parts up to a limit, the fewest for each size of the largest part.

    With a ratio above 1, of numbers that are nearer than that only the first.

    >>> splits(10, 10)
    (1, 2, 3, 4, 5, 10)
    """
    found, parts = [1], 1
    while part(size, parts) > 1:
        parts = part(size, part(size, parts) - 1)
        if parts > limit:
            break
        if parts >= ratio * found[-1]:
            found.append(parts)
    return tuple(found)


def widest(size: int, limit: int) -> int:
    """The fewest parts that are as small as the limit allows."""
    return part(size, part(size, max(1, min(size, limit))))


def layouts(
    batch: int, channels: int, size: tuple[int, ...], wafer: Wafer, ratio: float = 1.0
) -> Iterator[Layout]:
    """Every layout in which the width and the height of the image fill what the rest leaves free.

    Args:
        batch: samples.
        channels: numbers per place.
        size: places along each axis; the last lies across, the others down.
        wafer: the grid.
        ratio: as of `splits`.

    Yields:
        Layouts within the grid, none twice.

    >>> from wse import layout
    >>> found = layout.layouts(4, 8, (64, 64), layout.Wafer.of())
    >>> next(found).batch
    1
    """
    *outer, height, width = size
    for across in splits(channels, wafer.columns, ratio):
        left = part(channels, across)
        columns = widest(width, wafer.columns // across)
        inner = [splits(n, wafer.rows, ratio) for n in (batch, left)]
        for down in product(*inner, *(splits(n, wafer.rows, ratio) for n in outer)):
            if (used := prod(down)) <= wafer.rows:
                rows = widest(height, wafer.rows // used)
                yield Layout(down[0], across, down[1], (*down[2:], rows, columns))
