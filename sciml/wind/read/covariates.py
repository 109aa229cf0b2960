"""What is known of the ground: land and sea, orography, where the points lie."""

from pathlib import Path

import numpy as np
import xarray as xr

from sciml.wind.cf.check import refuse_descending
from sciml.wind.cf.ground import static, unlike_ground
from sciml.wind.cf.kinds import of_fields
from sciml.wind.cf.level import Level
from sciml.wind.cf.names import STATICS, found
from sciml.wind.cf.position import columns_of_turn, located, planes, upright
from sciml.wind.cf.units import refuse_other_unit
from sciml.wind.read.formats import content
from wse._files import as_path

KNOWN = (*STATICS, "latitude", "longitude")


def open_statics(path: Path | str) -> xr.Dataset:
    """Read `land_mask` (1 on land) and `orography` (m) of a file, with their places.

    Raises:
        ValueError: the file holds neither, or cannot be read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import xarray as xr
    >>> from sciml import wind
    >>> path = Path(tempfile.mkdtemp(), "hill.nc")
    >>> axes = {"latitude": [50.0, 51.0], "longitude": [0.0, 1.0]}
    >>> names = {"standard_name": "surface_altitude", "units": "m"}
    >>> rise = ("latitude", "longitude"), [[0.0, 0.0], [300.0, 300.0]], names
    >>> hill = xr.Dataset({"orography": rise}, axes)
    >>> hill.to_netcdf(path, engine="h5netcdf")
    >>> float(wind.open_statics(path).orography.max())
    300.0
    """
    path = as_path("path", path, "pass orography.nc")
    stored = content(path, Level())
    ours = [one for one in found(stored) if one.kind in STATICS]
    if not ours:
        raise ValueError(
            f"{path} holds neither {' nor '.join(STATICS)} among "
            f"{', '.join(map(str, stored.data_vars))}; set .attrs['standard_name']"
        )
    fields = {}
    for one in ours:
        if why := unlike_ground(stored[one.name], one.kind, str(path)):
            raise ValueError(
                f"{one.name} of {path} is no {one.kind}: {why}; correct it, or drop it"
            )
        fields[one.kind] = static(stored[one.name], one.kind, str(path))
    return upright(located(xr.Dataset(fields), stored, ours[0], str(path))).load()


@of_fields
def with_statics(winds: xr.Dataset, statics: xr.Dataset) -> xr.Dataset:
    """Return `winds` with the fields of `statics`, interpolated linearly to its points.

    Args:
        winds: whose latitudes and longitudes are known.
        statics: on a latitude–longitude grid, such as `open_statics` gives.

    Raises:
        ValueError: a point lies outside of `statics`, or these are on another kind of grid or in
            another unit.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from sciml import wind
    >>> fields = wind.gaussian(seed=0, snapshots=1, n=16)
    >>> places = {"latitude": ("y", np.linspace(50, 51, 16)), "longitude": ("x", np.arange(16) / 9)}
    >>> axes = {"latitude": [49.0, 52.0], "longitude": [0.0, 2.0]}
    >>> rise = ("latitude", "longitude"), [[0.0, 0.0], [300.0, 300.0]]
    >>> hill = xr.Dataset({"orography": rise}, axes)
    >>> risen = wind.with_statics(fields.assign_coords(places), hill).orography
    >>> risen.isel(x=0).values[[0, -1]].round(3).tolist()
    [100.0, 200.0]
    """
    from scipy.interpolate import RegularGridInterpolator

    for one, owner in ((winds, "winds"), (statics, "statics")):
        if not {"latitude", "longitude"} <= {*one.variables}:
            raise ValueError(
                f"the {owner} have {', '.join(map(str, one.variables))}; they must have latitude "
                "and longitude: assign_coords them, or read a file that has them"
            )
    if statics["latitude"].ndim != 1:
        raise ValueError(
            f"the statics have latitudes over {statics['latitude'].dims}, so they are not on a "
            "latitude–longitude grid; interpolate them first"
        )
    axes = (*statics["latitude"].dims, *statics["longitude"].dims)
    statics = statics.sortby(["latitude", "longitude"])
    if turn := columns_of_turn(statics["longitude"].values):
        # The first column lies behind the last, too.
        first = statics.isel({axes[1]: [0]})
        first = first.assign_coords(longitude=first["longitude"] + 360.0)
        statics = xr.concat([statics.isel({axes[1]: slice(turn)}), first], axes[1])
    rows, columns = statics["latitude"].values, statics["longitude"].values
    latitude, longitude = planes(winds)
    longitude = (longitude - columns[0]) % 360.0 + columns[0]
    inside = (latitude >= rows[0]) & (latitude <= rows[-1]) & (longitude <= columns[-1])
    if not inside.all():
        at = np.unravel_index(int(inside.argmin()), inside.shape)
        raise ValueError(
            f"{int((~inside).sum())} points lie outside of the statics, the first at {at[0]}, "
            f"{at[1]} ({latitude[at]:.3f}° N, {longitude[at]:.3f}° E); they cover "
            f"{rows[0]:g} to {rows[-1]:g}° N and {columns[0]:g} to {columns[-1]:g}° E"
        )
    result = winds.copy()
    for name in (name for name in STATICS if name in statics):
        refuse_other_unit(statics[name], name)
        at = RegularGridInterpolator((rows, columns), statics[name].transpose(*axes).values)
        values = at(np.stack([latitude, longitude], axis=-1)).astype(np.float32)
        result[name] = (("y", "x"), values, statics[name].attrs)
    return result


@of_fields
def covariates(winds: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """Return static fields as channels (channel, y, x): land in shares, orography in m.

    Args:
        winds: holding them, as `open` and `with_statics` give it.
        names: of `land_mask`, `orography`, `latitude`, `longitude`.

    Raises:
        ValueError: one is unknown, not there, or in another unit.

    >>> from sciml import wind
    >>> winds = wind.with_hills(wind.gaussian(seed=0, snapshots=2, n=16), seed=1)
    >>> wind.covariates(winds, ("orography",)).shape
    (1, 16, 16)
    """
    there = [name for name in KNOWN if name in winds.variables]
    for name in names:
        if name not in there:
            raise ValueError(
                f"{name!r} is not among {', '.join(there)}; add it by with_statics, or in settings "
                "by statics: of the source"
            )
        if name in STATICS and {*winds[name].dims} != {"y", "x"}:
            raise ValueError(
                f"{name} is on {', '.join(map(str, winds[name].dims))}; the ground is on y and x: "
                "take one, as .isel(time=0)"
            )
        if name in STATICS:
            refuse_other_unit(winds[name], name)
            refuse_descending(winds[name])
    fields = [
        winds[name].transpose("y", "x").values
        if name in STATICS
        else planes(winds)[name == "longitude"]
        for name in names
    ]
    stack = np.stack(fields).astype(np.float32)
    return xr.DataArray(stack, dims=("channel", "y", "x"), coords={"channel": list(names)})
