"""From a file to wind in metres per second on (time, y, x)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import xarray as xr

COMPONENTS = ("x_wind", "y_wind")  # CF standard names
METRES_PER_SECOND = ("m/s", "m s-1", "m s**-1", "m.s-1", "meter second-1")
AXES = ("time", "y", "x")


def open(path: Path | str) -> xr.Dataset:
    """Read a netCDF-4 file of near-surface wind on a projected grid.

    The components are recognised by their CF standard names `x_wind` and `y_wind`: they are
    relative to the grid's axes, not to east and north.

    Args:
        path: a netCDF-4 (HDF5) file.

    Returns:
        `wind_speed` = √(x_wind² + y_wind²), `x_wind` and `y_wind`, in m/s, on (time, y, x), with
        the file's coordinates and attributes. The arrays are in memory and the file is closed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not netCDF-4, lacks a component or an axis, has another unit, or
            a missing value.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; name a netCDF file")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            content = stored.load()
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read as netCDF-4: {error}; fetch it again") from error
    return wind(content, origin=str(path))


def wind(content: xr.Dataset, *, origin: str = "the dataset") -> xr.Dataset:
    """Return the wind of a dataset whose variables carry CF standard names.

    Raises:
        ValueError: as `open`; `origin` names the dataset in the message.
    """
    parts = {name: component(content, name, origin) for name in COMPONENTS}
    speed = xr.apply_ufunc(np.hypot, parts["x_wind"], parts["y_wind"])
    speed.attrs = {"standard_name": "wind_speed", "long_name": "wind speed", "units": "m/s"}
    return xr.Dataset({"wind_speed": speed, **parts}, attrs=content.attrs)


def component(content: xr.Dataset, standard_name: str, origin: str) -> xr.DataArray:
    """Return one wind component, checked."""
    found = [name for name, v in content.data_vars.items() if is_called(v, standard_name)]
    if len(found) != 1:
        raise ValueError(
            f"{origin} has {len(found)} variables with standard_name {standard_name!r} among "
            f"{', '.join(map(str, content.data_vars)) or 'none'}; it must have one: "
            f"set .attrs['standard_name'] = {standard_name!r} on the one to use"
        )
    field = content[found[0]]
    if set(field.dims) != set(AXES):
        raise ValueError(
            f"{found[0]} of {origin} has axes {field.dims}; they must be {AXES}: "
            "select a level or rename the axes"
        )
    field = field.transpose(*AXES).astype("float32").rename(standard_name)
    check_unit(field, f"{found[0]} of {origin}")
    check_present(field, f"{found[0]} of {origin}")
    return field.assign_attrs(units="m/s")


def is_called(variable: xr.DataArray, standard_name: str) -> bool:
    """Tell whether a variable carries a CF standard name."""
    return variable.attrs.get("standard_name") == standard_name


def check_unit(field: xr.DataArray, name: str) -> None:
    """Refuse any unit but metres per second."""
    unit = field.attrs.get("units")
    if unit not in METRES_PER_SECOND:
        raise ValueError(
            f"the unit of {name} is {unit!r}; it must be 'm/s': convert it (1 knot = 0.5144 m/s) "
            "and set .attrs['units']"
        )


def check_present(field: xr.DataArray, name: str) -> None:
    """Refuse missing and infinite values, naming the first."""
    wrong = ~np.isfinite(field.values)
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), wrong.shape)
        place: Mapping[str, int] = dict(zip(AXES, map(int, first), strict=True))
        raise ValueError(
            f"{name} has {int(wrong.sum())} values that are not finite, the first at {place}; "
            "all must be present: fill them or select a part without them"
        )
