"""Grids made coarser and finer."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml._grid import EARTH_M, on_sphere
from sciml.wind.cf.projection import places
from sciml.wind.prepare.resolution import coarser, finer


def on_lines(y=10, x=14):
    values = np.arange(2 * y * x, dtype="float32").reshape(2, y, x)
    return xr.Dataset(
        {"wind_speed": (("time", "y", "x"), values, {"units": "m s-1"})},
        coords={
            "latitude": ("y", 40 + 0.1 * np.arange(y), {"units": "degrees_north"}),
            "longitude": ("x", 350 + 2.0 * np.arange(x), {"units": "degrees_east"}),
        },
        attrs={"changes": "knots converted"},
    )


def test_finer_undoes_coarser_on_a_regular_grid():
    winds = on_lines(12, 15)
    coarse = coarser(winds, 3)
    fine = finer(coarse, 3)
    np.testing.assert_allclose(fine["latitude"], winds.latitude, atol=1e-9)
    np.testing.assert_allclose(fine["longitude"], winds.longitude, atol=1e-9)
    assert fine["latitude"].attrs == {"units": "degrees_north"}
    np.testing.assert_allclose(coarse.wind_speed, wind.block_mean(winds.wind_speed.values, 3))


def test_what_does_not_fill_a_block_is_left_out_and_said():
    coarse = coarser(on_lines(), 4)
    assert dict(coarse.sizes) == {"time": 2, "y": 2, "x": 3}
    assert (
        "knots converted; averaged over blocks of 4×4 points; 2 last rows"
        in (coarse.attrs["changes"])
    )
    with pytest.raises(ValueError, match="factor is 11 on a 10×14 grid; it must be 2 to 10"):
        coarser(on_lines(), 11)


def test_the_spacing_grows_where_no_coordinate_tells_it():
    winds = on_lines().drop_vars(["latitude", "longitude"], errors="ignore")
    winds = winds.assign_attrs(spacing_m=2500.0, spacing_x_m=2500.0)
    coarse = coarser(winds, 5)
    assert (coarse.attrs["spacing_m"], coarse.attrs["spacing_x_m"]) == (12500.0, 12500.0)


def test_a_curved_grid_across_the_date_line_stays_in_place():
    y, x = np.mgrid[:16, :24].astype(float)
    longitude = (170 + 0.8 * x + 0.1 * y + 180) % 360 - 180
    winds = xr.Dataset(
        {"wind_speed": (("time", "y", "x"), np.ones((1, 16, 24), "float32"))},
        coords={
            "latitude": (("y", "x"), 50 + 0.3 * y - 0.05 * x),
            "longitude": (("y", "x"), np.unwrap(longitude, axis=1, period=360)),
            "grid_angle": (("y", "x"), np.full((16, 24), 0.1)),
        },
    )
    fine = finer(coarser(winds, 4), 4)
    off = (fine["longitude"].values - longitude + 180) % 360 - 180
    assert np.abs(off).max() < 1e-6
    np.testing.assert_allclose(fine["latitude"], winds.latitude, atol=1e-6)


def test_one_point_has_no_spacing():
    coarse = coarser(on_lines(4, 8), 4)
    with pytest.raises(ValueError, match="latitude has 1 point along an axis"):
        finer(coarse, 4)


def placed(mapping: dict[str, Any], x_m: np.ndarray, y_m: np.ndarray) -> Any:
    """Latitude and longitude of points of a map that is known."""
    return places(mapping, x_m, y_m)


def on_the_plane(x_m: np.ndarray, y_m: np.ndarray, **mapping: Any) -> xr.Dataset:
    """A wind that is the same everywhere in space, on a map of a sphere, by its grid mapping."""
    latitude, longitude = placed(mapping, x_m, y_m)
    phi, lam = np.radians([latitude, longitude])
    east = 6 * -np.sin(lam) - 4 * np.cos(lam)
    north = -np.sin(phi) * (6 * np.cos(lam) - 4 * np.sin(lam)) + 2 * np.cos(phi)
    fields = {
        name: (("time", "y", "x"), field[None], {"units": "m s-1", "standard_name": name})
        for name, field in (("eastward_wind", east), ("northward_wind", north))
    }
    coords = {
        "latitude": (("y", "x"), latitude, {"units": "degrees_north"}),
        "longitude": (("y", "x"), longitude, {"units": "degrees_east"}),
    }
    return wind.conform(xr.Dataset(fields, coords), "the plane")


MAPS = {
    "across the date line": {
        "grid_mapping_name": "lambert_conformal_conic",
        "standard_parallel": 60.0,
        "longitude_of_central_meridian": 180.0,
        "latitude_of_projection_origin": 60.0,
    },
    "at the pole": {
        "grid_mapping_name": "polar_stereographic",
        "latitude_of_projection_origin": 90.0,
        "straight_vertical_longitude_from_pole": -32.0,
        "standard_parallel": 60.0,
    },
}


@pytest.mark.parametrize("name", MAPS)
def test_blocks_across_the_date_line_and_at_the_pole_are_where_they_are(name):
    lines = 2e4 * (np.arange(24.0) - 9.5)
    coarse = wind.coarser(on_the_plane(lines, lines, **MAPS[name]), 4)
    middles = placed(MAPS[name], *2 * [lines.reshape(-1, 4).mean(-1)])
    finest = wind.finer(coarse, 4)
    for there, exact in (
        ((coarse.latitude.values, coarse.longitude.values), middles),
        ((finest["latitude"].values, finest["longitude"].values), placed(MAPS[name], lines, lines)),
    ):
        off = np.linalg.norm(on_sphere(*there) - on_sphere(*exact), axis=-1) * EARTH_M
        assert off.max() < 2000
    phi, lam = np.radians(middles)
    east = 6 * -np.sin(lam) - 4 * np.cos(lam)
    far = np.degrees(phi) < 89
    assert np.abs(coarse.eastward_wind.values[0] - east)[far].max() < 0.3
