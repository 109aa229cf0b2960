"""Rows and columns by whatever they are called, in groups or not, beside what is no field."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind

U, V = np.random.default_rng(0).normal(5, 2, (2, 2, 6, 7)).astype(np.float32)
STAMPS = np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
LATITUDES, LONGITUDES = np.linspace(50, 51, 6), np.linspace(5, 6, 7)
NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}
STATED = ("eastward_wind", "northward_wind")


def winds(dims=("lat", "lon"), names=("u10", "v10"), stated=STATED, **coords):
    """Both components on (time, *dims)."""
    fields = {
        name: (("time", *dims), field, {"units": "m s-1"} | ({"standard_name": s} if s else {}))
        for name, field, s in zip(names, (U, V), stated, strict=True)
    }
    return xr.Dataset(fields, {"time": STAMPS} | coords)


def curved(dims, **more):
    """On axes of these names, with latitude and longitude on both."""
    north, east = np.meshgrid(LATITUDES, LONGITUDES, indexing="ij")
    return winds(dims, north=(dims, north, NORTH), east=(dims, east, EAST), **more)


def straight(dims=("lat", "lon"), **more):
    """On axes of latitude and longitude."""
    places = {dims[0]: (dims[0], LATITUDES, NORTH), dims[1]: (dims[1], LONGITUDES, EAST)}
    return winds(dims, **more, **places)


def same(found):
    assert np.array_equal(found.eastward_wind, U)
    assert np.array_equal(found.northward_wind, V)
    assert np.allclose(found.latitude.values.reshape(6, -1)[:, 0], LATITUDES)


PAIRS = [
    ("j", "i"),
    ("jc", "ic"),
    ("nlat", "nlon"),
    ("rows", "columns"),
    ("eta_rho", "xi_rho"),
    ("nav_lat", "nav_lon"),
    ("gridlat_0", "gridlon_0"),
    ("g0_lat_1", "g0_lon_2"),
    ("YDim", "XDim"),
    ("y_1", "x_1"),
    ("south_north", "west_east"),
]


@pytest.mark.parametrize("dims", PAIRS, ids="-".join)
def test_curved_grids_are_read_whatever_their_axes_are_called(dims):
    content = curved(dims)
    same(wind.conform(content, "a.nc"))
    same(wind.conform(content.transpose(*dims[::-1], "time"), "a.nc"))
    same(wind.conform(content.isel({dims[0]: slice(None, None, -1)}), "a.nc"))
    same(wind.conform(content.isel({dims[1]: slice(None, None, -1)}), "a.nc"))


@pytest.mark.parametrize("dims", [("lat_0", "lon_0"), ("parallel", "meridian")], ids="-".join)
def test_an_axis_is_one_of_places_by_its_unit(dims):
    same(wind.conform(straight(dims, stated=("", "")), "a.nc"))
    named = straight(dims, stated=("", ""))
    for dim, name in zip(dims, ("latitude", "longitude"), strict=True):
        named[dim].attrs = {"standard_name": name}
    same(wind.conform(named, "a.nc"))


def test_wrf_renamed_by_another_tool_is_no_wrf_output(tmp_path):
    path = tmp_path / "wrf.nc"
    curved(("south_north", "west_east")).to_netcdf(path, engine="h5netcdf")
    same(wind.open(path))


@pytest.mark.parametrize(
    ("name", "on"),
    [("wd", "time"), ("u", "time"), ("v100", "lat"), ("wind_speed", "time"), ("wdir", "station")],
)
@pytest.mark.parametrize("unit", [{}, {"units": "m s-1"}])
def test_a_series_beside_fields_is_none_of_them(name, on, unit):
    """As a day of the week called wd."""
    content = straight(stated=("", ""))
    series = np.arange(content.sizes.get(on, 3), dtype=float)
    found = wind.conform(content.assign({name: (on, series, unit)}), "a.nc")
    same(found)
    if not (name.startswith("wd") and unit):  # no direction at all
        assert f"{name} passed over: its axes are {on}" in found.attrs["changes"]
    speed = xr.Dataset({"ws": np.hypot(content.u10, content.v10).assign_attrs(units="m/s")})
    alone = wind.conform(speed.assign({name: (on, series, unit)}), "a.nc")
    assert np.array_equal(alone.wind_speed, speed.ws)


def test_a_series_that_is_asked_for_is_refused_as_one():
    content = straight().assign(ws=("time", [1.0, 2.0], {"units": "m/s"}))
    with pytest.raises(ValueError, match=r"variable 'ws' of a.nc is on \('time',\), and no field"):
        wind.conform(content, "a.nc", wind.Level(variable="ws"))


@pytest.mark.parametrize("group", ["day", "runs/first"])
def test_wind_in_a_group_is_told(group, tmp_path):
    path = tmp_path / "groups.nc"
    xr.Dataset({"orog": (("lat", "lon"), U[0], {"units": "m"})}).to_netcdf(path, engine="h5netcdf")
    straight().to_netcdf(path, engine="h5netcdf", group=group, mode="a")
    with pytest.raises(ValueError, match=rf"its wind in groups, {group}: write it as a file, by"):
        wind.open(path)
    store = tmp_path / "groups.zarr"
    straight().to_zarr(store, group=group, consolidated=False)
    with pytest.raises(ValueError, match=rf"in groups, {group}: name .*groups.zarr/{group}"):
        wind.open(store)
    same(wind.open(store / group))


def test_members_may_have_names(tmp_path):
    both = xr.concat([straight(), straight() * 2], "realization").assign_attrs()
    for name, standard in zip(("u10", "v10"), STATED, strict=True):
        both[name].attrs = {"units": "m s-1", "standard_name": standard}
    both = both.assign_coords(realization=["r1i1p1f1", "r2i1p1f1"])
    found = wind.conform(both, "a.nc", wind.Level(member="r2i1p1f1"))
    assert np.array_equal(found.eastward_wind, 2 * U)
    with pytest.raises(ValueError, match="has the members r1i1p1f1, r2i1p1f1, not 1"):
        wind.conform(both, "a.nc", wind.Level(member=1))
    with pytest.raises(ValueError, match="is on members r1i1p1f1, r2i1p1f1; take one"):
        wind.channels(wind.conform(both, "a.nc"), ("x_wind", "y_wind"))


def test_what_we_refuse_is_no_damage(tmp_path):
    """A longitude in degrees_west was said to be of a damaged file."""
    path = tmp_path / "west.nc"
    content = straight()
    content["lon"].attrs["units"] = "degrees_west"
    content.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match=r"west\.nc: the unit of lon is 'degrees_west'.*units'\]$"):
        wind.open(path)
    straight().to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match=r"must be 'south' or 'north', or None$"):
        wind.open(path, first_row="up")
