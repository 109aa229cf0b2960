"""Files that hold more than one wind: members, leads, kinds of level, names of other tools."""

import numpy as np
import pytest
import xarray as xr

from sciml import wind

TIME = np.array(["2020-01-01T00", "2020-01-01T06"], "datetime64[ns]")
PLACES = {"lat": ("lat", [50.0, 51.0, 52.0]), "lon": ("lon", [5.0, 6.0, 7.0, 8.0])}
SHAPE = (3, 4)


def field(*shape, **attrs):
    """Values that tell all points apart."""
    values = np.arange(np.prod((*shape, *SHAPE)), dtype="float32").reshape(*shape, *SHAPE) / 10
    return values, {"units": "m/s", **attrs}


def stored(tmp_path, dims, sizes, coords, names=("u10", "v10"), **attrs):
    """Write both components on these leading axes."""
    values, said = field(*sizes, **attrs)
    content = {name: ((*dims, "lat", "lon"), values, said) for name in names}
    path = tmp_path / "file.nc"
    xr.Dataset(content, coords=PLACES | coords).to_netcdf(path, engine="h5netcdf")
    return path, values


def test_members_stay_as_an_axis_or_one_is_taken(tmp_path):
    path, values = stored(tmp_path, ("number", "time"), (3, 2), {"time": TIME, "number": [0, 4, 9]})
    found = wind.open(path)
    assert found.x_wind.dims == ("time", "member", "y", "x")
    np.testing.assert_array_equal(found.x_wind[:, 1], values[1])
    np.testing.assert_array_equal(wind.open(path, member=9).x_wind, values[2])
    with pytest.raises(ValueError, match="has the members 0, 4, 9, not 1"):
        wind.open(path, member=1)
    with pytest.raises(ValueError, match="is on members 0, 4, 9; take one"):
        wind.channels(found, ("wind_speed",))


def test_times_are_those_for_which_fields_are_valid(tmp_path):
    one = {"time": TIME[0], "step": ("step", [3.0, 6.0], {"units": "hours"})}
    path, values = stored(tmp_path, ("step",), (2,), one)
    found = wind.open(path)
    np.testing.assert_array_equal(found.time, TIME[0] + np.array([3, 6], "timedelta64[h]"))
    np.testing.assert_array_equal(found.x_wind, values)
    many = {"time": TIME, "step": ("step", [3.0, 6.0], {"units": "hours"})}
    path, values = stored(tmp_path, ("time", "step"), (2, 2), many)
    with pytest.raises(ValueError, match="2 starts of forecasts and 2 leads; name one lead"):
        wind.open(path)
    found = wind.open(path, lead_h=6.0)
    np.testing.assert_array_equal(found.time, TIME + np.timedelta64(6, "h"))
    np.testing.assert_array_equal(found.x_wind, values[:, 1])
    with pytest.raises(ValueError, match=r"has no lead_h=9; it has 3, 6"):
        wind.open(path, lead_h=9.0)
    scalar = {"time": ("time", TIME, {"standard_name": "forecast_reference_time"}), "step": 12.0}
    path, _ = stored(tmp_path, ("time",), (2,), scalar)
    np.testing.assert_array_equal(wind.open(path).time, TIME + np.timedelta64(12, "h"))


@pytest.mark.parametrize(
    "beside",
    [
        {"time": ("time", TIME), "forecast_reference_time": TIME[0]},
        {"time": ("time", TIME, {"standard_name": "time"})},
    ],
)
@pytest.mark.parametrize("period", [6.0, ("time", [6.0, 12.0])])
def test_the_time_of_cf_is_that_of_validity_already(tmp_path, beside, period):
    attrs = {"units": "hours", "standard_name": "forecast_period"}
    period = (*period, attrs) if isinstance(period, tuple) else ((), period, attrs)
    path, _ = stored(tmp_path, ("time",), (2,), beside | {"forecast_period": period})
    np.testing.assert_array_equal(wind.open(path).time, TIME)


def test_what_does_not_say_whether_it_is_a_start_is_refused(tmp_path):
    path, _ = stored(tmp_path, ("time",), (2,), {"time": TIME, "step": 12.0})
    with pytest.raises(ValueError, match="does not say whether time is the start"):
        wind.open(path)
    path, _ = stored(tmp_path, ("time",), (2,), {"time": TIME, "step": 0.0})
    np.testing.assert_array_equal(wind.open(path).time, TIME)
    months = {"time": TIME[0], "step": ("step", [1.0, 2.0], {"units": "months"})}
    path, _ = stored(tmp_path, ("step",), (2,), months)
    with pytest.raises(ValueError, match=r"the unit of step of .* is 'months'"):
        wind.open(path)


@pytest.mark.parametrize(
    ("unit", "per_hour"), [("seconds", 3600.0), ("minutes", 60.0), ("days", 1 / 24)]
)
def test_leads_in_other_units(tmp_path, unit, per_hour):
    steps = np.array([3.0, 6.0]) * per_hour
    one = {"time": TIME[0], "step": ("step", steps, {"units": unit})}
    path, _ = stored(tmp_path, ("step",), (2,), one)
    np.testing.assert_array_equal(
        wind.open(path).time, TIME[0] + np.array([3, 6], "timedelta64[h]")
    )


@pytest.mark.parametrize(
    ("names", "height_m"),
    [
        (("UGRD_10maboveground", "VGRD_10maboveground"), 10.0),
        (("ugrd10m", "vgrd10m"), 10.0),
        (
            ("u-component_of_wind_height_above_ground", "v-component_of_wind_height_above_ground"),
            None,
        ),
    ],
)
def test_names_that_tools_write(tmp_path, names, height_m):
    path, values = stored(tmp_path, ("time",), (2,), {"time": TIME}, names)
    found = wind.open(path)
    np.testing.assert_array_equal(found.x_wind, values)
    assert found.x_wind.attrs.get("height_m") == height_m


def test_an_axis_of_one_height_by_another_tool(tmp_path):
    height = {"height_above_ground1": ("height_above_ground1", [10.0], {"units": "m"})}
    names = ("u-component_of_wind_height_above_ground", "v-component_of_wind_height_above_ground")
    path, values = stored(
        tmp_path, ("time", "height_above_ground1"), (2, 1), {"time": TIME} | height, names
    )
    found = wind.open(path)
    np.testing.assert_array_equal(found.x_wind, values[:, 0])
    assert found.x_wind.attrs["height_m"] == 10.0


@pytest.mark.parametrize(
    "attrs",
    [
        {"cell_methods": "realization: standard_deviation"},
        {"standard_name": "eastward_wind standard_error"},
        {"standard_name": "wind_speed_of_gust"},
        {"standard_name": "surface_eastward_stress"},
    ],
)
def test_what_is_no_wind_is_none(tmp_path, attrs):
    path, _ = stored(tmp_path, ("time",), (2,), {"time": TIME}, **attrs)
    with pytest.raises(ValueError, match="has no wind among"):
        wind.open(path)


def test_variables_may_be_named(tmp_path):
    path, _ = stored(tmp_path, ("time",), (2,), {"time": TIME}, ("u10", "v10", "u100", "v100"))
    assert wind.open(path, variable=["u100", "v100"]).x_wind.attrs["height_m"] == 100.0
    with pytest.raises(ValueError, match=r"variable 'u50' of .* is not there; there are u10"):
        wind.open(path, variable="u50")


@pytest.mark.parametrize(("unit", "given"), [("Pa", [50000.0, 85000.0]), ("hPa", [500.0, 850.0])])
def test_pressures_are_in_hectopascals(tmp_path, unit, given):
    axis = {"level": ("level", given, {"units": unit})}
    path, values = stored(tmp_path, ("time", "level"), (2, 2), {"time": TIME} | axis)
    np.testing.assert_array_equal(wind.open(path, pressure_hpa=850.0).x_wind, values[:, 1])


def test_heights_in_kilometres_are_metres(tmp_path):
    axis = {"height": ("height", [0.01, 0.1], {"units": "km"})}
    path, values = stored(tmp_path, ("time", "height"), (2, 2), {"time": TIME} | axis)
    np.testing.assert_array_equal(wind.open(path, height_m=100.0).x_wind, values[:, 1])
    bad = {"height": ("height", [1.0, 2.0], {"units": "furlongs"})}
    path, _ = stored(tmp_path, ("time", "height"), (2, 2), {"time": TIME} | bad)
    with pytest.raises(ValueError, match=r"the unit of height of .*file.nc is 'furlongs'"):
        wind.open(path)
