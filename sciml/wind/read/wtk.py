"""HDF5 files in the layout of the WIND Toolkit: a column for each site, scaled integers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from sciml.wind.cf.names import DEGREES
from sciml.wind.cf.position import coordinates
from sciml.wind.read.wrf import moments

NAMES = {
    r"windspeed_(\d+)m": "wind_speed",
    r"winddirection_(\d+)m": "wind_from_direction",
    r"u_(\d+)m": "eastward_wind",
    r"v_(\d+)m": "northward_wind",
}


def is_wtk(path: Path) -> bool:
    """Tell the layout by its two tables: `meta` of the sites and `time_index`."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return "meta" in file and "time_index" in file
    except OSError as error:
        raise ValueError(f"{path} cannot be read as HDF5: {error}; fetch it again") from error


def open_wtk(path: Path) -> xr.Dataset:
    """Return winds of every height with CF names, the sites laid out on their grid, lazily.

    Stored integers are divided by their attribute `scale_factor`, as this layout has it (CF, with
    the same word, multiplies). The file stays open until the dataset is closed.
    """
    import h5py

    file: Any = h5py.File(path, "r")
    sites = file["meta"][...]
    latitude, longitude = (np.asarray(sites[name], np.float64) for name in DEGREES)
    order = layout(latitude, longitude, str(path))
    time = moments(file["time_index"][...], f"time_index of {path}")
    fields = {}
    for name in file:
        for spelling, kind in NAMES.items():
            if matched := re.fullmatch(spelling, name):
                attrs = {"standard_name": kind, "height_m": float(matched.group(1))}
                attrs["units"] = "degree" if kind == "wind_from_direction" else "m s-1"
                fields[name] = (("time", "y", "x"), unpacked(file[name], order), attrs)
    if not fields:
        file.close()
        raise ValueError(f"{path} has sites and times but no wind among {', '.join(file)}")
    north, east = latitude[order], longitude[order]
    lines = ((north, north[:, :1]), (east, east[:1]))
    straight = all(np.allclose(plane, line, atol=1e-5) for plane, line in lines)
    places = coordinates(north, east, straight=straight)
    result = xr.Dataset(fields, coords={"time": ("time", time), **places})
    if "elevation" in (sites.dtype.names or ()):
        height = np.asarray(sites["elevation"], np.float32)[order]
        result["orography"] = (("y", "x"), height, {"units": "m"})
    result.set_close(file.close)
    return result


def unpacked(stored: Any, order: Int[np.ndarray, "y x"]) -> Any:
    """Return (time, y, x) of a stored (time, site) table, lazily, a chunk of times at once."""
    import dask.array

    times = max(1, 2**22 // max(1, stored.shape[1]))  # about 16 MB in single precision
    chunks: Any = ((stored.chunks or (times, 0))[0], stored.shape[1])
    table = dask.array.from_array(stored, chunks=chunks, lock=True)
    scale = np.float32(stored.attrs.get("scale_factor", 1.0))
    return table.map_blocks(
        lambda part: part[:, order].astype(np.float32) / scale,
        dtype=np.float32,
        chunks=(table.chunks[0], (order.shape[0],), (order.shape[1],)),
        drop_axis=1,
        new_axis=(1, 2),
    )


def layout(
    latitude: Float[np.ndarray, " site"], longitude: Float[np.ndarray, " site"], origin: str
) -> Int[np.ndarray, "y x"]:
    """Return the index of the site at each point of the grid, south to north, west to east.

    Sites come row by row or column by column: they step by little within a row and jump to the
    next. Where every jump is as far apart as the others, the rows are full.
    """
    count = latitude.size
    east = np.diff(longitude) * np.cos(np.radians(latitude[1:]))
    steps = np.hypot(np.diff(latitude), east)
    jumps = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if count > 1 else np.array([], int)
    length = int(jumps[0]) if jumps.size else count
    if count % length or not np.array_equal(jumps, np.arange(length, count, length)):
        raise ValueError(
            f"the {count} sites of {origin} do not fill a grid: the first row has {length}; "
            "select sites that make up whole rows and columns"
        )
    order = np.arange(count).reshape(-1, length)
    along = np.ptp(longitude[order[0]]) * np.cos(np.radians(latitude[0]))
    if along < np.ptp(latitude[order[0]]):
        order = order.T
    if latitude[order[-1]].mean() < latitude[order[0]].mean():
        order = order[::-1]
    if longitude[order[:, -1]].mean() < longitude[order[:, 0]].mean():
        order = order[:, ::-1]
    return order
