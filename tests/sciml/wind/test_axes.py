"""Axes that say little or contradict: other points of one component, levels and times as text."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from sciml import wind
from sciml.downscale.pool import labelled

DRAWN = np.random.default_rng(0).normal(5, 2, (2, 2, 6, 7)).astype(np.float32)
LATITUDES, LONGITUDES = np.linspace(50, 51, 6), np.linspace(5, 6, 7)
TIMES = np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
ON = ("time", "lat", "lon")


def winds(on=ON, fields: Any = DRAWN, **coords):
    """Both components, the second on these axes."""
    known = {
        "time": TIMES,
        "lat": ("lat", LATITUDES, {"units": "degrees_north"}),
        "lon": ("lon", LONGITUDES, {"units": "degrees_east"}),
    }
    unit = {"units": "m s-1"}
    both = {"u10": (ON, fields[0], unit), "v10": (on, fields[1], unit)}
    return xr.Dataset(both, known | coords)


def opened(content, **choice):
    return wind.conform(content, "a.nc", wind.Level(**choice))


@pytest.mark.parametrize(
    ("axis", "values", "attrs"),
    [
        ("lat_0", LATITUDES + 0.1, {"units": "degrees_north", "axis": "Y"}),
        ("lat_0", LATITUDES[::-1], {"units": "degrees_north", "axis": "Y"}),
        ("lon_0", LONGITUDES + 0.1, {"units": "degrees_east", "axis": "X"}),
        ("time1", TIMES + np.timedelta64(1, "D"), {}),
    ],
)
def test_components_on_other_points_than_each_other_are_refused(axis, values, attrs):
    on = tuple(axis if dim == axis.rstrip("_01") else dim for dim in ON)
    content = winds(on, **{axis: (axis, values, attrs)})
    with pytest.raises(ValueError, match=rf"in a\.nc v10 is on {axis}, whose points are not those"):
        opened(content)


def test_axes_of_their_own_with_the_same_points_are_one():
    content = winds(("time1", "lat", "lon"), time1=TIMES)
    assert np.array_equal(opened(content).y_wind, DRAWN[1])
    back = winds(("time1", "lat", "lon"), [DRAWN[0], DRAWN[1][::-1]], time1=TIMES[::-1])
    assert np.array_equal(opened(back).y_wind, DRAWN[1])


def test_relief_on_other_points_is_left_aside():
    content = winds(lat_0=("lat_0", LATITUDES[::-1], {"units": "degrees_north", "axis": "Y"}))
    content["orog"] = ("lat_0", "lon"), DRAWN[0, 0], {"units": "m"}
    found = opened(content)
    assert "orography" not in found
    assert "orog passed over: orog is on lat_0, whose" in found.attrs["changes"]
    content["orog"] = "station", np.ones(3), {"units": "m"}
    assert "orog passed over: its axes are station" in opened(content).attrs["changes"]


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("level", np.array(["10 m", "100 m"], dtype=object), "level of a.nc holds '10 m', no numb"),
        ("lev", np.array([59.0, 60.0]), "lev of a.nc is 59, 60 of no unit, which may be model lev"),
    ],
)
def test_levels_of_text_or_of_no_unit_are_refused(name, values, said):
    content = winds().expand_dims({name: 2}).assign_coords({name: (name, values)})
    with pytest.raises(ValueError, match=said):
        opened(content)


def test_levels_of_no_unit_are_pressures_where_reanalyses_have_them():
    content = winds().expand_dims(level=2).assign_coords(level=[850, 1000])
    assert "pressure" in opened(content).x_wind.dims


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        (["2020-01-01", "2020-01-02"], None, "time of a.nc holds '2020-01-01', which is text"),
        ([20200101.0, 20200101.5], "day as %Y%m%d.%f", "the unit of time of a.nc is 'day as"),
        ([2020010100, 2020010106], None, "time of a.nc begins at 2020010100 of no unit"),
    ],
)
def test_times_that_are_no_dates_are_refused(values, unit, said):
    attrs = {} if unit is None else {"units": unit}
    content = winds().assign_coords(time=("time", np.array(values), attrs))
    with pytest.raises(ValueError, match=said):
        opened(content)


def test_times_in_a_unit_of_their_own_become_hours():
    content = winds().assign_coords(time=("time", np.array([0.0, 7200.0]), {"units": "s"}))
    assert opened(content).time.values.tolist() == [0.0, 2.0]


def test_directions_counted_from_east_are_refused():
    content = winds().rename(u10="wind_speed", v10="wind_direction")
    content["wind_direction"].attrs = {
        "units": "degrees",
        "long_name": "counterclockwise from east",
    }
    with pytest.raises(ValueError, match="clockwise from north: convert it to 270 - angle"):
        opened(content)


def test_an_axis_of_one_point_that_is_none_of_ours_is_left_out():
    content = winds().expand_dims(expver=[1])
    assert opened(content).x_wind.dims == ("time", "y", "x")


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("altitude", {"units": "m"}),
        ("height", {"units": "m", "standard_name": "altitude"}),
        ("height", {"units": "m", "long_name": "height above mean sea level"}),
    ],
)
@pytest.mark.parametrize("single", [False, True])
def test_heights_above_the_sea_are_none_above_the_ground(name, attrs, single):
    content = winds().expand_dims({name: 2}).transpose("time", name, "lat", "lon")
    content = content.assign_coords({name: (name, [100.0, 500.0], attrs)})
    content = content.isel({name: 0}) if single else content
    with pytest.raises(ValueError, match=f"{name} of a.nc is a height above the sea"):
        opened(content)
    assert "wind_speed" in opened(content.drop_vars(name) if single else winds())


@pytest.mark.parametrize(("unit", "metres"), [("m", 1.0), ("km", 1000.0), ("ft", 0.3048)])
def test_a_single_height_is_in_its_unit(unit, metres):
    content = winds().rename(u10="u", v10="v").assign_coords(height=((), 2.0, {"units": unit}))
    assert opened(content).eastward_wind.attrs["height_m"] == pytest.approx(2.0 * metres)


def dated_beside(path, dim="time", dates=("date",), own=None):
    """A file of three times whose dates lie in variables beside its axis."""
    lat, lon = ("lat", [50.0, 51.0], {"units": "degrees_north"}), ("lon", [5.0, 6.0, 7.0])
    fields = {n: ((dim, "lat", "lon"), np.ones((3, 2, 3)), {"units": "m s-1"}) for n in "uv"}
    hours = {"units": "hours since 2020-01-01"}
    beside = {name: (dim, [0.0 + i, 6.0 + i, 12.0 + i], hours) for i, name in enumerate(dates)}
    coords = {"lat": lat, "lon": (*lon, {"units": "degrees_east"})} | ({dim: own} if own else {})
    xr.Dataset(fields | beside, coords).to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize("own", [None, [0, 1, 2]], ids=["no numbers", "numbers"])
@pytest.mark.parametrize("dim", ["time", "record"])
def test_dates_beside_the_axis_of_time_are_read(tmp_path, dim, own):
    winds = wind.open(dated_beside(tmp_path / "a.nc", dim, own=own))
    assert winds.time.values[1] == np.datetime64("2020-01-01T06")
    assert f"dates of date read along {dim}" in winds.attrs["changes"]
    both = wind.open(dated_beside(tmp_path / "b.nc", dim, ("forecast_reference_time", "date")))
    assert np.array_equal(both.time.values, winds.time.values + np.timedelta64(1, "h"))


@pytest.mark.parametrize("name", ["date", "valid_time"])
def test_axes_of_leads_and_months_keep_what_they_count(name):
    leads = np.array([0, 6], "m8[h]")
    assert np.array_equal(opened(forecast(name)).time.values, TIMES[0] + leads)
    months = winds().drop_vars("time").rename(time="month")
    months = months.assign_coords(month=[1, 2]).assign({name: ("month", TIMES)})
    assert opened(months).month.values.tolist() == [1, 2]


def forecast(name):
    """A forecast from one start, its leads an axis, beside which stands when they are valid."""
    start = winds().drop_vars("time").rename(time="step").assign_coords(time=TIMES[0])
    start = start.assign_coords(step=("step", [0.0, 6.0], {"units": "hours"}))
    return start.assign_coords({name: ("step", TIMES[0] + np.array([0, 6], "m8[h]"))})


def test_what_says_that_it_is_the_time_is_taken_of_several():
    content = winds().drop_vars("time").assign(made=("time", TIMES - np.timedelta64(1, "D")))
    content = content.assign(date=("time", TIMES, {"standard_name": "time"}))
    assert np.array_equal(opened(content).time.values, TIMES)


def test_dates_that_are_several_or_none_are_told(tmp_path, caplog):
    assert "time" not in wind.open(dated_beside(tmp_path / "a.nc", dates=("start", "end"))).coords
    assert "there are no dates" in warned(caplog)
    assert "start, end hold dates along it: name one, .assign_coords(time=…)" in warned(caplog)
    caplog.clear()
    wind.open(dated_beside(tmp_path / "b.nc", dates=()), lazy=True)
    assert "there are no dates" in warned(caplog)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("axis", ["latitude", "longitude"])
def test_a_row_that_is_missing_is_told_where_a_file_is_opened(tmp_path, caplog, axis, lazy):
    content = winds(lat=("lat", [50.0, 50.25, 50.5, 51.0, 51.25, 51.5], {"units": "degrees_north"}))
    if axis == "longitude":
        content = winds(lon=("lon", [5.0, 6, 7, 9, 10, 11, 12], {"units": "degrees_east"}))
    wind_of = wind.open(stored(content, tmp_path / "a.nc"), lazy=lazy)
    assert wind_of.sizes["time"] == 2
    assert f"{axis} is not evenly spaced: " in warned(caplog)
    assert "after index 2" in warned(caplog)
    caplog.clear()
    wind.open(stored(winds(), tmp_path / "b.nc"), lazy=lazy)
    assert not warned(caplog)


def warned(caplog):
    return "; ".join(r.getMessage() for r in caplog.records if r.levelname == "WARNING")


def stored(content, path):
    content.to_netcdf(path, engine="h5netcdf")
    return path


def test_a_row_that_is_missing_is_told_where_training_takes_fields(caplog):
    north = np.array([50.0, 50.25, 50.5, 51.0, 51.25, 51.5])
    field = wind.conform(winds(), "a.nc").wind_speed
    assert labelled(field).shape == labelled(field.values).shape == (2, 1, 6, 7)
    assert not warned(caplog)
    labelled(field.assign_coords(latitude=("y", north)))
    assert "latitude is not evenly spaced: 0.5 after index 2" in warned(caplog)
