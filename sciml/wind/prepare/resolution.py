"""The grid of a wind, made coarser or finer: its coordinates and, coarser, its values."""

import logging
from collections.abc import Callable

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._arguments import check_whole
from sciml._grid import on_sphere
from sciml._units import LENGTH, size_of
from sciml.wind.cf.changes import changed
from sciml.wind.cf.check import warn_of_uneven
from sciml.wind.cf.components import turned
from sciml.wind.cf.kinds import of_fields
from sciml.wind.cf.names import EARTH, GRID
from sciml.wind.cf.position import MAP
from sciml.wind.cf.schema import finished
from sciml.wind.prepare.coarsen import LARGEST, block_mean_present

log = logging.getLogger(__name__)

TURNS = {"longitude": 360.0, "grid_angle": 2 * np.pi}  # by which they may jump
SPACINGS = ("spacing_m", "spacing_x_m", "spacing_y_m")  # attributes, measured anew where possible
Change = Callable[[xr.Variable], xr.Variable]
ON_THE_GRID = ("y", "x", "latitude", "longitude", "grid_angle")


@of_fields
def coarser(winds: xr.Dataset, factor: int) -> xr.Dataset:
    """Return block means of all winds, with the middles of the blocks as coordinates.

    Rows and columns that do not fill a block are left out, which `changes` says. Speeds are means
    of speeds, components of components. A block of which less than half is there is missing.

    Raises:
        ValueError: the factor is not one of 2 to 16, or larger than the field.

    >>> from sciml.wind import gaussian
    >>> coarser(gaussian(seed=0, snapshots=1, n=16), 4).sizes['x']
    4
    """
    y, x = (winds.sizes[axis] for axis in ("y", "x"))
    check_whole(0, factor=factor)
    if not 2 <= factor <= min(LARGEST, y, x):
        raise ValueError(
            f"factor is {factor} on a {y}×{x} grid; it must be 2 to {min(LARGEST, y, x)}"
        )
    winds = warn_of_uneven(winds, "the winds")
    whole = winds.isel(y=slice(y - y % factor), x=slice(x - x % factor))
    there = {n: whole[n].variable for n in ON_THE_GRID if n in whole.coords}
    coords = round_the_earth(there, lambda line: middles(line, factor))
    turn = "grid_angle" in coords and {*GRID, *EARTH} <= {*whole.data_vars}
    means = {
        name: (field.dims, np.array(block_mean_present(field.values, factor)), field.attrs)
        for name, field in whole.transpose(..., "y", "x").data_vars.items()
        if {"y", "x"} <= {*field.dims}
        and not (turn and name in EARTH)  # meridians draw together within a block
    }
    result = winds.drop_dims(["y", "x"]).assign(means).assign_coords(coords)
    if turn:
        turned(result)
        result = result[[*whole.data_vars]]
    result = result.assign_attrs(respaced(result, factor))
    result = changed(result, f"averaged over blocks of {factor}×{factor} points")
    if y % factor or x % factor:
        left = f"{y % factor} last rows and {x % factor} last columns left out"
        result = changed(result, left)
    return finished(result)


def respaced(winds: xr.Dataset, factor: int | float) -> dict[str, float]:
    """Return the attributes that say how far points are apart, of cells so many times as wide."""
    return {n: factor * float(winds.attrs[n]) for n in SPACINGS if n in winds.attrs}


def middles(line: xr.Variable, factor: int) -> xr.Variable:
    """Return the mean of a coordinate over each block."""
    values = np.asarray(line.values, np.float64)
    for axis, dim in enumerate(line.dims):
        if dim in ("y", "x"):
            cut = np.moveaxis(values, axis, -1)
            values = np.moveaxis(cut.reshape(*cut.shape[:-1], -1, factor).mean(-1), -1, axis)
    return xr.Variable(line.dims, values, line.attrs)


def round_the_earth(coords: dict[str, xr.Variable], change: Change) -> dict[str, xr.Variable]:
    """Return coordinates that are averaged or interpolated, across jumps of angles by a turn.

    Around a pole jumps stay, wherever counting begins: there places are taken as points on the
    unit sphere, and the angle of the grid as a point on the unit circle.
    """
    whole = {n: continued(line, TURNS[n]) if n in TURNS else line for n, line in coords.items()}
    result = {name: change(line) for name, line in whole.items()}
    lat, lon, turn = (whole.get(name) for name in ("latitude", "longitude", "grid_angle"))
    if lat is not None and lon is not None and jumps(lon, 360.0):
        points = on_sphere(lat.values, lon.values)
        a, b, c = (change(lat.copy(data=points[..., i])).values for i in range(3))
        north, east = np.arctan2(c, np.hypot(a, b)), np.arctan2(b, a)
        result["latitude"] = result["latitude"].copy(data=np.degrees(north))
        result["longitude"] = result["longitude"].copy(data=np.degrees(east))
    if turn is not None and jumps(turn, 2 * np.pi):
        sin, cos = (change(turn.copy(data=part(turn.values))).values for part in (np.sin, np.cos))
        result["grid_angle"] = result["grid_angle"].copy(data=np.arctan2(sin, cos))
    return result


def continued(line: xr.Variable, turn: float) -> xr.Variable:
    """Return angles without jumps between neighbours along y and x, where that can be."""
    values = np.asarray(line.values, np.float64)
    for axis in (line.dims.index(dim) for dim in ("x", "y") if dim in line.dims):
        values = np.unwrap(values, axis=axis, period=turn)
    return line.copy(data=values)


def jumps(line: xr.Variable, turn: float) -> bool:
    """Tell angles that go round, as around a pole."""
    steps = [np.abs(np.diff(line.values, axis=axis)) for axis in (-1, -2)[: line.ndim]]
    return any(bool((step > turn / 2).any()) for step in steps)


@of_fields
def finer(winds: xr.Dataset, factor: int) -> dict[str, xr.Variable]:
    """Return the coordinates of the grid that has factor × factor points in each cell.

    They are continued linearly from the middles of the cells, exactly so on regular grids; of
    curved ones latitude and longitude are off by a small part of a cell.

    Raises:
        ValueError: an axis with a coordinate has a single point, so its spacing is not known.

    >>> from sciml import wind
    >>> fine = wind.finer(wind.coarser(wind.gaussian(seed=0, snapshots=2, n=16), 4), 4)
    >>> sorted(fine), fine["x"].shape
    (['x', 'y'], (16,))
    """
    check_whole(1, factor=factor)
    there = {n: winds[n].variable for n in ON_THE_GRID if n in winds.coords}
    for name, line in there.items():
        if 1 in [line.sizes[axis] for axis in ("y", "x") if axis in line.sizes]:
            raise ValueError(f"{name} has 1 point along an axis; two at least tell its spacing")
    found = round_the_earth(there, lambda line: between(line, factor))
    return ({MAP: winds[MAP].variable} if MAP in winds.coords else {}) | found


def between(line: xr.Variable, factor: int) -> xr.Variable:
    """Return a coordinate continued linearly from the middles of cells to those of fine ones."""
    values = np.asarray(line.values, np.float64)
    for axis, dim in enumerate(line.dims):
        if dim in ("y", "x"):
            weights = continuation(line.shape[axis], factor)
            values = np.moveaxis(np.tensordot(weights, values, (1, axis)), 0, axis)
    return xr.Variable(line.dims, values, line.attrs)


def continuation(count: int, factor: int) -> Float[np.ndarray, "fine coarse"]:
    """Return the matrix that interpolates cell middles linearly to those of the fine cells."""
    place = (np.arange(count * factor) + 0.5) / factor - 0.5
    left = np.clip(np.floor(place).astype(int), 0, count - 2)
    weights = np.zeros((len(place), count))
    rows = np.arange(len(place))
    weights[rows, left] = 1 - (place - left)
    weights[rows, left + 1] = place - left
    return weights


def refuse_misplaced(one: xr.Dataset, other: xr.Dataset, factor: int, named: str) -> None:
    """Refuse places that are farther apart than a coarse cell is wide; tell half a fine cell."""
    for name in ("latitude", "longitude", "y", "x"):
        both = [part[name] for part in (one, other) if name in part.coords]
        angular = name in ("latitude", "longitude")
        metres = [1.0 if angular else size_of(line.attrs.get("units"), LENGTH) for line in both]
        if len(both) < 2 or None in metres:
            continue  # of no unit: numbers of rows and columns
        a, b = (line.values * size for line, size in zip(both, metres, strict=True))
        lines = {k: np.unwrap(b, axis=k, period=360.0) if angular else b for k in range(-b.ndim, 0)}
        steps = [np.diff(line, axis=k) for k, line in lines.items()]
        cell = max((np.abs(step).max() for step in steps if step.size), default=1.0)
        apart = a - b if a.shape == b.shape else np.array(np.inf)
        apart = (apart + 180) % 360 - 180 if angular else apart
        said = f"differ in {name} by up to {(off := np.abs(apart).max()):g} "
        said += "degrees" if angular else "m"
        if off > factor * max(float(cell), 1e-3):
            raise ValueError(f"{named} {said}")
        if off > max(float(cell), 1e-3) / 2:
            log.warning("%s %s, more than half of a fine cell", named, said)
