"""What `check` says of a dataset in which one thing is wrong."""

import sys

import numpy as np
import pytest
import xarray as xr

from sciml import wind


def good(times=4):
    values = np.random.default_rng(0).normal(5, 3, (2, times, 6, 9)).astype("float32")
    unit = {"units": "m s-1"}
    fields = {
        "wind_speed": np.hypot(*values),
        "x_wind": values[0],
        "y_wind": values[1],
    }
    hours = np.datetime64("2020-01-01T00", "ns") + np.arange(times) * np.timedelta64(1, "h")
    return xr.Dataset(
        {name: (("time", "y", "x"), value, unit) for name, value in fields.items()},
        coords={"time": hours, "y": 3e3 * np.arange(6), "x": 3e3 * np.arange(9)},
    )


def with_value(value, *at):
    winds = good()
    winds["x_wind"][at] = value
    return winds


def with_unit(unit):
    winds = good()
    winds["x_wind"].attrs["units"] = unit
    return winds


def with_speed(times):
    winds = good()
    winds["wind_speed"] = (winds["wind_speed"] * times).transpose("y", "x", "time")
    winds["wind_speed"].attrs["units"] = "m s-1"
    return winds.transpose("time", ...) if times > 2 else winds


def test_nothing_is_found_in_good_winds():
    report = wind.check(good(), factor=3)
    assert report.findings == ()
    assert report.good
    report.refuse()


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_gaps_are_counted_in_steps_of_the_file(hours):
    whole = good(8)
    start = whole["time"].values[0]
    whole["time"] = start + np.arange(8) * np.timedelta64(hours, "h")
    assert wind.check(whole).findings == ()
    (found,) = wind.check(whole.isel(time=[0, 1, 2, 5, 6])).findings
    assert (found.kind, found.text[:19]) == ("gap", "2 times are missing")


@pytest.mark.parametrize(
    ("winds", "kind", "fatal", "text"),
    [
        (with_unit("knots"), "unit", True, "the unit of x_wind is 'knots', not 'm s-1'"),
        (good().isel(y=slice(None, None, -1)), "order", True, "y does not ascend at index 1"),
        (good().isel(time=[0, 1, 1, 2]), "duplicate", True, "2020-01-01T01.* twice, at index 2"),
        (good().isel(time=[0, 2, 1, 3]), "time order", True, "time goes back at index 2"),
        (good(8).isel(time=[0, 1, 2, 5, 6]), "gap", False, r"2 times .*T02.* \(index 2\)"),
        (good().drop_vars("time"), "no dates", False, "cannot be split in time"),
        (with_value(np.nan, 2, 1, 3), "missing", True, r"'time': 2, 'y': 1, 'x': 3.*fill them"),
        (with_value(-np.inf, 0, 0, 0), "infinite", True, "x_wind has 1 infinite values"),
        (with_value(200.0, 3, 5, 8), "strong", True, r"'time': 3, 'y': 5, 'x': 8} \(200\)"),
        (good().assign_coords(x=np.arange(9.0) ** 2 + 1), "spacing", False, "not evenly spaced"),
        (good().drop_vars(["y_wind", "wind_speed"]), "component", False, "y_wind is not there"),
        (with_speed(1.9438), "strength", False, "1.94 times .*or is it a mean of speeds"),
        (with_speed(3.6), "strength", False, "3.60 times the length of x_wind and y_wind"),
        (with_speed(0.5144), "strength", True, "0.51 times .* is its unit or height another"),
        (good()[[]], "no wind", True, "there is none of wind_speed"),
    ],
)
def test_each_fault_is_named_with_its_place(winds, kind, fatal, text):
    report = wind.check(winds, origin="file.nc")
    assert [(f.kind, f.fatal) for f in report.findings] == [(kind, fatal)]
    assert report.good == (not fatal)
    with pytest.raises(AssertionError if not fatal else ValueError, match=text):
        report.refuse()
        raise AssertionError(str(report))
    assert "file.nc: 1 findings" in str(report)


@pytest.mark.parametrize(
    ("factor", "fatal", "text"),
    [(4, False, "drops the last 2 rows and 1 columns"), (7, True, "factor is 7 on a 6×9 grid")],
)
def test_a_factor_that_does_not_divide(factor, fatal, text):
    (finding,) = wind.check(good(), factor=factor).findings
    assert finding.fatal == fatal
    assert text in finding.text


def test_missing_seas_are_let_through_and_counted(monkeypatch):
    monkeypatch.setattr(sys.modules["sciml.wind.cf.check"], "SLAB_BYTES", 1)  # one time at once
    winds = good()
    for name in winds.data_vars:
        winds[name][:, 2:, 3] = np.nan
    report = wind.check(winds, allow_missing=True)
    assert report.good
    assert "x_wind has 16 missing values, always at the same points" in str(report)
    winds["x_wind"][1, 0, 0] = np.nan
    assert "x_wind has 17 missing values, at changing points" in str(wind.check(winds))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("latitude", 5100.0, "latitude is 5100 at index 1"),
        ("latitude", np.nan, "latitude is nan at index 1"),
        ("longitude", np.nan, "longitude is nan at index 1"),
        ("longitude", np.inf, "longitude is nan at index 1"),
        ("time", np.datetime64("NaT", "ns"), r"time 1 is no date \(NaT\)"),
    ],
)
def test_places_that_are_none_and_times_without_a_date_are_refused(name, value, said, tmp_path):
    lines = {
        "latitude": np.array([50.0, 50.1, 50.2]),
        "longitude": np.array([4.0, 4.2, 4.4]),
        "time": np.array(["2020-01-01T00", "2020-01-01T01"], "datetime64[ns]"),
    }
    lines[name] = lines[name].copy()
    lines[name][1] = value
    winds = xr.Dataset(
        {
            kind: (("time", "latitude", "longitude"), np.ones((2, 3, 3), "f4"), {"units": "m s-1"})
            for kind in ("eastward_wind", "northward_wind")
        },
        coords=lines,
    )
    for kind in winds.data_vars:
        winds[kind].attrs["standard_name"] = kind
    path = tmp_path / "wind.nc"
    winds.to_netcdf(path, engine="h5netcdf")
    for lazy in (False, True):
        with pytest.raises(ValueError, match=said):
            wind.open(path, lazy=lazy)
