"""Refining a domain of any size piece by piece, without a seam and within a bounded memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from sciml._arguments import LEAST, check_whole
from sciml._labels import last
from sciml._session import each

Refine = Callable[[Any], Any]
Coarse = Any  # (…, y, x), bare or labelled; in memory, or lazy by dask or Zarr


@dataclass(frozen=True)
class Window:
    """Which part of a coarse domain a tile reads, in coarse points.

    >>> import numpy as np
    >>> from sciml import wind
    >>> part = wind.Window(top=0, left=2, rows=3, columns=4)
    >>> part.cut(np.zeros((1, 40, 40)), 4).shape
    (1, 12, 16)
    """

    top: int
    left: int
    rows: int
    columns: int

    @property
    def corner(self) -> tuple[int, int]:
        """The first row and column."""
        return self.top, self.left

    def cut(self, field: Any, factor: int = 1) -> Any:
        """Return this part of a field that has `factor` points per coarse one."""
        rows = slice(factor * self.top, factor * (self.top + self.rows))
        columns = slice(factor * self.left, factor * (self.left + self.columns))
        return field[..., rows, columns]


Located = Callable[[Any, Window], Any]


@dataclass(frozen=True)
class Tiles:
    """How a coarse domain is cut, in coarse points.

    Each tile is read with `reach + blend` points more on every side. The outer `reach` points only
    inform the net; over 2 × `blend` points about each border two neighbours are mixed, linearly.
    With a `reach` of at least that of the net (its configuration's `reach`) neighbours
    agree where they are mixed and the result is that of the whole domain; with less, the mixing
    turns a jump into a slope. A tile that sees missing values reads twice as far: what a net is
    shown of a gap comes from there. Weights are constant over each coarse cell, so block means
    that each tile keeps are kept.

    Raises:
        ValueError: a number is negative, or ramps of a tile would overlap.

    >>> Tiles(size=20, reach=10).reach
    10
    """

    size: int = 64
    reach: int = 16
    blend: int = 4

    def __post_init__(self):
        """Check that no point lies in more than two tiles along an axis."""
        check_whole(LEAST, size=self.size, reach=self.reach, blend=self.blend)
        if min(self.reach, self.blend) < 0 or self.size < max(1, 2 * self.blend):
            raise ValueError(
                f"Tiles has size {self.size}, reach {self.reach}, blend {self.blend}; none may be "
                "negative, and the size must be positive and at least twice the blend"
            )


def refine_tiled(
    refine: Refine,
    coarse: Coarse,
    factor: int,
    tiles: Tiles | None = None,
    *,
    threads: bool = False,
) -> Float[np.ndarray, "*time y x"]:
    """Return the fine fields of coarse ones, tile by tile; the result itself is in memory.

    Args:
        refine: takes (1, rows, columns) and gives (1, factor · rows, factor · columns), such as
            `Downscaling.refine`; called with one shape, and another beside gaps: compiled for each.
        coarse: a field or fields in time, in memory or lazy (dask, Zarr): only tiles are read.
        factor: by which `refine` refines.
        tiles: how to cut.
        threads: whether tiles of a row are refined side by side, on all cores. Most functions
            cannot be called so: `nnx.jit` changes the net that it is given, a generator of random
            numbers is shared. `Downscaling.refine` can.

    Raises:
        ValueError: `refine` gives another shape.

    >>> import numpy as np
    >>> from sciml import wind
    >>> rough = np.random.default_rng(0).normal(size=(3, 40, 40))
    >>> cubic = wind.upsample.METHODS["bicubic"]
    >>> tiles = wind.Tiles(size=20, reach=4)
    >>> wind.refine_tiled(lambda part: cubic(part, 2), rough, 2, tiles).shape
    (3, 80, 80)
    """
    coarse = last(coarse, "y", "x")
    if coarse.ndim > 2:
        fields = [refine_tiled(refine, field, factor, tiles, threads=threads) for field in coarse]
        return np.stack(fields)
    return np.concatenate(list(refined_rows(refine, coarse, factor, tiles, threads=threads)))


def refined_rows(
    refine: Refine,
    coarse: Coarse,
    factor: int,
    tiles: Tiles | None = None,
    *,
    threads: bool = False,
) -> Iterator[Float[np.ndarray, "rows x"]]:
    """Yield the fine field from its first row on, as rows are finished: for writing to disk.

    In memory are the rows of two rows of tiles, however many there are. With `threads`, `refine` is
    called from several at once, as in `refine_tiled`.

    Raises:
        ValueError: `refine` gives another shape.

    >>> import numpy as np
    >>> from sciml import wind
    >>> def double(part):
    ...     return part.repeat(2, -1).repeat(2, -2)
    >>> tiles = wind.Tiles(size=20, reach=2)
    >>> [rows.shape for rows in wind.refined_rows(double, np.zeros((40, 40)), 2, tiles)]
    [(32, 80), (48, 80)]
    """

    def one(part: Any, _: Window) -> Any:
        return refine(part[None])

    for rows in located_rows(one, coarse, factor, tiles, threads=threads):
        yield rows[0]


def refine_located(
    refine: Located,
    coarse: Coarse,
    factor: int,
    tiles: Tiles | None,
    *,
    threads: bool = False,
) -> Float[np.ndarray, "*shape y x"]:
    """Return what `refine` makes of a coarse field, tile by tile, where it needs to know the place.

    Args:
        refine: takes the part (*channel, rows, columns) and its `Window`, with which to cut static
            fields (`window.cut(statics, factor)`) or draw noise that depends on the place
            (`window.corner`), and gives (*shape, factor · rows, factor · columns): channels, draws.
        coarse: one field of any channels, in memory or lazy.
        factor: by which `refine` refines.
        tiles: how to cut.
        threads: whether `refine` may be called from several at once, as in `refine_tiled`.

    Raises:
        ValueError: `refine` gives another shape.

    >>> import numpy as np
    >>> from sciml import wind
    >>> ground = np.arange(80.0 * 80).reshape(1, 80, 80)
    >>> def add(part, window):
    ...     return part.repeat(2, -1).repeat(2, -2) + window.cut(ground, 2)
    >>> wind.refine_located(add, np.zeros((1, 40, 40)), 2, wind.Tiles(size=20, reach=4)).shape
    (1, 80, 80)
    """
    rows = located_rows(refine, coarse, factor, tiles, threads=threads)
    return np.concatenate(list(rows), axis=-2)


def located_rows(
    refine: Located,
    coarse: Coarse,
    factor: int,
    tiles: Tiles | None,
    *,
    threads: bool = False,
) -> Iterator[Float[np.ndarray, "*shape rows x"]]:
    """Yield what `refine_located` returns from its first row on, as rows are finished.

    >>> import numpy as np
    >>> from sciml import wind
    >>> ground = np.arange(80.0 * 80).reshape(1, 80, 80)
    >>> def add(part, window):
    ...     return part.repeat(2, -1).repeat(2, -2) + window.cut(ground, 2)
    >>> rows = wind.located_rows(add, np.zeros((1, 40, 40)), 2, wind.Tiles(size=20, reach=4))
    >>> bool((np.concatenate(list(rows), axis=-2) == ground).all())
    True
    """
    tiles, coarse = Tiles() if tiles is None else tiles, last(coarse, "y", "x")
    farther = replace(tiles, reach=2 * tiles.reach)
    y, x = coarse.shape[-2:]
    carried = None
    for top in range(0, y, tiles.size):
        both = Side.of(top, y, tiles), Side.of(top, y, farther)
        rows, strip = both[0], None
        sides = [(Side.of(a, x, tiles), Side.of(a, x, farther)) for a in range(0, x, tiles.size)]
        one = partial(one_tile, refine, coarse, factor, both)
        made = each(one, sides, compiled=top > 0) if threads else map(one, sides)
        for (columns, _), fine in zip(sides, made, strict=True):
            if strip is None:
                strip = np.zeros((*fine.shape[:-1], x * factor), np.float32)
            strip[..., columns.start * factor : columns.stop * factor] += fine
        assert strip is not None  # every row has a tile
        if carried is not None:
            strip[..., : carried.shape[-2], :] += carried
        done = (rows.end_of_ramp - rows.start) * factor
        yield strip[..., :done, :]
        carried = strip[..., done:, :]


@dataclass(frozen=True)
class Side:
    """Along one axis: what a tile reads, what of it counts, and by how much."""

    first: int  # read from here
    last: int  # to here
    start: int  # counts from here
    stop: int  # to here
    end_of_ramp: int  # from here on the next tile is mixed in
    weight: Float[np.ndarray, " counted"]

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


def seen(coarse: Any, rows: Side, columns: Side) -> tuple[np.ndarray, Window]:
    """Return what a tile reads, and where it lies."""
    window = Window(rows.first, columns.first, rows.last - rows.first, columns.last - columns.first)
    return np.asarray(window.cut(coarse)), window


def one_tile(
    refine: Located, coarse: Any, factor: int, near: tuple[Side, Side], at: tuple[Side, Side]
) -> Float[np.ndarray, "*shape rows columns"]:
    """Return the part of one tile that counts, weighted; rows and columns are near, and farther."""
    (rows, columns), farther = zip(near, at, strict=True)
    part, window = seen(coarse, rows, columns)
    if not np.isfinite(part).all():
        (rows, columns), (part, window) = farther, seen(coarse, *farther)
    fine = np.asarray(refine(part, window))
    expected = (*fine.shape[:-2], window.rows * factor, window.columns * factor)
    if fine.shape != expected:
        raise ValueError(
            f"refine gave {fine.shape} for {part.shape}; with factor {factor} it must give "
            f"{expected}"
        )
    top, left = rows.start - rows.first, columns.start - columns.first
    counted = Window(top, left, rows.weight.size, columns.weight.size)
    weight = np.repeat(rows.weight, factor)[:, None] * np.repeat(columns.weight, factor)
    return (counted.cut(fine, factor) * weight).astype(np.float32)
