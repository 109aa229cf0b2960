"""The wind of one grid on the blocks of another, so that its integral is kept."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._grid import on_sphere, rotated
from sciml.wind.cf.changes import changed
from sciml.wind.cf.check import refuse_descending, refuse_several, refuse_unlike
from sciml.wind.cf.components import with_components
from sciml.wind.cf.kinds import of_fields
from sciml.wind.cf.names import ALOFT, EARTH, GRID, SCALARS, vector_pairs
from sciml.wind.cf.position import MAP, planes
from sciml.wind.cf.schema import finished
from sciml.wind.prepare.resolution import coarser, finer, respaced

LEAST = 0.5  # of a block, that must lie in cells which are there
ALONG = 8  # points along a side of a block by which its overlaps are measured on curved grids

Line = Float[np.ndarray, " edge"]
Average = Callable[[np.ndarray], np.ndarray]


@of_fields
def onto_blocks(coarse: xr.Dataset, fine: xr.Dataset, factor: int) -> xr.Dataset:
    """Return coarse wind on the blocks of `factor` × `factor` points of a fine grid.

        w_block = Σ_cell |cell ∩ block| w_cell / Σ_cell |cell ∩ block|

    Means over areas: the integral over what both grids cover is kept, exactly where both have
    straight axes (areas on the sphere; on the map where neither has latitudes), else as well as
    64 points or more of each block tell. Vectors go by their components towards east and
    north and are turned to the axes of the fine grid. Where less than half of a block is covered,
    or known, it is missing. Blocks much smaller than the coarse cells are steps: take a larger
    factor.

    Args:
        coarse: in the schema of `sciml.wind.open`, on any grid.
        fine: the same; its grid alone counts.
        factor: fine points per block, in each direction, 2 to 16.

    Raises:
        ValueError: nothing tells how the grids lie to each other, they do not overlap, or the
            components of the coarse wind cannot be turned.

    Reference: Jones (1999), Mon. Weather Rev. 127, 2204 (first order).

    >>> from sciml import wind
    >>> fine = wind.gaussian(seed=0, snapshots=2, n=16)
    >>> wind.onto_blocks(wind.coarser(fine, 4), fine, 4).x_wind.shape
    (2, 4, 4)
    """
    first = next(iter(fine.data_vars.values()))
    shape = fine[[first.name]].isel(time=slice(1)) if "time" in first.dims else fine[[first.name]]
    for one in (first, next(iter(coarse.data_vars.values()), first)):
        refuse_descending(one)
    blocks = coarser(shape, factor)
    average, placed = averaging(coarse, fine, blocks, factor)
    names = [
        n for n in ((*EARTH, "wind_speed") if placed else (*GRID, "wind_speed")) if n in coarse
    ]
    straight = "latitude" in fine.coords and fine["latitude"].ndim == 1
    if placed and not straight and not {*EARTH} <= {*names}:
        names = [n for n in names if n not in EARTH]
    if not names:
        raise ValueError(
            f"the coarse wind has {', '.join(map(str, coarse.data_vars))}; to be turned to the "
            f"axes of another grid it needs {' and '.join(EARTH)}"
        )
    fields = {}
    for name in names:
        refuse_several(coarse[name], f"{name} of the coarse wind")
        refuse_unlike(coarse[name])
        field = coarse[name].transpose("time", "y", "x")
        fields[name] = (("time", "y", "x"), average(field.values), field.attrs)
    fields |= beside(coarse, blocks, average)
    if not any(np.isfinite(values).any() for _, values, _ in fields.values()):
        raise ValueError(f"the coarse grid ({extent(coarse)}) does not cover the fine one "
                         f"({extent(fine)}): name files of one region")  # fmt: skip
    kept = {n: blocks[n].variable for n in blocks.coords if "time" not in blocks[n].dims}
    times = {"time": coarse["time"].variable} if "time" in coarse.coords else {}
    result = xr.Dataset(fields, coords=kept | times, attrs=coarse.attrs | respaced(blocks, 1))
    result = changed(result, f"regridded onto blocks of {factor}×{factor} points of another grid")
    return finished(with_components(result, "the coarse wind", stated=True))


def beside(coarse: xr.Dataset, blocks: xr.Dataset, average: Average) -> dict[str, Any]:
    """Return what lies beside the wind, averaged; winds at other heights by their components."""
    on = ("time", "y", "x")
    fields = {name: coarse[name] for name in SCALARS if name in coarse}
    found = {name: (on, average(field.values), field.attrs) for name, field in fields.items()}
    aloft = [str(name) for name in coarse.data_vars if ALOFT.fullmatch(str(name))]
    for name in aloft:
        if name.startswith("wind_speed"):
            found[name] = (on, average(coarse[name].values), coarse[name].attrs)
    for pair in vector_pairs(aloft):
        if not {*pair} <= {*aloft}:
            continue
        turns = [
            part["grid_angle"].values if "grid_angle" in part.coords else 0.0
            for part in (coarse, blocks)
        ]
        if pair[0].startswith(EARTH[0]):
            turns = [0.0, 0.0]  # they are to the east and to the north on every grid
        east, north = rotated(coarse[pair[0]].values, coarse[pair[1]].values, turns[0])
        parts = rotated(average(east), average(north), -turns[1])
        for name, values in zip(pair, parts, strict=True):
            found[name] = (on, np.asarray(values, np.float32), coarse[name].attrs)
    return found


def averaging(
    coarse: xr.Dataset, fine: xr.Dataset, blocks: xr.Dataset, factor: int
) -> tuple[Average, bool]:
    """Return what averages fields (time, y, x), and whether both grids know their latitudes."""
    known = [{"latitude", "longitude"} <= {*part.coords} for part in (coarse, fine)]
    if all(known):
        if coarse["latitude"].ndim == fine["latitude"].ndim == 1:
            return straight(coarse, fine, factor), True
        return curved(coarse, fine, blocks, factor), True
    maps = [part[MAP].attrs if MAP in part.coords else {} for part in (coarse, fine)]
    lines = all({"y", "x"} <= {*part.coords} for part in (coarse, fine))
    if any(known) or not lines or maps[0] != maps[1]:
        raise ValueError(
            "nothing tells how the coarse and the fine grid lie to each other: both must have "
            "latitude and longitude, or y and x of one map"
        )
    weights = [
        overlaps(edges(coarse[axis].values), edges(fine[axis].values)[::factor])
        for axis in ("y", "x")
    ]
    return partial(by_axes, *weights), False


def straight(coarse: xr.Dataset, fine: xr.Dataset, factor: int) -> Average:
    """Return the average over blocks of one latitude–longitude grid of cells of another."""
    ends = edges(coarse["longitude"].values.astype(np.float64))
    blocks = edges(fine["longitude"].values.astype(np.float64))[::factor]
    along_x = sum(  # a whole turn further west and east too: longitudes may be counted otherwise
        overlaps(ends + 360.0 * turn, blocks) for turn in (-2, -1, 0, 1, 2)
    )
    heights = [
        np.sin(np.radians(np.clip(edges(part["latitude"].values.astype(np.float64)), -90, 90)))
        for part in (coarse, fine)
    ]
    return partial(by_axes, overlaps(heights[0], heights[1][::factor]), np.asarray(along_x))


def edges(middles: Float[np.ndarray, " cell"]) -> Line:
    """Return the edges of cells, half-way between their middles."""
    middles = np.asarray(middles, np.float64)
    if middles.size < 2:
        raise ValueError(
            f"a grid has {middles.size} points along an axis; two at least tell its spacing"
        )
    between = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[2 * middles[0] - between[0]], between, [2 * middles[-1] - between[-1]]])


def overlaps(
    source: Float[np.ndarray, " source_edge"], target: Float[np.ndarray, " target_edge"]
) -> Float[np.ndarray, "target source"]:
    """Return the length that each target cell shares with each source cell, in parts of itself.

    Edges ascend; target edges that do not end a whole block are not there.
    """
    low = np.maximum(source[None, :-1], target[:-1, None])
    high = np.minimum(source[None, 1:], target[1:, None])
    return np.maximum(high - low, 0) / np.diff(target)[:, None]


def by_axes(
    along_y: Float[np.ndarray, "block_y y"],
    along_x: Float[np.ndarray, "block_x x"],
    fields: Float[np.ndarray, "time y x"],
) -> Float[np.ndarray, "time block_y block_x"]:
    """Average along one axis after the other."""
    return weighed(fields, lambda one: along_y @ one @ along_x.T)


def weighed(fields: np.ndarray, total: Average) -> np.ndarray:
    """Return weighted means of what is there; missing where that is less than half."""
    there = np.isfinite(fields)
    share = total(there.astype(np.float64))
    mean = total(np.where(there, fields, 0.0)) / np.where(share > 0, share, 1)
    return np.where(share >= LEAST - 1e-9, mean, np.nan).astype(np.float32)


def curved(coarse: xr.Dataset, fine: xr.Dataset, blocks: xr.Dataset, factor: int) -> Average:
    """Return the average over blocks of any grid, each of whose points is in the nearest cell."""
    from scipy.sparse import csr_array
    from scipy.spatial import KDTree

    y, x = (blocks.sizes[axis] for axis in ("y", "x"))
    inside = fine.isel(y=slice(y * factor), x=slice(x * factor))
    more = -(-ALONG // factor)
    dense = xr.Dataset(coords=finer(inside, more)) if more > 1 else inside
    points = on_sphere(*planes(dense))
    centres = on_sphere(*planes(coarse))
    if min(centres.shape[:2]) < 2:
        raise ValueError(
            f"the coarse grid is of {centres.shape[:2]} points; two along an axis tell its spacing"
        )
    along_y, along_x = (np.linalg.norm(np.gradient(centres, axis=axis), axis=-1) for axis in (0, 1))
    half = (np.hypot(along_y, along_x) / 2).ravel()  # from the middle of a cell to its corner
    distance, nearest = KDTree(centres.reshape(-1, 3)).query(points.reshape(-1, 3))
    within = distance <= 1.01 * half[nearest]
    side = factor * more
    rows = np.kron(np.arange(y * x).reshape(y, x), np.ones((side, side), int)).ravel()
    shape = (y * x, half.size)
    weights = csr_array((within / side**2, (rows, nearest)), shape=shape)

    def total(fields: np.ndarray) -> np.ndarray:
        flat = fields.reshape(len(fields), -1)
        return np.stack([weights @ one for one in flat]).reshape(len(fields), y, x)

    return lambda fields: weighed(fields, total)


def extent(winds: xr.Dataset) -> str:
    """Return in words where a grid lies."""
    names = ("latitude", "longitude") if "latitude" in winds.coords else ("y", "x")
    ends = [(n, float(winds[n].min()), float(winds[n].max())) for n in names if n in winds.coords]
    return ", ".join(f"{name} {low:g} to {high:g}" for name, low, high in ends)
