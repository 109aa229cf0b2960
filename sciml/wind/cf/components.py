"""Along the grid, towards east and north, speed and direction: each from the others."""

import re
from typing import Any

import numpy as np
import xarray as xr

from sciml._grid import rotated
from sciml.wind.cf.kinds import of_labelled
from sciml.wind.cf.names import EARTH, GRID, IN_M_S, POLAR
from sciml.wind.cf.units import METRES_PER_SECOND, refuse_other_unit

MEAN = "time: mean"
IN_TIME = re.compile(r"\btime: \w+")  # of cell_methods, as CF writes means and moments
LEVELS = ("height_m", "pressure_hpa", "model_level", "level", "member")  # attributes that stay


def with_components(winds: xr.Dataset, origin: str, *, stated: bool) -> xr.Dataset:
    """Add what follows from what is there: grid and earth components, and the speed.

    On a latitude–longitude grid both pairs of components are the same. On a grid with latitudes
    on (y, x), one pair is the other turned by the grid's angle at each point. Elsewhere there is
    no way from one to the other, and there is none to add. Where axes are not east and north it
    must be `stated` which are meant: a mere name such as u10 may stand for either.
    """
    if {*POLAR} <= {*winds.data_vars} and not {*GRID, *EARTH} & {*winds.data_vars}:
        # The wind blows away from where it comes from.
        strength, source = winds["wind_speed"], np.radians(winds["wind_from_direction"])
        for name, part in zip(EARTH, (np.sin(source), np.cos(source)), strict=True):
            winds[name] = named(-strength * part, name, like=strength)
        stated = True
    earth = [name for name in EARTH if name in winds]
    along_meridians = "latitude" in winds.coords and winds["latitude"].ndim == 1
    if earth and not stated and not along_meridians:
        raise ValueError(
            f"{origin} does not say whether its components are along the grid's axes or towards "
            f"east and north; set .attrs['standard_name'] to one of {', '.join(GRID + EARTH)}"
        )
    if along_meridians:
        pairs = [*zip(EARTH, GRID, strict=True), *zip(GRID, EARTH, strict=True)]
        for there, missing in pairs:
            if there in winds and missing not in winds:
                winds[missing] = named(winds[there], missing)
    elif "grid_angle" in winds.coords:
        turned(winds)
    if {*GRID} <= {*winds.data_vars} and "wind_speed" not in winds:
        winds["wind_speed"] = speed(winds["x_wind"], winds["y_wind"])
    first = [name for name in IN_M_S if name in winds]
    return winds[[*first, *(name for name in winds.data_vars if name not in first)]]


def turned(winds: xr.Dataset) -> None:
    """Add the pair of components that is missing, by the grid's angle."""
    for have, want, sign in ((GRID, EARTH, 1.0), (EARTH, GRID, -1.0)):
        if {*have} <= {*winds.data_vars} and not {*want} & {*winds.data_vars}:
            turn = sign * winds["grid_angle"].astype("float32")
            parts = rotated(winds[have[0]], winds[have[1]], turn)
            for name, values in zip(want, parts, strict=True):
                winds[name] = named(values, name, like=winds[have[0]])


def named(field: xr.DataArray, name: str, *, like: xr.DataArray | None = None) -> xr.DataArray:
    """Return a field with the attributes of what it now is, at the level of another."""
    level = (field if like is None else like).attrs
    kept = {k: v for k, v in level.items() if k in LEVELS}
    if method := IN_TIME.search(str(level.get("cell_methods", ""))):
        kept["cell_methods"] = method[0]
    elif level.get("GRIB_stepType") == "avg":  # as cfgrib says it
        kept["cell_methods"] = MEAN
    field = field.copy(deep=False).rename(name)  # a new name alone would share the attributes
    field.attrs = {"standard_name": name, "long_name": LONG_NAMES[name]} | {
        "units": "degree" if name == "wind_from_direction" else METRES_PER_SECOND,
        **kept,
    }
    return field


LONG_NAMES = {
    "x_wind": "wind along the grid's x axis",
    "y_wind": "wind along the grid's y axis",
    "eastward_wind": "wind towards the east",
    "northward_wind": "wind towards the north",
    "wind_speed": "wind speed",
    "wind_from_direction": "direction from which the wind blows, clockwise from north",
}


def speed(along: xr.DataArray, across: xr.DataArray) -> xr.DataArray:
    """Return √(along² + across²)."""
    length: Any = np.hypot(along, across)
    found = named(length, "wind_speed", like=along)
    found.attrs.pop("cell_methods", None)  # of a mean vector, and no mean of speeds
    return found


@of_labelled
def speed_and_direction(winds: xr.Dataset) -> xr.Dataset:
    """Return `wind_speed` in m/s and `wind_from_direction` in degrees.

        speed = √(u² + v²),  direction = 270° − atan2(v, u) mod 360°

    with u eastward and v northward: 0° is wind from the north, 90° from the east. Where the wind
    is calm the direction is NaN, since it has none.

    Raises:
        ValueError: the components towards east and north are not known.

    >>> import xarray as xr
    >>> wind = xr.Dataset({"eastward_wind": ("x", [0.0]), "northward_wind": ("x", [-5.0])})
    >>> speed_and_direction(wind).wind_from_direction.values  # from the north
    array([0.], dtype=float32)
    """
    if not {*EARTH} <= {*winds.data_vars}:
        raise ValueError(
            f"the dataset has {', '.join(map(str, winds.data_vars))}; a direction needs "
            f"{' and '.join(EARTH)}: open a file whose points have latitudes and longitudes"
        )
    for name in EARTH:
        refuse_other_unit(winds[name], name)
    u, v = (winds[name] for name in EARTH)
    degrees = (270.0 - np.degrees(np.arctan2(v, u))) % 360.0
    direction = xr.where((u == 0) & (v == 0), np.nan, degrees).astype("float32")
    return xr.Dataset(
        {
            "wind_speed": speed(u, v),
            "wind_from_direction": named(direction, "wind_from_direction", like=u),
        },
        attrs=winds.attrs,
    )
