"""ATen's operations that resize images, or take them at places between their own, as JAX."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp

from wse.models.pytorch.table import Table


def nearest(x: Any, size: Any, factors: Any) -> Any:
    """X in another size, or by factors, each place from the one that it falls into."""
    for i in range(x.ndim - 2):
        side = x.shape[i + 2]
        count = size[i] if size else int(side * factors[i])
        x = jnp.take(x, jnp.arange(count) * side // count, axis=i + 2)
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
        weights = jnp.zeros((count, side), x.dtype)
        for near in (-1, 0, 1, 2) if cubic else (0, 1):
            away = jnp.abs(place - first - near)
            share = _cubic(away) if cubic else 1 - away
            columns = jnp.clip(first + near, 0, side - 1).astype(int)
            weights = weights.at[jnp.arange(count), columns].add(share)
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ weights.T, -1, axis)
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
        places = jnp.arange(side)
        first = jnp.maximum(jnp.floor(middle - reach * wide + 0.5), 0)
        last = jnp.minimum(jnp.floor(middle + reach * wide + 0.5), side)
        away = jnp.abs((places - middle + 0.5) / wide)
        shares = _cubic(away, -0.5) if cubic else 1 - away
        inside = (places >= first) & (places < last) & (away < reach)
        shares = jnp.where(inside, shares, 0)
        shares = shares / shares.sum(1, keepdims=True)
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ shares.T, -1, axis)
    return x


def grid_sampler(x: Any, grid: Any, mode: int, border: int, corners: bool) -> Any:
    """X at the places of a grid, from -1 to 1 across it, by their neighbours.

    Raises:
        ValueError: another way than bilinear or nearest, or a border that is mirrored.
    """
    if mode > 1 or border > 1:
        raise ValueError(
            "grid_sample is called with bicubic or reflection; mapped are bilinear and nearest, "
            "zeros and border: use one of these"
        )
    sides = x.shape[2:]
    at: list[Any] = []
    for i, side in enumerate(sides):
        along = grid[..., len(sides) - 1 - i]
        place = (along + 1) / 2 * (side - 1) if corners else ((along + 1) * side - 1) / 2
        at.append(jnp.clip(place, 0, side - 1) if border else place)
    total: Any = 0
    for steps in product((0, 1), repeat=len(sides)) if mode == 0 else [(0,) * len(sides)]:
        share, places = jnp.ones_like(at[0]), []
        for step, place, side in zip(steps, at, sides, strict=True):
            near = jnp.floor(place) + step if mode == 0 else jnp.round(place)
            weight = 1 - jnp.abs(place - near) if mode == 0 else 1
            share = share * jnp.where((near >= 0) & (near < side), weight, 0)
            places.append(jnp.clip(near, 0, side - 1).astype(int))
        found = jax.vmap(lambda one, *where: one[:, *where])(x, *places)
        total = total + found * share[:, None]
    return total


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
