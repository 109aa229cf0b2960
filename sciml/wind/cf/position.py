"""Latitude and longitude of a dataset's points, and its rows and columns in ascending order."""

import numpy as np
import xarray as xr
from jaxtyping import Shaped

from sciml._grid import Plane, angle, apart_m, on_sphere
from sciml.wind.cf.changes import changed
from sciml.wind.cf.dimensions import without_single_axes
from sciml.wind.cf.names import DEGREES, Found, axes, usual_place
from sciml.wind.cf.projection import CURVED, TURNED, places
from sciml.wind.cf.units import place_of

MAP = "spatial_ref"  # the coordinate that holds the CF grid mapping, as GIS programs look for it
# Latitudes are of an ellipsoid or, up to 21 km elsewhere, of a sphere; maps often do not say which.
MOST_OFF_KM = 50.0
CHECKED = 32  # rows, and columns, whose places are compared with those of the map
ROWS = "y turned round"  # how `changes` says that rows came from the north


def located(winds: xr.Dataset, content: xr.Dataset, one: Found, origin: str) -> xr.Dataset:
    """Return the dataset with latitude and longitude, and the grid's angle if the file has it.

    Places are the file's own; else its grid mapping gives them; else there are none.
    """
    roles = {old: a for a, old in axes(without_single_axes(content[one.name]), origin).items()}
    coords = own_places(content, roles)
    refuse_straight(content, content[one.name], coords, origin)
    by_map = mapped_places(winds, content) or turned_places(content, roles)
    if coords and by_map:
        winds = changed(winds, *other_places(coords, by_map, origin))
    coords = coords or by_map
    winds = mapped(winds.assign_coords(coords), content)
    if MAP in winds.coords and "latitude" not in winds.coords:
        said = ", ".join(f"{a} in {winds[a].attrs.get('units')!r}" for a in ("x", "y"))
        winds = changed(winds, f"no latitudes: the map is none that is computed, with {said}")
    if "grid_angle" in content.coords:
        return winds.assign_coords(grid_angle=content["grid_angle"].variable)
    return winds


def angled(winds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with the grid's angle, where latitude and longitude are on (y, x)."""
    if "latitude" not in winds.coords or winds["latitude"].ndim < 2 or "grid_angle" in winds.coords:
        return winds
    latitude, longitude = winds["latitude"], winds["longitude"]
    moments = zip(as_planes(latitude), as_planes(longitude), strict=True)
    turn = np.stack([angle(*moment) for moment in moments]).reshape(latitude.shape)
    attrs = {"units": "radian", "long_name": "angle from east to the x axis, anticlockwise"}
    return winds.assign_coords(grid_angle=(latitude.dims, turn, attrs))


def as_planes(coordinate: xr.Variable | xr.DataArray) -> np.ndarray:
    """Return the values of a coordinate on (moment, y, x), of one moment where it never changes."""
    if {"y", "x"} <= {*coordinate.dims}:
        coordinate = coordinate.transpose(..., "y", "x")
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
                or (stated := place_of(attrs.get("units"))) == name
                or usual_place(str(key), {} if stated == "other" else attrs) == name
            )
            on = [roles.get(str(dim)) for dim in variable.dims]
            if called and place_of(attrs.get("units")) == "other":
                raise ValueError(
                    f"the unit of {key} is {attrs['units']!r}; a {name} must be in {unit}: change "
                    "the sign of its values if they count that way, and its .attrs['units']"
                )
            if called and on in (["y"], ["x"], ["y", "x"], ["x", "y"], ["time", "y", "x"]):
                values = np.asarray(variable.values, np.float64)
                values = np.where(np.isfinite(values), values, np.nan)  # `check` refuses both
                if str(attrs.get("units", "")).startswith("rad"):
                    values = np.degrees(values)
                own = xr.Variable(on, values, {"standard_name": name, "units": unit})
                result[name] = own.transpose("y", "x") if own.ndim == 2 else own
                break
    if len(result) < 2:
        return {}
    refuse_untold(content, result)
    return result


def refuse_untold(content: xr.Dataset, found: dict[str, xr.Variable]) -> None:
    """Refuse places without a unit that are all so small that they may be radians."""
    told = [
        v for n, v in content.variables.items() if usual_place(str(n), {}) and "units" in v.attrs
    ]
    sizes = [float(np.nanmax(np.abs(found[name].values), initial=0.0)) for name in DEGREES]
    if not told and sizes[0] <= np.pi / 2 and sizes[1] <= 2 * np.pi:
        raise ValueError(
            f"latitudes and longitudes reach {sizes[0]:.3g} and {sizes[1]:.3g} of no unit, and may "
            "be radians: set .attrs['units'] to degrees_north and degrees_east, or to radians"
        )


def refuse_straight(
    content: xr.Dataset, field: xr.DataArray, own: dict[str, xr.Variable], origin: str
) -> None:
    """Refuse latitudes along one axis where the map that a variable names has none such."""
    named = str({**field.encoding, **field.attrs}.get("grid_mapping", ""))
    mapping = content.variables[named].attrs if named in content.variables else {}
    name = mapping.get("grid_mapping_name")
    if own and own["latitude"].ndim == 1 and name in (TURNED, *CURVED):
        raise ValueError(
            f"{origin} has latitudes along one axis, but on its map, {name}, they change along "
            "both: call the axes grid_latitude and grid_longitude by standard_name and their unit "
            "degrees, or give latitudes and longitudes on (y, x)"
        )


def other_places(
    own: dict[str, xr.Variable], by_map: dict[str, xr.Variable], origin: str
) -> list[str]:
    """Return in a line how far a file's own places are from those of its map; refuse other ones."""
    shape = by_map["latitude"].shape
    parts = [np.s_[:: max(1, n // CHECKED)] for n in shape]
    if own["latitude"].ndim == 1:
        lines = own["latitude"].values[:, None], own["longitude"].values[None]
    else:
        lines = (as_planes(own[name])[0] for name in DEGREES)
    ours = on_sphere(*(np.broadcast_to(line, shape)[*parts] for line in lines))
    theirs = on_sphere(*(by_map[name].values[*parts] for name in DEGREES))
    off_km = float(np.nanmax(apart_m(ours, theirs), initial=0.0)) / 1000
    if off_km > MOST_OFF_KM:
        raise ValueError(
            f"latitudes and longitudes of {origin} are up to {off_km:.0f} km from where its grid "
            "mapping has the points: correct one of them, or drop the wrong one by .drop_vars"
        )
    text = f"latitudes and longitudes are up to {off_km:.1f} km from where the map has them"
    return [f"{text}: they are taken"] if off_km > 1 else []


def mapped_places(winds: xr.Dataset, content: xr.Dataset) -> dict[str, xr.Variable]:
    """Return latitude and longitude by the file's CF grid mapping, if it has one."""
    mappings = [v.attrs for v in content.variables.values() if "grid_mapping_name" in v.attrs]
    if len(mappings) != 1 or not {"y", "x"} <= {*winds.coords}:
        return {}
    lines = [winds[axis] for axis in ("x", "y")]
    if any(line.attrs.get("units") != "m" for line in lines):
        return {}
    found = places(mappings[0], *(line.values.astype(np.float64) for line in lines))
    return coordinates(*found, straight=False) if found else {}


def turned_places(content: xr.Dataset, roles: dict[str, str]) -> dict[str, xr.Variable]:
    """Return latitude and longitude of a grid about a turned pole, by its CF grid mapping."""
    mappings = [v.attrs for v in content.variables.values() if "grid_mapping_name" in v.attrs]
    lines = {axis: content[old].values for old, axis in roles.items() if old in content.coords}
    if len(mappings) != 1 or not {"y", "x"} <= {*lines}:
        return {}
    found = places(mappings[0], lines["x"], lines["y"])
    turned = mappings[0]["grid_mapping_name"] == TURNED
    return coordinates(*found, straight=False) if turned and found else {}


def mapped(winds: xr.Dataset, content: xr.Dataset) -> xr.Dataset:
    """Return the dataset with its CF grid mapping, where the axes are its own or straight."""
    found = [dict(v.attrs) for v in content.variables.values() if "grid_mapping_name" in v.attrs]
    if len(found) == 1 and {"y", "x"} <= {*winds.coords}:
        for axis in ("y", "x"):
            winds[axis].attrs["standard_name"] = f"projection_{axis}_coordinate"
        return winds.assign_coords({MAP: ((), 0, found[0])})
    if "latitude" in winds.coords and winds["latitude"].dims == ("y",):
        return winds.assign_coords({MAP: ((), 0, {"grid_mapping_name": "latitude_longitude"})})
    return winds


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


def upright(
    winds: xr.Dataset, first_row: str | None = None, origin: str = "the file"
) -> xr.Dataset:
    """Return the dataset as a map is read: y to the left of x, both ascending; it says so.

    Axes are turned by their own coordinates; where latitude and longitude are on (y, x), by these;
    where neither tells, by `first_row`, "south" or "north". Components stay as they are: they
    belong to the axes of the map, not to the order of points.
    """
    if first_row not in (None, "south", "north"):
        raise ValueError(f"first_row is {first_row!r}; it must be 'south' or 'north', or None")
    curved = "latitude" in winds.coords and winds["latitude"].ndim > 1
    lines = any(n in winds.coords and winds[n].dims == ("y",) for n in ("y", "latitude"))
    if first_row is None and not curved and not lines and winds.sizes["y"] > 1:
        raise ValueError(
            f"{origin} has no coordinates that tell whether its first row is the south or the "
            "north: pass first_row='south' or 'north'"
        )
    before = winds.attrs.get("changes", "")
    winds = angled(mirrored_back(straightened(winds), origin) if curved else straightened(winds))
    turned = ROWS in winds.attrs.get("changes", "")[len(before) :]
    if first_row is not None and (curved or lines):
        if turned != (first_row == "north"):
            raise ValueError(
                f"first_row is {first_row!r}, but the coordinates of {origin} say that its first "
                f"row is the {'north' if turned else 'south'}: leave first_row out"
            )
    elif first_row == "north":
        winds = changed(winds.isel(y=slice(None, None, -1)), f"{ROWS}, as first_row says")
    return winds


def straightened(winds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with coordinates of one axis ascending, longitudes without a jump."""
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
        if (order := seam(values)) is not None:
            seamed = "columns put in order across 0 degrees" if axis == "x" else "rows put in order"
            winds = changed(winds.isel({axis: order}), seamed)
            values = values[order]
        if values.size > 1 and values[-1] < values[0]:
            winds = winds.isel({axis: slice(None, None, -1)})
            winds = changed(winds, f"{axis} turned round, so that {name} ascends")
    return winds


def columns_of_turn(longitude: Shaped[np.ndarray, " x"]) -> int:
    """Return after how many columns longitudes begin anew; 0 if they do not go round the earth.

    That is the last column's neighbour, or the last column itself, as where 0° and 360° are there.
    """
    degrees = np.unwrap(longitude.astype(np.float64), period=360.0)
    if (gaps := len(degrees) - 1) < 1:
        return 0
    step = (degrees[-1] - degrees[0]) / gaps
    if not np.allclose(np.diff(degrees), step, rtol=1e-2):
        return 0
    turns = (n for n in (gaps, gaps + 1) if abs(abs(step) * n - 360.0) < abs(step) / 2)
    return next(turns, 0)


def seam(values: np.ndarray) -> np.ndarray | None:
    """Return the order in which a line that jumps back once, where it began anew, is one.

    As of a region across Greenwich whose columns are sorted from 0 to 360 degrees.
    """
    steps = np.diff(values)
    if values.size < 4 or not (steps > 0).any() or not (steps < 0).any():
        return None
    order = np.argsort(values, kind="stable")
    even = np.diff(values[order])
    return order if even.min() > 0 and even.max() < 1.5 * even.min() else None


def mirrored_back(winds: xr.Dataset, origin: str) -> xr.Dataset:
    """Return the dataset with that axis turned round that makes latitude and longitude a mirror."""
    latitude, longitude = planes(winds)
    if handedness(latitude, longitude) >= 0:
        return winds
    turn = angle(latitude, longitude)
    axis = "y" if np.nanmean(np.cos(turn)) >= 0 else "x"
    if axis in winds.coords:
        if str(winds[axis].attrs.get("units", "1")) not in ("1", ""):
            raise ValueError(
                f"{axis} of {origin} ascends, but by its latitudes and longitudes the grid is a "
                f"mirror image: correct one of them, or drop {axis}"
            )
        winds = winds.drop_vars(axis)  # mere numbers of rows or columns
    winds = winds.isel({axis: slice(None, None, -1)})
    return changed(winds, f"{axis} turned round, so that latitude and longitude are no mirror")


def handedness(latitude: Plane, longitude: Plane) -> float:
    """Return 1 where y is to the left of x seen from above, −1 where to the right; the mean of all.

    By the sign of (∂P/∂x × ∂P/∂y) · P of the points P on the unit sphere; 0 along a single line.
    """
    if min(latitude.shape) < 2:
        return 0.0
    points = on_sphere(latitude, longitude)
    along, across = (np.diff(points, axis=axis) for axis in (1, 0))
    volume = np.sum(np.cross(along[:-1], across[:, :-1]) * points[:-1, :-1], axis=-1)
    known = volume[np.isfinite(volume)]
    return float(np.sign(known).mean()) if known.size else 0.0
