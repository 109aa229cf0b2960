"""Land and relief in the units and marks that files have; axes and marks that nothing declares."""

import gzip

import numpy as np
import pytest
import xarray as xr

from sciml import wind

EARTH = ("eastward_wind", "northward_wind")
DRAWN = np.random.default_rng(0).normal(5, 2, (2, 1, 6, 7)).astype(np.float32)
LATITUDE = ("lat", np.linspace(50, 51, 6), {"units": "degrees_north"})
LONGITUDE = ("lon", np.linspace(5, 6, 7), {"units": "degrees_east"})
HEIGHTS = np.linspace(0, 800, 42, dtype="f4").reshape(6, 7)
LAND = (HEIGHTS > 300).astype("f4")


def winds(**more):
    fields = {
        name: (("time", "lat", "lon"), field, {"units": "m s-1", "standard_name": name})
        for name, field in zip(EARTH, DRAWN, strict=True)
    }
    own = {name: (("lat", "lon"), *values) for name, values in more.items()}
    return xr.Dataset(fields | own, {"lat": LATITUDE, "lon": LONGITUDE})


@pytest.mark.parametrize(
    ("name", "unit", "metres"),
    [
        ("orog", "dam", 10.0),
        ("orog", "km", 1000.0),
        ("orog", "ft", 0.3048),
        ("hgt", "m2/s2", 1 / 9.80665),
        ("orog", "J kg-1", 1 / 9.80665),
    ],
)
def test_relief_is_in_metres(name, unit, metres):
    content = winds(**{name: (HEIGHTS / metres, {"units": unit})})
    assert np.allclose(wind.conform(content, "a.nc").orography, HEIGHTS, atol=1e-3)


def test_a_geopotential_of_the_surface_is_relief():
    attrs = {"units": "m2 s-2", "standard_name": "surface_geopotential"}
    found = wind.conform(winds(z=(9.80665 * HEIGHTS, attrs)), "a.nc")
    assert np.allclose(found.orography, HEIGHTS, atol=1e-3)


@pytest.mark.parametrize(
    ("field", "attrs", "why"),
    [
        (HEIGHTS, {}, "its unit is None"),
        (HEIGHTS, {"units": "furlong"}, "its unit is 'furlong'"),
        (9.8 * HEIGHTS + 5000, {"units": "m"}, "it is 5000 to 12840, beyond"),
    ],
)
def test_relief_of_an_unknown_unit_is_left_aside_and_refused_alone(tmp_path, field, attrs, why):
    content = winds(orog=(field, attrs))
    found = wind.conform(content, "a.nc")
    assert "orography" not in found
    assert f"orog passed over: {why}" in found.attrs["changes"]
    content.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=f"a.nc is no orography: {why}"):
        wind.open_statics(tmp_path / "a.nc")


def test_heights_of_several_levels_or_that_change_are_no_relief():
    content = winds()
    heights = np.stack([HEIGHTS, HEIGHTS + 700])[None]
    levels = ("level", [1000.0, 925.0], {"units": "hPa"})
    content = content.assign_coords(level=levels)
    content["hgt"] = ("time", "level", "lat", "lon"), heights, {"units": "m"}
    said = wind.conform(content, "a.nc").attrs["changes"]
    assert "hgt passed over: it has several levels" in said
    two = winds().isel(time=[0, 0])
    two["hgt"] = ("time", "lat", "lon"), heights[0], {"units": "m"}
    assert "hgt passed over: it changes in time" in wind.conform(two, "a.nc").attrs["changes"]


@pytest.mark.parametrize(
    ("field", "attrs"),
    [
        (1 - LAND, {"flag_values": np.array([0, 1]), "flag_meanings": "land sea"}),
        (LAND, {"flag_values": np.array([0, 1]), "flag_meanings": "sea land"}),
        (100 * LAND, {"units": "%"}),
        (1 - LAND, {"long_name": "land sea mask (1=sea, 0=land)"}),
        (LAND, {"long_name": "land sea mask (1 is land, 0 is sea)"}),
    ],
)
def test_a_land_mask_is_one_on_land(field, attrs):
    found = wind.conform(winds(land_mask=(field, attrs)), "a.nc")
    assert np.array_equal(found.land_mask, LAND)


def test_masks_of_more_than_land_and_sea_are_left_aside():
    for attrs in ({}, {"flag_values": np.array([0, 1, 2]), "flag_meanings": "open full ice"}):
        found = wind.conform(winds(lsm=(2 * LAND, attrs)), "a.nc")
        assert "lsm passed over: its flag_mea" in found.attrs["changes"] or not attrs
        assert "land_mask" not in found


def on_map(unit, **mapping):
    """Components on a Lambert map whose axes have this unit."""
    own = {"grid_mapping_name": "lambert_conformal_conic", "standard_parallel": 63.0}
    own |= {"latitude_of_projection_origin": 63.0, "longitude_of_central_meridian": 15.0}
    attrs = {} if unit is None else {"units": unit}
    lines = {a: (a, np.arange(n) * 2.5, attrs) for a, n in (("y", 6), ("x", 7))}
    fields = {
        name: (("time", "y", "x"), field, {"units": "m s-1", "standard_name": name})
        for name, field in zip(("x_wind", "y_wind"), DRAWN, strict=True)
    }
    return xr.Dataset(fields | {"map": ((), 0, own | mapping)}, lines)


def test_distances_are_in_metres_and_of_a_stated_unit():
    found = wind.conform(on_map("km"), "a.nc")
    assert found.attrs["spacing_m"] == 2500.0
    assert np.allclose(np.diff(found.x), 2500.0)
    assert 0.02 < float(found.latitude[1, 0] - found.latitude[0, 0]) < 0.025
    silent = wind.conform(on_map(None), "a.nc")
    assert "latitude" not in silent.coords
    assert "spacing_m" not in silent.attrs
    assert "no latitudes: the map" in silent.attrs["changes"]
    metres = on_map(None)
    metres = metres.assign_coords({a: metres[a] * 1000 for a in ("y", "x")})
    assert wind.conform(metres, "a.nc").attrs["spacing_m"] == 2500.0


def test_latitudes_along_one_axis_contradict_a_turned_map():
    content = winds(turned=(np.zeros((6, 7)), {}))
    content["turned"] = (), 0, {"grid_mapping_name": "rotated_latitude_longitude"}
    assert "latitude" in wind.conform(content, "left over.nc").coords
    for name in EARTH:
        content[name].attrs["grid_mapping"] = "turned"
    with pytest.raises(ValueError, match="on its map, rotated_latitude_longitude, they change"):
        wind.conform(content, "a.nc")


def test_what_netcdf_never_wrote_is_missing(tmp_path):
    content = winds()
    packed = xr.Dataset(coords=content.coords)
    for name in EARTH:
        stored = (content[name].values / 0.001).round().astype("i2")
        stored[0, 0, 0] = -32767
        attrs = {"units": "m s-1", "standard_name": name, "scale_factor": 0.001, "add_offset": 28.0}
        packed[name] = ("time", "lat", "lon"), stored, attrs
    none = {name: {"_FillValue": None} for name in EARTH}
    packed.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=none)
    with pytest.raises(ValueError, match="has 1 missing values"):
        wind.open(tmp_path / "a.nc")
    assert wind.open(tmp_path / "a.nc", allow_missing=True).x_wind.isnull().sum() == 1


def test_a_mark_near_the_wind_is_found():
    content = winds()
    content[EARTH[0]][0, :1, :6] = -32.768
    assert not wind.check(wind.conform(content, "a.nc")).good


def test_packed_and_empty_files_are_told(tmp_path):
    (tmp_path / "a.nc.gz").write_bytes(gzip.compress(b"CDF"))
    (tmp_path / "a.nc").write_bytes(b"")
    (tmp_path / "page.nc").write_bytes(b"<!DOCTYPE html>")
    for name, said in (("a.nc.gz", "gunzip"), ("a.nc", "is empty"), ("page.nc", "web page")):
        with pytest.raises(ValueError, match=said):
            wind.open(tmp_path / name)


def test_parts_of_one_wind_at_other_times_are_refused_in_words_of_their_own(tmp_path):
    day = np.array(["2020-01-01"], "M8[ns]")
    names = [str(tmp_path / n) for n in ("u.nc", "v.nc")]
    for path, part, time in zip(names, EARTH, (day, day + np.timedelta64(1, "h")), strict=True):
        content = winds()[[part]].assign_coords(time=time)
        content.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match="at the same times and points in the same order"):
        wind.open(names)


@pytest.mark.parametrize(
    ("name", "unit", "other", "factor"),
    [
        ("orography", "ft", 0.3048, "0.3048"),
        ("orography", "km", 1000.0, "1000"),
        ("land_mask", "%", 0.01, "0.01"),
        ("air_temperature", "degC", None, ""),
        ("surface_air_pressure", "hPa", 100.0, "100"),
    ],
)
def test_what_lies_beside_in_another_unit_is_refused_as_wind_is(name, unit, other, factor):
    """Relief in feet went into a net that knows metres."""
    still = name in ("orography", "land_mask")
    fields = wind.gaussian(seed=0, snapshots=2, n=16)
    on = ("y", "x") if still else ("time", "y", "x")
    ours = {"air_temperature": "K", "surface_air_pressure": "Pa", "land_mask": "1"}.get(name, "m")
    values = np.full([fields.sizes[axis] for axis in on], 0.5, np.float32)
    kind = {"statics" if still else "beside": (name,)}
    right = fields.assign({name: (on, values, {"units": ours})})
    assert wind.channels(right, ("x_wind",), **kind).sizes["channel"] == 2
    wrong = fields.assign({name: (on, values, {"units": unit})})
    said = f"multiply the values by {factor}, and write '{ours}'" if other else "convert the values"
    with pytest.raises(ValueError, match=f"{name} is in {unit}; it must be in {ours}: {said}"):
        wind.channels(wrong, ("x_wind",), **kind)
    if still:
        places = {"latitude": ("y", np.arange(16.0)), "longitude": ("x", np.arange(16.0))}
        with pytest.raises(ValueError, match=f"{name} is in {unit}"):
            wind.with_statics(fields.assign_coords(places), wrong[[name]].assign_coords(places))
