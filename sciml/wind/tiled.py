"""Refining a domain of any size piece by piece, without a seam and within a bounded memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

Refine = Callable[[Any], Any]


@dataclass(frozen=True)
class Tiles:
    """How a coarse domain is cut, in coarse points.

    Each tile is read with `reach + blend` points more on every side. The outer `reach` points only
    inform the net; over 2 × `blend` points about each border two neighbours are mixed, linearly.
    With a `reach` of at least that of the net (2 × blocks + 2 for `SuperResolution`) neighbours
    agree where they are mixed and the result is that of the whole domain; with less, the mixing
    turns a jump into a slope. Weights are constant over each coarse cell, so block means that each
    tile keeps are kept.

    Raises:
        ValueError: a number is negative, or ramps of a tile would overlap.
    """

    size: int = 64
    reach: int = 16
    blend: int = 4

    def __post_init__(self):
        """Check that no point lies in more than two tiles along an axis."""
        if min(self.reach, self.blend) < 0 or self.size < max(1, 2 * self.blend):
            raise ValueError(
                f"Tiles has size {self.size}, reach {self.reach}, blend {self.blend}; none may be "
                "negative, and the size must be positive and at least twice the blend"
            )


def refine_tiled(
    refine: Refine, coarse: Float[Any, "*time y_lo x_lo"], factor: int, tiles: Tiles | None = None
) -> Float[np.ndarray, "*time y x"]:
    """Return the fine fields of coarse ones, tile by tile; the result itself is in memory.

    Args:
        refine: takes (1, rows, columns) and gives (1, factor · rows, factor · columns), such as
            `Downscaling.refine`; called with one shape only, so it is compiled once.
        coarse: a field or fields in time, in memory or lazy (dask, Zarr): only tiles are read.
        factor: by which `refine` refines.
        tiles: how to cut.

    Raises:
        ValueError: `refine` gives another shape.
    """
    if coarse.ndim > 2:
        return np.stack([refine_tiled(refine, field, factor, tiles) for field in coarse])
    return np.concatenate(list(refined_rows(refine, coarse, factor, tiles)))


def refined_rows(
    refine: Refine, coarse: Float[Any, "y_lo x_lo"], factor: int, tiles: Tiles | None = None
) -> Iterator[Float[np.ndarray, "rows x"]]:
    """Yield the fine field from its first row on, as rows are finished: for writing to disk.

    In memory are one tile and the rows of one row of tiles, however many rows there are.

    Raises:
        ValueError: `refine` gives another shape.
    """
    tiles = Tiles() if tiles is None else tiles
    y, x = coarse.shape
    carried = np.zeros((0, x * factor), np.float32)
    for top in range(0, y, tiles.size):
        rows = Side.of(top, y, tiles)
        strip = np.zeros((rows.mixed * factor, x * factor), np.float32)
        for left in range(0, x, tiles.size):
            columns = Side.of(left, x, tiles)
            fine = one_tile(refine, coarse, factor, rows, columns)
            strip[:, columns.start * factor : columns.stop * factor] += fine
        strip[: len(carried)] += carried
        done = (rows.end_of_ramp - rows.start) * factor
        yield strip[:done]
        carried = strip[done:]


@dataclass(frozen=True)
class Side:
    """Along one axis: what a tile reads, what of it counts, and by how much."""

    first: int  # read from here
    last: int  # to here
    start: int  # counts from here
    stop: int  # to here
    end_of_ramp: int  # from here on the next tile is mixed in
    weight: Float[np.ndarray, " counted"]

    @property
    def mixed(self) -> int:
        """How many points count."""
        return self.stop - self.start

    @classmethod
    def of(cls, begin: int, length: int, tiles: Tiles) -> "Side":
        """Return the side of the tile that begins here; all read equally much."""
        end, blend = min(begin + tiles.size, length), tiles.blend
        start, stop = max(begin - blend, 0), min(end + blend, length)
        wide = min(length, tiles.size + 2 * (blend + tiles.reach))
        first = min(max(begin - blend - tiles.reach, 0), length - wide)
        middle = np.arange(start, stop) + 0.5
        weight = np.ones(stop - start, np.float32)
        if blend and begin > 0:
            weight *= np.clip((middle - (begin - blend)) / (2 * blend), 0, 1)
        if blend and end < length:
            weight *= np.clip(((end + blend) - middle) / (2 * blend), 0, 1)
        ramp = length if end == length else end - blend
        return cls(first, first + wide, start, stop, ramp, weight)


def one_tile(
    refine: Refine, coarse: Any, factor: int, rows: Side, columns: Side
) -> Float[np.ndarray, "rows columns"]:
    """Return the part of one tile that counts, weighted."""
    window = np.asarray(coarse[rows.first : rows.last, columns.first : columns.last])
    fine = np.asarray(refine(window[None]))
    expected = (1, window.shape[0] * factor, window.shape[1] * factor)
    if fine.shape != expected:
        raise ValueError(
            f"refine gave {fine.shape} for {window[None].shape}; with factor {factor} it must give "
            f"{expected}"
        )
    inside = fine[
        0,
        (rows.start - rows.first) * factor : (rows.stop - rows.first) * factor,
        (columns.start - columns.first) * factor : (columns.stop - columns.first) * factor,
    ]
    weight = np.repeat(rows.weight, factor)[:, None] * np.repeat(columns.weight, factor)
    return (inside * weight).astype(np.float32)
