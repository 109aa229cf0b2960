"""Where the points of a grid lie, how far apart they are, and which way its axes point."""

from typing import Any

import numpy as np
from jaxtyping import Float

EARTH_M = 6371229.0  # sourced: radius of the spherical earth of most forecast models, GRIB 2 code 6

Plane = Float[np.ndarray, "y x"]


def angle(latitude: Plane, longitude: Plane) -> Plane:
    """Return the angle from east to the direction of growing x, in radians, anticlockwise.

    From the bearing between neighbours, which belongs to the point half-way between them, so it is
    interpolated to the points and, at both ends, continued linearly: second order in the spacing.
    Where x has one point only, the angle comes from y, which is a quarter turn ahead.
    """
    if latitude.shape[1] > 1:
        return bearings(latitude, longitude)
    return bearings(latitude.T, longitude.T).T - np.pi / 2


def bearings(latitude: Plane, longitude: Plane) -> Plane:
    """Return the direction of growing second index."""
    phi, dlon = np.radians(latitude), np.diff(longitude, axis=1)
    east = np.radians((dlon + 180) % 360 - 180) * np.cos((phi[:, 1:] + phi[:, :-1]) / 2)
    between = np.unwrap(np.arctan2(np.diff(phi, axis=1), east), axis=1)
    if between.shape[1] == 1:
        return np.repeat(between, 2, axis=1)
    first = 1.5 * between[:, :1] - 0.5 * between[:, 1:2]
    last = 1.5 * between[:, -1:] - 0.5 * between[:, -2:-1]
    return np.concatenate([first, (between[:, 1:] + between[:, :-1]) / 2, last], axis=1)


def rotated(along: Any, across: Any, turn: Any) -> tuple[Any, Any]:
    """Return a vector's components on axes turned by −`turn`: from grid axes to east and north.

        east = along cos α − across sin α,  north = along sin α + across cos α

    With −α it goes the other way. Works on NumPy, dask and labelled arrays.
    """
    cos, sin = np.cos(turn), np.sin(turn)
    return along * cos - across * sin, along * sin + across * cos


def distance_m(latitude: Any, longitude: Any) -> float:
    """Return the great-circle distance between two points, each [first, second] in degrees."""
    phi, lam = np.radians(latitude), np.radians(longitude)
    half = np.sin(np.diff(phi) / 2) ** 2
    half += np.cos(phi[0]) * np.cos(phi[1]) * np.sin(np.diff(lam) / 2) ** 2
    return float(2 * EARTH_M * np.arcsin(np.sqrt(half))[0])


def spacings_m(latitude: Plane, longitude: Plane) -> tuple[float, float]:
    """Return the distances between neighbours along x and along y in the middle of the grid.

    NaN along an axis of one point.
    """
    j, i = (max(0, n // 2 - 1) for n in latitude.shape)
    x, y = (
        distance_m(latitude[part], longitude[part]) if latitude[part].size == 2 else float("nan")
        for part in (np.s_[j, i : i + 2], np.s_[j : j + 2, i])
    )
    return x, y


def on_sphere(latitude: np.ndarray, longitude: np.ndarray) -> Float[np.ndarray, "... 3"]:
    """Return points on the unit sphere."""
    phi, lam = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)
