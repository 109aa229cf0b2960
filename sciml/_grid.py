"""Where the points of a grid lie, how far apart they are, and which way its axes point."""

from typing import Any

import numpy as np
from jaxtyping import Float

EARTH_M = 6371229.0  # sourced: radius of the spherical earth of most forecast models, GRIB 2 code 6

ROWS = 32  # of which, and of as many columns, it is looked whether points are evenly spaced

TAKEN_FOR_EVEN = "mostly; blocks, interpolation and spectra take it for even: fill in what lacks"
SPACING, UNEVEN = "spacing", "uneven"  # what places say of themselves once it has been told

Plane = Float[np.ndarray, "y x"]
Line = Float[np.ndarray, " step"]


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

    The median of up to five steps, which a row that lacks does not change; NaN along an axis of
    one point.
    """
    j, i = (max(0, n // 2 - 1) for n in latitude.shape)
    lines = (latitude[j], longitude[j]), (latitude[:, i], longitude[:, i])
    x, y = (middle_step_m(*line) for line in lines)
    return x, y


def middle_step_m(latitude: np.ndarray, longitude: np.ndarray) -> float:
    """Return the usual distance between neighbours about the middle of a line of points."""
    at = max(0, latitude.size // 2 - 1)
    most = min(2, at, latitude.size - 2 - at)
    steps = [
        distance_m(latitude[k : k + 2], longitude[k : k + 2])
        for k in range(at - most, at + most + 1)
    ]
    return float(np.median(steps)) if steps else float("nan")


def uneven_line(steps: Line) -> tuple[int, float, float] | None:
    """Return after which index the farthest step of a line is, its length, and the usual one.

    None where all are alike.
    """
    if not steps.size or np.ptp(steps) <= 0.01 * np.abs(steps.mean()):
        return None
    usual = float(np.median(steps))
    at = int(np.abs(steps - usual).argmax())
    return at, float(steps[at]), usual


def uneven(latitude: Plane, longitude: Plane) -> dict[str, tuple[int, float, float]]:
    """Return the axes along which no map has the points evenly, each with its farthest step.

    Even is a grid whose steps along each axis are equal, as of latitudes and longitudes about any
    pole, or whose cells are alike: conformal maps draw each place larger or smaller, in both
    directions. Points may be a quarter of a cell off, as rounded ones are, and steps differ by a
    twentieth, as on maps of equal areas.

    Returns:
        axis → (index after which the step is, its length in m, the usual length).
    """
    if min(latitude.shape) < 3 or not (np.isfinite(latitude) & np.isfinite(longitude)).all():
        return {}
    axes = {"y": cells_along(latitude.T, longitude.T), "x": cells_along(latitude, longitude)}
    if not any(off_line(alike) for _, alike, _ in axes.values()):
        return {}
    found = {}
    for axis, (steps, _, usual) in axes.items():
        if off_line(steps):
            at = int(np.abs(steps - np.median(steps)).argmax())
            found[axis] = at, float(steps[at] / np.median(steps) * usual), usual
    return found


def cells_along(latitude: Plane, longitude: Plane) -> tuple[Line, Line, float]:
    """Return steps and aspects of cells along x, in parts of their mean, and a usual step in m.

    Of a few rows, each with the next one.
    """
    rows = np.unique(np.linspace(0, len(latitude) - 2, ROWS).astype(int))
    points, above = (on_sphere(latitude[j], longitude[j]) for j in (rows, rows + 1))
    along = (apart_m(points[:, 1:], points[:, :-1]) + apart_m(above[:, 1:], above[:, :-1])) / 2
    across = apart_m(points, above)
    across = np.maximum((across[:, 1:] + across[:, :-1]) / 2, 1e-3)  # m; at a pole they are none
    return mean_line(along.T), mean_line((along / across).T), float(np.median(along))


def apart_m(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return great-circle distances between points on the unit sphere."""
    half = np.linalg.norm(points - others, axis=-1) / 2
    return 2 * EARTH_M * np.arcsin(np.minimum(half, 1))


def mean_line(steps: Float[np.ndarray, "step line"]) -> Line:
    """Return the steps along an axis in parts of their mean, the median of all lines."""
    means = steps.mean(axis=0)
    there = means > 1e-3 * means.max()  # rows at a pole are a point
    return np.median(steps[:, there] / means[there], axis=1)


def off_line(steps: Line) -> bool:
    """Tell steps of which no even line is made."""
    places = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0, places[-1], places.size)
    mean = places[-1] / steps.size
    return bool(np.ptp(steps) > 0.05 * mean and np.abs(places - even).max() > 0.25 * mean)


def on_sphere(latitude: np.ndarray, longitude: np.ndarray) -> Float[np.ndarray, "... 3"]:
    """Return points on the unit sphere."""
    phi, lam = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)
