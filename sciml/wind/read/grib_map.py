"""The map of a GRIB grid as a CF grid mapping, where its header and its points agree."""

from typing import Any

import numpy as np

from sciml._grid import EARTH_M, Plane
from sciml.wind.cf.projection import places
from sciml.wind.read.messages import known

OFF_DEG = 1e-3  # by which points may differ from the header's map: GRIB 1 rounds to a thousandth
STEPS = 12  # of Newton's method


def grid_mapping(
    handle: Any, latitude: Plane, longitude: Plane, *, x: Any, y: Any
) -> dict[str, Any]:
    """Return the CF grid mapping of a message whose distances are counted from a corner.

    Its false easting and northing put the corner where its latitude and longitude are. It is
    empty where the map is none of ours, or does not give the points that ecCodes gives.
    """
    mapping = said(handle)
    if not mapping:
        return {}
    lowest = int(np.argmin(y)), int(np.argmin(x))
    at = corner(mapping, float(latitude[lowest]), float(longitude[lowest]))
    mapping |= {"false_easting": -at[0], "false_northing": -at[1]}
    found = places(mapping, np.asarray(x, float), np.asarray(y, float))
    if found is None:
        return {}
    off = [found[0] - latitude, (found[1] - longitude + 180.0) % 360.0 - 180.0]
    return mapping if np.nanmax(np.abs(off)) < OFF_DEG else {}


def said(handle: Any) -> dict[str, Any]:
    """Return what a header says of its map, in the words of CF."""
    kind = known(handle, "gridType", "")
    own = {"earth_radius": float(known(handle, "radius", EARTH_M) or EARTH_M)}
    middle = {"longitude_of_central_meridian": known(handle, "LoVInDegrees")}
    if kind == "lambert":
        parallels = [known(handle, f"Latin{i}InDegrees") for i in (1, 2)]
        own |= middle | {
            "grid_mapping_name": "lambert_conformal_conic",
            "standard_parallel": parallels,
            "latitude_of_projection_origin": known(handle, "LaDInDegrees", parallels[0]),
        }
    elif kind == "polar_stereographic":
        south = int(known(handle, "projectionCentreFlag", 0) or 0) & 128
        own |= {
            "grid_mapping_name": "polar_stereographic",
            "straight_vertical_longitude_from_pole": known(handle, "orientationOfTheGridInDegrees"),
            "latitude_of_projection_origin": -90.0 if south else 90.0,
            "standard_parallel": (-1 if south else 1) * abs(known(handle, "LaDInDegrees", 60.0)),
        }
    elif kind == "mercator":
        own |= {
            "grid_mapping_name": "mercator",
            "longitude_of_projection_origin": 0.0,
            "standard_parallel": known(handle, "LaDInDegrees"),
        }
    else:
        return {}
    return {} if any(value is None for value in own.values()) else own


def corner(mapping: dict[str, Any], latitude: float, longitude: float) -> tuple[float, float]:
    """Return where on the map a place lies, in metres: `places` inverted by Newton's method."""
    at, step = np.zeros(2), 1000.0
    wanted = np.array([latitude, longitude])
    for _ in range(STEPS):
        near = at + step * np.array([[0, 0], [1, 0], [0, 1]])
        found = np.array([placed(mapping, x, y) for x, y in near])
        off = wanted - found[0]
        off[1] = (off[1] + 180.0) % 360.0 - 180.0
        slope = (found[1:] - found[0]).T / step
        at = at + np.clip(np.linalg.pinv(slope) @ off, -3e6, 3e6)
    return float(at[0]), float(at[1])


def placed(mapping: dict[str, Any], x_m: float, y_m: float) -> tuple[float, float]:
    """Return latitude and longitude of one point of the map."""
    found = places(mapping, np.array([x_m]), np.array([y_m]))
    assert found is not None  # `said` names maps of `places` alone
    return float(found[0][0, 0]), float(found[1][0, 0])
