"""Fields lie as on a map, whatever order a file has: every grid, scan and order of axes."""

from itertools import product

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.wind.cf.position import handedness

Y, X = np.arange(5.0), np.arange(7.0)


def regular():
    """A latitude–longitude grid with 1-D coordinates."""
    units = ({"units": "degrees_north"}, {"units": "degrees_east"})
    return {"latitude": ("y", 50 + Y, units[0]), "longitude": ("x", 5 + X, units[1])}


def curved(turn=0.0):
    """The same places on (y, x), turned about the middle, without coordinates of the axes."""
    y, x = np.meshgrid(Y - 2, X - 3, indexing="ij")
    north, east = (y * np.cos(turn) + x * np.sin(turn), x * np.cos(turn) - y * np.sin(turn))
    latitude = 50 + 0.1 * north
    longitude = 5 + 0.1 * east / np.cos(np.radians(50))
    return {
        "latitude": (("y", "x"), latitude, {"units": "degrees_north"}),
        "longitude": (("y", "x"), longitude, {"units": "degrees_east"}),
    }


def projected():
    """A map with distances and no latitude."""
    units = {"units": "m"}
    return {"y": ("y", 2000 * Y, units), "x": ("x", 2000 * X, units)}


GRIDS = {
    "regular": regular,
    "curved": curved,
    "turned": lambda: curved(0.6),
    "across the pole's side": lambda: curved(-1.2),
    "projected": projected,
}


def written(coords):
    """A field of wind that tells every point from every other."""
    u = (10 * Y[:, None] + X).astype("float32")[None]
    attrs = {"units": "m s-1", "standard_name": "x_wind"}
    return xr.Dataset(
        {
            "u": (("time", "y", "x"), u, attrs),
            "v": (("time", "y", "x"), -u, attrs | {"standard_name": "y_wind"}),
        },
        coords=coords | {"time": [np.datetime64("2020-01-01", "ns")]},
    )


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (-1, 1), (1, -1)])
def test_every_scan_and_order_of_axes_gives_one_map(tmp_path, grid, rows, columns):
    true = written(GRIDS[grid]())
    for swapped in (False, True):
        stored = true.isel(y=slice(None, None, rows), x=slice(None, None, columns))
        stored = stored.transpose("time", "x", "y") if swapped else stored
        path = tmp_path / f"{swapped}.nc"
        stored.to_netcdf(path, engine="h5netcdf")
        found = wind.open(path)
        # A mirror is turned back along one axis; which one only the grid's own angle tells.
        seen = found.x_wind.values[0]
        whole = true.u.values[0]
        if grid in ("regular", "projected", "curved"):
            np.testing.assert_array_equal(seen, whole)
        else:
            assert any(np.array_equal(seen, turn) for turn in (whole, whole[::-1, ::-1]))
        if "latitude" in found.coords and found.latitude.ndim == 2:
            assert handedness(found.latitude.values, found.longitude.values) == 1
        if (rows, columns) != (1, 1):
            assert "turned round" in found.attrs["changes"]


@pytest.mark.parametrize("first_row", ["south", "north"])
def test_a_file_without_coordinates_is_asked_for_its_first_row(tmp_path, first_row):
    true = written({})
    true.to_netcdf(tmp_path / "bare.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"bare\.nc has no coordinates .*first_row='south'"):
        wind.open(tmp_path / "bare.nc")
    found = wind.open(tmp_path / "bare.nc", first_row=first_row)
    step = -1 if first_row == "north" else 1
    np.testing.assert_array_equal(found.x_wind[0], true.u[0, ::step])


def test_what_is_said_of_the_first_row_must_not_contradict_the_coordinates(tmp_path):
    true = written(curved()).isel(y=slice(None, None, -1))
    true.to_netcdf(tmp_path / "north.nc", engine="h5netcdf")
    np.testing.assert_array_equal(
        wind.open(tmp_path / "north.nc", first_row="north").x_wind,
        wind.open(tmp_path / "north.nc").x_wind,
    )
    with pytest.raises(ValueError, match="first row is the north"):
        wind.open(tmp_path / "north.nc", first_row="south")
    with pytest.raises(ValueError, match="first_row is 'up'"):
        wind.open(tmp_path / "north.nc", first_row="up")


def test_axes_that_contradict_the_places_are_refused(tmp_path):
    mirrored = written(curved()).isel(y=slice(None, None, -1))
    mirrored = mirrored.assign_coords(y=("y", 2000 * Y, {"units": "m"}))
    mirrored.to_netcdf(tmp_path / "mirror.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="the grid is a mirror image"):
        wind.open(tmp_path / "mirror.nc")


@pytest.mark.parametrize(("south", "west"), [*product((False, True), repeat=2)])
def test_southern_and_western_hemispheres_are_no_mirrors(south, west):
    coords = curved()
    latitude, longitude = coords["latitude"][1], coords["longitude"][1]
    latitude = latitude - 100 if south else latitude
    longitude = longitude - 185 if west else longitude  # across the date line
    assert handedness(latitude, (longitude + 180) % 360 - 180) == 1
    assert handedness(latitude[::-1], longitude[::-1]) == -1
