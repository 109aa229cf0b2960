"""Latitude and longitude of a dataset's points, and its rows and columns in ascending order."""

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import Changes
from sciml.wind.cf.grid import Plane, angle
from sciml.wind.cf.names import Found, axes, usual_place
from sciml.wind.cf.projection import places


def located(winds: xr.Dataset, content: xr.Dataset, one: Found) -> xr.Dataset:
    """Return the dataset with latitude and longitude, and where they are (y, x) the grid's angle.

    They are the file's own; else its grid mapping gives them; else there are none.
    """
    roles = {old: axis for axis, old in axes(content[one.name], "the file").items()}
    coords = own_places(content, roles) or mapped_places(winds, content)
    winds = winds.assign_coords(coords)
    if "grid_angle" in content.coords:
        return winds.assign_coords(grid_angle=content["grid_angle"].variable)
    if "latitude" in coords and coords["latitude"].ndim > 1:
        latitude, longitude = coords["latitude"], coords["longitude"]
        moments = zip(as_planes(latitude), as_planes(longitude), strict=True)
        turn = np.stack([angle(*moment) for moment in moments]).reshape(latitude.shape)
        attrs = {"units": "radian", "long_name": "angle from east to the x axis, anticlockwise"}
        return winds.assign_coords(grid_angle=(latitude.dims, turn, attrs))
    return winds


def as_planes(coordinate: xr.Variable) -> np.ndarray:
    """Return the values of a coordinate on (moment, y, x), of one moment where it never changes."""
    return coordinate.values.reshape(-1, *coordinate.shape[-2:])


def own_places(content: xr.Dataset, roles: dict[str, str]) -> dict[str, xr.Variable]:
    """Return latitude and longitude of a file, whatever it calls them.

    CF tells them by attributes; where a tool has written none, their usual names do.
    """
    result = {}
    for name, units in (
        ("latitude", ("degrees_north", "degree_north")),
        ("longitude", ("degrees_east", "degree_east")),
    ):
        for key, variable in content.variables.items():
            attrs = variable.attrs
            called = attrs.get("standard_name") == name or attrs.get("units") in units
            called = called or usual_place(str(key), attrs) == name
            on = [roles.get(str(dim)) for dim in variable.dims]
            if called and on in (["y"], ["x"], ["y", "x"], ["x", "y"], ["time", "y", "x"]):
                kept = {"standard_name": name, "units": units[0]}
                values = np.asarray(variable.values, np.float64)
                values = np.where(np.isfinite(values), values, np.nan)  # `check` refuses both
                own = xr.Variable(on, values, kept)
                result[name] = own.transpose("y", "x") if own.ndim == 2 else own
                break
    return result if len(result) == 2 else {}


def mapped_places(winds: xr.Dataset, content: xr.Dataset) -> dict[str, xr.Variable]:
    """Return latitude and longitude by the file's CF grid mapping, if it has one."""
    mappings = [v.attrs for v in content.variables.values() if "grid_mapping_name" in v.attrs]
    if len(mappings) != 1 or not {"y", "x"} <= {*winds.coords}:
        return {}
    metres = {axis: in_metres(winds[axis]) for axis in ("x", "y")}
    found = places(mappings[0], metres["x"], metres["y"])
    if found is None:
        return {}
    latitude, longitude = found
    return {
        "latitude": xr.Variable(
            ("y", "x"), latitude, {"standard_name": "latitude", "units": "degrees_north"}
        ),
        "longitude": xr.Variable(
            ("y", "x"), longitude, {"standard_name": "longitude", "units": "degrees_east"}
        ),
    }


def in_metres(coordinate: xr.DataArray) -> np.ndarray:
    """Return the values of a projection coordinate in metres."""
    factor = 1000.0 if coordinate.attrs.get("units") == "km" else 1.0
    return factor * coordinate.values.astype(np.float64)


def planes(winds: xr.Dataset) -> tuple[Plane, Plane]:
    """Return latitude and longitude on (y, x), of the first time where they move."""
    latitude, longitude = winds["latitude"].values, winds["longitude"].values
    if latitude.ndim > 1:
        return latitude.reshape(-1, *latitude.shape[-2:])[0], longitude.reshape(
            -1, *longitude.shape[-2:]
        )[0]
    longitude, latitude = np.meshgrid(longitude, latitude)
    return latitude, longitude


def upright(winds: xr.Dataset, changes: Changes) -> xr.Dataset:
    """Return the dataset with y and x ascending, and longitudes without a jump."""
    for axis, angular in (("y", "latitude"), ("x", "longitude")):
        name = next((n for n in (axis, angular) if is_line(winds, n, axis)), None)
        if name is None:
            continue
        values = winds[name].values.astype(np.float64)
        if name == "longitude" and (np.abs(np.diff(values)) > 180).any():
            values = np.unwrap(values, period=360.0)
            winds = winds.assign_coords(longitude=("x", values, winds[name].attrs))
            changes.say("longitudes continued across the jump of 360 degrees")
        if values.size > 1 and values[-1] < values[0]:
            winds = winds.isel({axis: slice(None, None, -1)})
            changes.say(f"{axis} turned round, so that {name} ascends")
    return winds


def is_line(winds: xr.Dataset, name: str, axis: str) -> bool:
    """Tell whether a coordinate lies on one axis."""
    return name in winds.coords and winds[name].dims == (axis,)
