"""Grids made coarser and finer."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind
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
