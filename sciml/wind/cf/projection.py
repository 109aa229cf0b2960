"""Maps of limited-area models on a sphere: from distances on the map to latitude and longitude.

By hand, because two copies of the PROJ library in one process, that of ecCodes and that of pyproj,
end in a crash. Formulas: Snyder (1987), Map Projections, USGS Professional Paper 1395.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from sciml._grid import EARTH_M, Plane

TURNED = "rotated_latitude_longitude"
CURVED = ("lambert_conformal_conic", "polar_stereographic", "lambert_azimuthal_equal_area")
PARALLEL, LATITUDE = "standard_parallel", "latitude_of_projection_origin"
SCALE = "scale_factor_at_projection_origin"
STRAIGHT = "straight_vertical_longitude_from_pole", "longitude_of_projection_origin"
MERIDIAN = "longitude_of_projection_origin", "longitude_of_central_meridian"
NEEDED = {  # without which a map is not known: one of each
    "lambert_conformal_conic": ((PARALLEL,), (LATITUDE,), ("longitude_of_central_meridian",)),
    "polar_stereographic": ((PARALLEL, SCALE), (LATITUDE,), STRAIGHT),
    "mercator": ((PARALLEL, SCALE), MERIDIAN),
    TURNED: (("grid_north_pole_latitude",), ("grid_north_pole_longitude",)),
}

Distances = Float[np.ndarray, "y x"]


def places(
    mapping: Mapping[str, Any], x_m: Float[np.ndarray, " x"], y_m: Float[np.ndarray, " y"]
) -> tuple[Plane, Plane] | None:
    """Return latitude and longitude (y, x) of points whose CF grid mapping is known.

    Lambert conformal conic, polar stereographic, Mercator, and grids about a turned pole, whose x
    and y are degrees; None for any other map, for an ellipsoid, and where a number lacks.
    """
    name = str(mapping.get("grid_mapping_name"))
    if not all({*either} & {*mapping} for either in NEEDED.get(name, ())):
        return None
    if name == TURNED:
        return about_pole(mapping, *np.meshgrid(np.radians(x_m), np.radians(y_m)))
    inverse = MAPS.get(name)
    a, b = mapping.get("semi_major_axis"), mapping.get("semi_minor_axis")
    flat = float(mapping.get("inverse_flattening", 0.0)) or (b is not None and a != b)
    if inverse is None or flat:
        return None
    radius = float(mapping.get("earth_radius", mapping.get("semi_major_axis", EARTH_M)))
    x, y = np.meshgrid(
        (x_m - float(mapping.get("false_easting", 0.0))) / radius,
        (y_m - float(mapping.get("false_northing", 0.0))) / radius,
    )
    phi, lam = inverse(mapping, x, y)
    return np.degrees(phi), (np.degrees(lam) + 180.0) % 360.0 - 180.0


def angles(mapping: Mapping[str, Any], *names: str) -> list[float]:
    """Return the first that is there of several attributes, in radians; one or two numbers."""
    found = next((mapping[name] for name in names if name in mapping), 0.0)
    return [float(np.radians(value)) for value in np.atleast_1d(found)]


def lambert(mapping: Mapping[str, Any], x: Distances, y: Distances) -> tuple[Any, Any]:
    """Invert ρ = F / tanⁿ(π/4 + φ/2), θ = n (λ − λ0), x = ρ sin θ, y = ρ0 − ρ cos θ."""
    parallels = angles(mapping, "standard_parallel")
    first, last = parallels[0], parallels[-1]
    (phi0,) = angles(mapping, "latitude_of_projection_origin")
    (lam0,) = angles(mapping, "longitude_of_central_meridian")
    n = cone(first, last)
    scale = np.cos(first) * half(first) ** n / n
    rho0 = scale / half(phi0) ** n
    rho = np.sign(n) * np.hypot(x, rho0 - y)
    theta = np.arctan2(np.sign(n) * x, np.sign(n) * (rho0 - y))
    return 2 * np.arctan((scale / rho) ** (1 / n)) - np.pi / 2, lam0 + theta / n


def cone(first: float, last: float) -> float:
    """Return n, by how much meridians of a conical map draw together, of its standard parallels."""
    if np.isclose(first, last):
        return float(np.sin(first))
    return float(np.log(np.cos(first) / np.cos(last)) / np.log(half(last) / half(first)))


def half(phi: float) -> float:
    """Return tan(π/4 + φ/2)."""
    return float(np.tan(np.pi / 4 + phi / 2))


def stereographic(mapping: Mapping[str, Any], x: Distances, y: Distances) -> tuple[Any, Any]:
    """Invert ρ = (1 + sin φ1) tan(π/4 − φ/2) about the pole; for the south, mirrored.

    With the scale k at the pole, 1 + sin φ1 is 2 k.
    """
    (pole,) = angles(mapping, "latitude_of_projection_origin")
    (lam0,) = angles(mapping, *STRAIGHT)
    sign = 1.0 if pole >= 0 else -1.0
    scale = 1 + sign * np.sin(angles(mapping, "standard_parallel")[0])
    if SCALE in mapping:
        scale = 2 * float(mapping[SCALE])
    phi = sign * (np.pi / 2 - 2 * np.arctan(np.hypot(x, y) / scale))
    return phi, lam0 + np.arctan2(x, -sign * y)


def mercator(mapping: Mapping[str, Any], x: Distances, y: Distances) -> tuple[Any, Any]:
    """Invert x = (λ − λ0) cos φ1, y = cos φ1 ln tan(π/4 + φ/2); or the scale for cos φ1."""
    (lam0,) = angles(mapping, *MERIDIAN)
    scale = np.cos(angles(mapping, "standard_parallel")[0])
    if SCALE in mapping:
        scale = float(mapping[SCALE])
    return 2 * np.arctan(np.exp(y / scale)) - np.pi / 2, lam0 + x / scale


def about_pole(mapping: Mapping[str, Any], x: Distances, y: Distances) -> tuple[Plane, Plane]:
    """Return latitude and longitude of points on a sphere whose pole is turned to φp, λp.

        sin φ = sin φp sin y + cos φp cos y cos x,  tan(λ − λp − π) = cos y sin x / (…)

    by the turn about the axis through the equator of both.
    """
    (phi,) = angles(mapping, "grid_north_pole_latitude")
    (lam,) = angles(mapping, "grid_north_pole_longitude")
    (own,) = angles(mapping, "north_pole_grid_longitude")
    x = x - own
    a, b, c = np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)
    north = np.cos(phi) * a + np.sin(phi) * c
    east = np.arctan2(b, np.sin(phi) * a - np.cos(phi) * c) + lam + np.pi
    return np.degrees(np.arcsin(north)), (np.degrees(east) + 180.0) % 360.0 - 180.0


MAPS = {
    "lambert_conformal_conic": lambert,
    "polar_stereographic": stereographic,
    "mercator": mercator,
}
