"""The grid of a wind, made coarser or finer: its coordinates and, coarser, its values."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml.wind.cf.changes import changed
from sciml.wind.cf.kinds import of_labelled
from sciml.wind.cf.position import MAP
from sciml.wind.cf.schema import finished
from sciml.wind.prepare.coarsen import LARGEST, block_mean_present

ANGULAR = ("longitude", "grid_angle")  # which may jump by a turn
ON_THE_GRID = ("y", "x", "latitude", "longitude", "grid_angle")


@of_labelled
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
    if not 2 <= factor <= min(LARGEST, y, x):
        raise ValueError(
            f"factor is {factor} on a {y}×{x} grid; it must be 2 to {min(LARGEST, y, x)}"
        )
    whole = winds.isel(y=slice(y - y % factor), x=slice(x - x % factor))
    coords = {n: middles(whole[n].variable, factor) for n in ON_THE_GRID if n in whole.coords}
    means = {
        name: (field.dims, np.asarray(block_mean_present(field.values, factor)), field.attrs)
        for name, field in whole.data_vars.items()
    }
    result = winds.drop_dims(["y", "x"]).assign(means).assign_coords(coords)
    result = changed(result, f"averaged over blocks of {factor}×{factor} points")
    if y % factor or x % factor:
        left = f"{y % factor} last rows and {x % factor} last columns left out"
        result = changed(result, left)
    return finished(result)


def middles(line: xr.Variable, factor: int) -> xr.Variable:
    """Return the mean of a coordinate over each block."""
    values = np.asarray(line.values, np.float64)
    for axis, dim in enumerate(line.dims):
        if dim in ("y", "x"):
            cut = np.moveaxis(values, axis, -1)
            values = np.moveaxis(cut.reshape(*cut.shape[:-1], -1, factor).mean(-1), -1, axis)
    return xr.Variable(line.dims, values, line.attrs)


@of_labelled
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
    result = {MAP: winds[MAP].variable} if MAP in winds.coords else {}
    for name in (n for n in ON_THE_GRID if n in winds.coords):
        old = winds[name].variable
        values = np.asarray(old.values, np.float64)
        for axis, dim in enumerate(old.dims):
            if dim in ("y", "x"):
                if name in ANGULAR:
                    period = 360.0 if name == "longitude" else 2 * np.pi
                    values = np.unwrap(values, axis=axis, period=period)
                weights = continuation(old.shape[axis], factor, name)
                values = np.moveaxis(np.tensordot(weights, values, (1, axis)), 0, axis)
        result[name] = xr.Variable(old.dims, values, old.attrs)
    return result


def continuation(count: int, factor: int, name: str) -> Float[np.ndarray, "fine coarse"]:
    """Return the matrix that interpolates cell middles linearly to those of the fine cells."""
    if count < 2:
        raise ValueError(f"{name} has {count} point along an axis; two at least tell its spacing")
    place = (np.arange(count * factor) + 0.5) / factor - 0.5
    left = np.clip(np.floor(place).astype(int), 0, count - 2)
    weights = np.zeros((len(place), count))
    rows = np.arange(len(place))
    weights[rows, left] = 1 - (place - left)
    weights[rows, left + 1] = place - left
    return weights
