"""Latitude and longitude of a dataset's points, and its rows and columns in ascending order."""

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import changed
from sciml.wind.cf.grid import Plane, angle
from sciml.wind.cf.names import DEGREES, Found, axes, usual_place
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


def as_planes(coordinate: xr.Variable | xr.DataArray) -> np.ndarray:
    """Return the values of a coordinate on (moment, y, x), of one moment where it never changes."""
    return coordinate.values.reshape(-1, *coordinate.shape[-2:])


def own_places(content: xr.Dataset, roles: dict[str, str]) -> dict[str, xr.Variable]:
    """Return latitude and longitude of a file, whatever it calls them.

    CF tells them by attributes; where a tool has written none, their usual names do.
    """
    result = {}
    for name, unit in DEGREES.items():
        for key, variable in content.variables.items():
            attrs = variable.attrs
            called = (
                attrs.get("standard_name") == name
                or attrs.get("units") in (unit, unit.replace("degrees", "degree"))
                or usual_place(str(key), attrs) == name
            )
            on = [roles.get(str(dim)) for dim in variable.dims]
            if called and on in (["y"], ["x"], ["y", "x"], ["x", "y"], ["time", "y", "x"]):
                values = np.asarray(variable.values, np.float64)
                values = np.where(np.isfinite(values), values, np.nan)  # `check` refuses both
                own = xr.Variable(on, values, {"standard_name": name, "units": unit})
                result[name] = own.transpose("y", "x") if own.ndim == 2 else own
                break
    return result if len(result) == 2 else {}


def mapped_places(winds: xr.Dataset, content: xr.Dataset) -> dict[str, xr.Variable]:
    """Return latitude and longitude by the file's CF grid mapping, if it has one."""
    mappings = [v.attrs for v in content.variables.values() if "grid_mapping_name" in v.attrs]
    if len(mappings) != 1 or not {"y", "x"} <= {*winds.coords}:
        return {}
    x_m, y_m = (
        (1000.0 if winds[axis].attrs.get("units") == "km" else 1.0)
        * winds[axis].values.astype(np.float64)
        for axis in ("x", "y")
    )
    found = places(mappings[0], x_m, y_m)
    return coordinates(*found, straight=False) if found else {}


def coordinates(latitude: Plane, longitude: Plane, *, straight: bool) -> dict[str, xr.Variable]:
    """Return the coordinates of a grid: on one axis each where rows and columns are `straight`."""
    found = {
        name: xr.Variable(("y", "x"), plane, {"standard_name": name, "units": unit})
        for (name, unit), plane in zip(DEGREES.items(), (latitude, longitude), strict=True)
    }
    if straight:
        return {"latitude": found["latitude"][:, 0], "longitude": found["longitude"][0]}
    return found


def planes(winds: xr.Dataset) -> tuple[Plane, Plane]:
    """Return latitude and longitude on (y, x), of the first time where they move."""
    latitude, longitude = winds["latitude"], winds["longitude"]
    if latitude.ndim > 1:
        return as_planes(latitude)[0], as_planes(longitude)[0]
    latitude, longitude = np.meshgrid(latitude, longitude, indexing="ij")
    return latitude, longitude


def upright(winds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with y and x ascending, and longitudes without a jump; it says so."""
    for axis, angular in (("y", "latitude"), ("x", "longitude")):
        lines = (n for n in (axis, angular) if n in winds.coords and winds[n].dims == (axis,))
        name = next(lines, None)
        if name is None:
            continue
        values = winds[name].values.astype(np.float64)
        if name == "longitude" and (np.abs(np.diff(values)) > 180).any():
            values = np.unwrap(values, period=360.0)
            winds = winds.assign_coords(longitude=("x", values, winds[name].attrs))
            winds = changed(winds, "longitudes continued across the jump of 360 degrees")
        if values.size > 1 and values[-1] < values[0]:
            winds = winds.isel({axis: slice(None, None, -1)})
            winds = changed(winds, f"{axis} turned round, so that {name} ascends")
    return winds
