"""What tools and centres say of a variable beside its name: of cfgrib, CESM, MERRA-2, ECMWF."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind

EARTH = ("eastward_wind", "northward_wind")
U, V = np.random.default_rng(0).normal(5, 2, (2, 1, 6, 7)).astype(np.float32)
ON = ("time", "y", "x")
LATITUDE = ("y", np.linspace(50, 51, 6), {"units": "degrees_north"})
LONGITUDE = ("x", np.linspace(5, 6, 7), {"units": "degrees_east"})
TURN = np.radians(20)


def named(names, *titles, fields=(U, V)):
    """Winds on latitudes and longitudes, with attributes of each variable."""
    own = {
        name: (ON, field, {"units": "m s-1"} | title)
        for name, field, title in zip(names, fields, titles, strict=True)
    }
    return xr.Dataset(own, {"lat": LATITUDE, "lon": LONGITUDE})


def by_cfgrib(relative):
    """As cfgrib writes components on a grid that is turned by 20 degrees."""
    titles = [{"standard_name": n, "GRIB_uvRelativeToGrid": relative} for n in EARTH]
    x, y = np.meshgrid(np.arange(7) * 0.01, np.arange(6) * 0.01)
    north = 50 + x * np.sin(TURN) + y * np.cos(TURN)
    east = (x * np.cos(TURN) - y * np.sin(TURN)) / np.cos(np.radians(50))
    places = {
        "latitude": (("y", "x"), north, LATITUDE[2]),
        "longitude": (("y", "x"), east, LONGITUDE[2]),
    }
    return named(("u10", "v10"), *titles).drop_vars(["lat", "lon"]).assign_coords(places)


def test_cfgrib_says_beside_the_standard_name_that_components_are_along_the_grid():
    found = wind.conform(by_cfgrib(1), "hrrr.nc")
    assert np.array_equal(found.x_wind, U)
    expected = U * np.cos(TURN) - V * np.sin(TURN)
    assert np.allclose(found.eastward_wind, expected, atol=5e-3)
    assert "u10 is along the grid's axes, by its GRIB_uvRelativeToGrid" in found.attrs["changes"]
    assert np.array_equal(wind.conform(by_cfgrib(0), "earth.nc").eastward_wind, U)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("u10", {"GRIB_dataType": "es"}),
        ("u10", {"GRIB_stepType": "max"}),
        ("u10", {"long_name": "zonal wind anomaly"}),
        ("eastward_wind_bias", {}),
        ("u", {"standard_name": "", "long_name": "Ocean surface u-velocity"}),
        ("u", {"standard_name": "", "long_name": "eastward current"}),
        ("u", {"standard_name": "", "long_name": "u of the geostrophic wind"}),
        ("u10", {"standard_name": "", "long_name": "Stokes drift, eastward"}),
        ("wd", {"standard_name": "", "long_name": "mean wave direction", "units": "degree"}),
    ],
)
def test_spreads_extremes_and_deviations_are_no_wind(name, title):
    one = named([name], {"standard_name": EARTH[0]} | title, fields=[U])
    with pytest.raises(ValueError, match=f"{name} passed over: its "):
        wind.conform(one, "a.nc")
    corrected = named(["u10"], {"long_name": "bias-corrected zonal wind"}, fields=[U])
    assert "x_wind" in wind.conform(corrected, "a.nc")
    over_sea = named(
        ["u10"], {"long_name": "zonal wind over the ocean, current analysis"}, fields=[U]
    )
    assert "x_wind" in wind.conform(over_sea, "a.nc")


@pytest.mark.parametrize("speed", ["ws", "wspd", "wspeed", "WindSpeed_10m", "wind_spd"])
@pytest.mark.parametrize("direction", ["wd", "wdir", "WindDir", "wind_dir", "wind_direction_10m"])
def test_short_names_of_speed_and_direction(speed, direction):
    degrees = (270 - np.degrees(np.arctan2(V, U))) % 360
    polar = named([speed, direction], {}, {"units": "degree"}, fields=[np.hypot(U, V), degrees])
    if ("10" in speed) != ("10" in direction):
        polar[speed].attrs["height_m"] = polar[direction].attrs["height_m"] = 10.0
    assert np.allclose(wind.conform(polar, "a.nc").x_wind, U, atol=1e-4)


def test_a_speed_by_its_title_is_no_component():
    cesm = named(["U10"], {"long_name": "10m wind speed"}, fields=[np.hypot(U, V)])
    assert [*wind.conform(cesm, "cesm.nc").data_vars] == ["wind_speed"]


def test_winds_at_pressures_are_at_no_height():
    names, at = ("U10M", "V10M", "U850", "V850"), "_wind_at_850_hPa"
    titles = [{}, {}, {"long_name": f"eastward{at}"}, {"long_name": f"northward{at}"}]
    merra = named(names, *titles, fields=(U, V, 2 * U, 2 * V))
    assert np.array_equal(wind.conform(merra, "merra.nc").x_wind, U)
    found = wind.conform(merra, "merra.nc", wind.Level(pressure_hpa=850.0)).x_wind
    assert np.array_equal(found, 2 * U)
    assert found.attrs["pressure_hpa"] == 850.0
    with pytest.raises(ValueError, match=r"has no height|850"):
        wind.conform(merra, "merra.nc", wind.Level(height_m=850.0))
    several = merra.drop_vars(["U10M", "V10M"])
    several["U500"] = several["U850"].assign_attrs(long_name="eastward_wind_at_500_hPa")
    with pytest.raises(ValueError, match=r"has wind at 500, 850 hPa; name one of them"):
        wind.conform(several, "merra.nc")


def test_a_number_that_may_be_a_height_or_a_pressure_is_refused():
    with pytest.raises(ValueError, match=r"u850 passed over: its level is '?.850 of no unit"):
        wind.conform(named(("u850", "v850"), {}, {}), "a.nc")
    told = named(("u850", "v850"), {"pressure_hpa": 850.0}, {"pressure_hpa": 850.0})
    assert wind.conform(told, "a.nc").x_wind.attrs["pressure_hpa"] == 850.0
    assert wind.conform(named(("u100", "v100"), {}, {}), "a.nc").x_wind.attrs["height_m"] == 100


def test_names_that_cfgrib_and_cdo_write_where_there_is_no_standard_name():
    for standard in ("unknown", "100u"):
        titles = [{"standard_name": standard}, {"standard_name": standard.replace("u", "v")}]
        titles = titles if standard == "100u" else [{"standard_name": "unknown"}] * 2
        found = wind.conform(named(("100u", "100v"), *titles), "a.nc")
        assert found.x_wind.attrs["height_m"] == 100


@pytest.mark.parametrize("key", ["GRIB_iScansNegatively", "GRIB_jPointsAreConsecutive"])
def test_what_cfgrib_lays_out_wrong_is_refused(key):
    content = named(("u10", "v10"), {key: 1}, {key: 1})
    with pytest.raises(ValueError, match=f"u10 of a.nc has {key} 1, .* open the GRIB file itself"):
        wind.conform(content, "a.nc")


def test_a_depth_of_water_is_no_direction():
    both = named(["ws", "wd"], {}, {"units": "m", "long_name": "water depth"})
    assert [*wind.conform(both, "a.nc").data_vars] == ["wind_speed"]


@pytest.mark.parametrize(("speed", "direction"), [("wspd", "dir"), ("ff", "dd"), ("ws", "wd")])
@pytest.mark.parametrize("unit", ["degree", "degrees_true", "radian"])
def test_a_direction_is_taken_under_the_short_names_of_centres(speed, direction, unit):
    """`dir` beside a speed was left out without a word, so was `wd` in radians."""
    size = np.pi / 180 if unit == "radian" else 1
    degrees = np.degrees(np.arctan2(-U, -V)) % 360
    both = named((speed, direction), {}, {"units": unit}, fields=(np.hypot(U, V), degrees * size))
    found = wind.conform(both, "a.nc")
    np.testing.assert_allclose(found.eastward_wind, U, atol=1e-4)
    np.testing.assert_allclose(found.northward_wind, V, atol=1e-4)
    both[direction].attrs["units"] = "tens of degrees"
    with pytest.raises(ValueError, match="must be degree or radian"):
        wind.conform(both, "a.nc")


def test_a_direction_beside_components_is_of_something_else():
    waves = named(("u10", "v10", "dir"), {}, {}, {"units": "degree"}, fields=(U, V, V))
    assert "wind_from_direction" not in wind.conform(waves, "a.nc")
    forest = named(("u10", "v10", "ff"), {}, {}, {"units": "1"}, fields=(U, V, V))
    np.testing.assert_allclose(wind.conform(forest, "a.nc").wind_speed, np.hypot(U, V), rtol=1e-5)


@pytest.mark.parametrize("end", ["_member1", "_mem02", "_ens_3", "member4"])
def test_members_that_are_variables_of_their_own_are_told(end):
    names = ("u10", "v10", f"u10{end}", f"v10{end}")
    found = wind.conform(named(names, *[{}] * 4, fields=(U, V, 2 * U, 2 * V)), "ensemble.nc")
    assert np.array_equal(found.eastward_wind, U)
    assert f"u10{end} passed over: it is a member of u10; join" in found.attrs["changes"]
    with pytest.raises(ValueError, match=f"no wind among .*u10{end} passed over: it is a member"):
        wind.conform(named(names[2:], {}, {}), "ensemble.nc")


@pytest.mark.parametrize("name", ["dd", "dir", "drct"])
def test_what_has_other_axes_than_the_speed_is_no_direction_of_it(name):
    content = named(("wspd",), {}, fields=(np.abs(U),))
    assert [*wind.conform(content.assign({name: ("time", [31])}), "days.nc")] == ["wind_speed"]
