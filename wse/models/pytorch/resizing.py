"""ATen's operations that resize images, or take them at places between their own, as JAX."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from functools import partial
from itertools import product
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse.models.pytorch.table import Table


def nearest(x: Any, size: Any, factors: Any) -> Any:
    """X in another size, or by factors, each place from the one that it falls into.

    PyTorch multiplies in 32 bits by what was given: 1 / factor, which is not the ratio of the sizes
    where a size was rounded.
    """
    for i in range(x.ndim - 2):
        side = x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        step = np.float32(1 / factors[i] if factors else side / count)
        places = np.floor(np.arange(count, dtype=np.float32) * step).astype(int)
        if count in (side, 2 * side):  # whatever the factor was
            places = np.arange(count) // (count // side)
        x = jnp.take(x, np.minimum(places, side - 1), axis=i + 2)
    return x


def resized(cubic: bool, x: Any, size: Any, corners: bool, factors: Any = None) -> Any:
    """X in another size, each place from its two or four neighbours, axis by axis."""
    n = x.ndim - 2
    for i in range(n):
        axis, side = i + 2, x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        at = jnp.arange(count, dtype=x.dtype)
        if corners:
            place = at * ((side - 1) / max(count - 1, 1))
        else:
            place = (at + 0.5) * (1 / factors[i] if factors else side / count) - 0.5
            place = place if cubic else jnp.maximum(place, 0)
        first = jnp.floor(place)
        total: Any = 0
        for near in (-1, 0, 1, 2) if cubic else (0, 1):
            away = jnp.abs(place - first - near)
            share = (_cubic(away) if cubic else 1 - away).reshape(-1, *(1,) * (n - 1 - i))
            columns = jnp.clip(first + near, 0, side - 1).astype(int)
            # Taken, not multiplied by a matrix of zeros, whose products would be counted.
            total = total + jnp.take(x, columns, axis=axis) * share
        x = total
    return x


def smoothed(cubic: bool, x: Any, size: Any, corners: bool, factors: Any = None) -> Any:
    """X in another size, each place a mean of those that it covers: against aliasing.

    Raises:
        ValueError: corners keep their places.
    """
    if corners:
        raise ValueError("a resize has antialias with align_corners; set align_corners=False")
    reach = 2 if cubic else 1
    for i in range(x.ndim - 2):
        axis, side = i + 2, x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        scale = 1 / factors[i] if factors else side / count
        wide = max(scale, 1)
        middle = scale * (jnp.arange(count, dtype=x.dtype) + 0.5)[:, None]
        first = jnp.maximum(jnp.floor(middle - reach * wide + 0.5), 0)
        last = jnp.minimum(jnp.floor(middle + reach * wide + 0.5), side)
        places = first + jnp.arange(
            min(side, ceil(2 * reach * wide) + 1)
        )  # of each, those it covers
        away = jnp.abs((places - middle + 0.5) / wide)
        shares = _cubic(away, -0.5) if cubic else 1 - away
        shares = jnp.where((places < last) & (away < reach), shares, 0)
        shares = shares / shares.sum(1, keepdims=True)
        found = jnp.take(x, jnp.minimum(places, side - 1).astype(int), axis=axis)
        x = (found * shares.reshape(*shares.shape, *(1,) * (x.ndim - 1 - axis))).sum(axis + 1)
    return x


def grid_sampler(x: Any, grid: Any, mode: int, border: int, corners: bool) -> Any:
    """X at the places of a grid, from -1 to 1 across it, by their neighbours.

    Bilinear (mode 0) takes two along each axis, nearest (1) one, bicubic (2) four. Beyond the
    border are zeros (0), what lies on it (1), or the image mirrored (2).
    """
    cubic, sides = mode == 2, x.shape[2:]
    at: list[Any] = []
    for i, side in enumerate(sides):
        along = grid[..., len(sides) - 1 - i]
        place = (along + 1) / 2 * (side - 1) if corners else ((along + 1) * side - 1) / 2
        # Of bicubic each neighbour is taken back, not the place between them.
        at.append(place if cubic else _within(place, side, border, corners))
    total: Any = 0
    for steps in product(((0, 1), (0,), (-1, 0, 1, 2))[mode], repeat=len(sides)):
        share, places = jnp.ones_like(at[0]), []
        for step, place, side in zip(steps, at, sides, strict=True):
            near = jnp.round(place) if mode == 1 else jnp.floor(place) + step
            away = jnp.abs(place - near)
            weight = _cubic(away) if cubic else 1 - away if mode == 0 else 1
            near = _within(near, side, border, corners) if cubic else near
            share = share * jnp.where((near >= 0) & (near < side), weight, 0)
            places.append(jnp.clip(near, 0, side - 1).astype(int))
        found = jax.vmap(lambda one, *where: one[:, *where])(x, *places)
        total = total + found * share[:, None]
    return total


def _within(place: Any, side: int, border: int, corners: bool) -> Any:
    """A place, taken to the border or mirrored there until it lies within."""
    if border == 2:
        low, span = (0.0, side - 1) if corners else (-0.5, side)
        away = jnp.abs(place - low) if span else jnp.zeros_like(place)
        turns, rest = jnp.floor(away / max(span, 1)), away % max(span, 1)
        place = jnp.where(turns % 2 == 0, rest, span - rest) + low
    return jnp.clip(place, 0, side - 1) if border else place


def _cubic(away: Any, a: float = -0.75) -> Any:
    """Keys' kernel, with the constant of PyTorch."""
    inner = ((a + 2) * away - (a + 3)) * away * away + 1
    outer = ((away - 5) * away + 8) * away * a - 4 * a
    return jnp.where(away <= 1, inner, outer)


RESIZING: Table = {
    **{f"upsample_nearest{n}d": nearest for n in (1, 2, 3)},
    **{
        f"upsample_{name}": partial(resized, False)
        for name in ("linear1d", "bilinear2d", "trilinear3d")
    },
    "upsample_bicubic2d": partial(resized, True),
    "_upsample_bilinear2d_aa": partial(smoothed, False),
    "_upsample_bicubic2d_aa": partial(smoothed, True),
    **{f"grid_sampler_{n}d": grid_sampler for n in (2, 3)},
}
