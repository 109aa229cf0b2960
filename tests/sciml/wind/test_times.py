"""Times that are dates of any calendar or hours, whatever door they come in by, or a refusal."""

import datetime
import re

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sciml import wind
from sciml.downscale.between import check_even
from sciml.downscale.comparison import scores
from sciml.wind.cf.times import moments, refuse_twice

TIMES = np.datetime64("2020-01-01", "ns") + np.arange(8) * np.timedelta64(6, "h")
STAMPS = [pd.Timestamp(one) for one in TIMES]


def calendar(name, count=8):
    six = datetime.timedelta(hours=6)
    return np.array([cftime.datetime(2020, 2, 28, calendar=name) + six * k for k in range(count)])


NO_TIMES = {
    "text": (np.array([str(one)[:16] for one in TIMES]), "holds '2020-01-01T00:00', which is text"),
    "objects of text": (np.array([str(one) for one in STAMPS], object), "which is text"),
    "bytes": (np.array([str(one)[:16].encode() for one in TIMES]), "which is text"),
    "dates as numbers": (20200101 + np.arange(8), "begins at 20200101 of no unit"),
    "months as numbers": (202001 + np.arange(8), "begins at 202001 of no unit"),
    "days of a year": (2020001 + np.arange(8), "begins at 2020001 of no unit"),
    "years": (2000 + np.arange(8), "begins at 2000 of no unit, and may be a date"),
    "parts of a year": (2020 + np.arange(8) / 1460, "begins at 2020 of no unit"),
    "Julian days": (2458849.5 + np.arange(8) / 4, "begins at 2458849.5 of no unit"),
    "seconds": (1577836800 + 3600 * np.arange(8), "begins at 1577836800 of no unit"),
    "a number that lacks": (np.where(np.arange(8) == 3, np.nan, np.arange(8.0)), "3 is no number"),
    "a date that lacks": (
        np.where(np.arange(8) == 3, np.datetime64("NaT", "ns"), TIMES),
        "3 is no date",
    ),
    "nothing": (np.array([None] * 8, object), "0 is no date (None)"),
    "periods": (pd.period_range("2020", periods=8, freq="6h").astype(object), "no dates of one"),
    "two calendars": (
        np.concatenate([calendar("noleap", 4), calendar("360_day", 4)]),
        "no dates of one calendar",
    ),
    "complex": (np.arange(8) * 1j, "of type complex128: make dates"),
    "yes or no": (np.arange(8) > 3, "of type bool: make dates"),
}
UNDECODED = {"units": "days since 2020-01-01"}, {"units": "day as %Y%m%d"}


def content(times=TIMES, attrs=None):
    values = np.random.default_rng(0).normal(5, 2, (2, len(TIMES), 16, 16)).astype("f4")
    fields = {
        name: (("time", "lat", "lon"), one, {"units": "m s-1"})
        for name, one in zip(("u10", "v10"), values, strict=True)
    }
    line = 50 + 0.25 * np.arange(16)
    where = {"lat": ("lat", line, {"units": "degrees_north"})}
    where |= {"lon": ("lon", line, {"units": "degrees_east"})}
    return xr.Dataset(fields, where | {"time": ("time", times, attrs or {})})


def doors(times, attrs=None, beside=TIMES):
    """Every function that asks when fields are, by its name; pairs have other ones beside."""
    fields = wind.conform(content(), "a.nc").assign_coords(time=("time", times, attrs or {}))
    good = wind.conform(content(beside), "a.nc")
    return {
        "conform": lambda: wind.conform(content(times, attrs), "a.nc"),
        "check": lambda: wind.check(fields).refuse(),
        "split": lambda: wind.split(fields.wind_speed),
        "random split": lambda: wind.random_split(fields.wind_speed, insist=True),
        "decorrelation": lambda: wind.decorrelation_h(fields.wind_speed),
        "fine": lambda: wind.matched(wind.coarser(good, 4), fields, 4, strict=False),
        "coarse": lambda: wind.matched(wind.coarser(fields, 4), good, 4, strict=False),
        "score": lambda: scores(fields, fields, 4),
        "hours between": lambda: check_even(wind.channels(fields, ("x_wind", "y_wind"))),
    }


@pytest.mark.parametrize("which", sorted(NO_TIMES))
def test_what_is_no_time_is_refused_at_every_door(which):
    values, said = NO_TIMES[which]
    for name, door in doors(values).items():
        with pytest.raises(ValueError, match=re.escape(said)) as refused:
            door()
        assert "\n" not in str(refused.value), name


@pytest.mark.parametrize("attrs", UNDECODED, ids=lambda attrs: attrs["units"])
def test_numbers_of_a_unit_that_is_none_of_time_are_refused_at_every_door(attrs):
    for door in doors(np.arange(8), attrs).values():
        with pytest.raises(ValueError, match=f"is '{attrs['units']}', of which no date is made"):
            door()


@pytest.mark.parametrize(
    ("times", "attrs", "hours"),
    [
        (TIMES, None, 6),
        (np.array([one.to_pydatetime() for one in STAMPS], object), None, 6),
        (np.array([one.tz_localize("Europe/Zurich") for one in STAMPS], object), None, 6),
        (np.array([datetime.date(2020, 1, 1 + k) for k in range(8)], object), None, 24),
        (calendar("noleap"), None, 6),
        (calendar("360_day"), None, 6),
        (TIMES - TIMES[0], None, 6),
        (np.arange(8), None, 1),
        (438288 + np.arange(8), {"units": "hours"}, 1),
        (np.arange(8), {"units": "days"}, 24),
        (3600 * np.arange(8), {"units": "s"}, 1),
    ],
    ids=str,
)
def test_what_is_a_time_counts_the_same_at_every_door(times, attrs, hours):
    found = doors(times, attrs)
    found["check"]()
    assert found["decorrelation"]() == found["hours between"]() == hours
    assert len(found["score"]()) == 25
    fields = wind.conform(content(), "a.nc").assign_coords(time=("time", times, attrs or {}))
    assert wind.matched(wind.coarser(fields, 4), fields, 4).agreement.times == (8, 8, 8)
    conformed = found["conform"]()
    assert wind.decorrelation_h(conformed.wind_speed) == hours


def test_dates_with_a_zone_become_utc():
    summer = pd.date_range("2020-03-29", periods=3, freq="h", tz="Europe/Zurich")
    found = moments(xr.DataArray(np.array([*summer], object), dims="time", name="time"))
    assert np.array_equal(
        found, np.datetime64("2020-03-28T23") + np.arange(3) * np.timedelta64(1, "h")
    )


@pytest.mark.parametrize("kind", ["dates", "calendar", "hours"])
def test_forecasts_that_overlap_are_refused_where_one_time_is_asked_for(kind):
    line = {"dates": TIMES, "calendar": calendar("noleap"), "hours": np.arange(8.0)}[kind]
    for name, door in doors(np.concatenate([line[:4], line[2:6]]), None, line).items():
        if name == "conform":
            continue
        with pytest.raises(ValueError, match=r"is not later than|twice|goes back"):
            door()
    with pytest.raises(ValueError, match=r"mine has time .* twice, as where forecasts overlap"):
        refuse_twice(np.concatenate([line[:4], line[3:4]]), "mine")
    refuse_twice(line[::-1], "mine")


def test_times_that_go_forth_and_back_in_a_file_are_told(tmp_path, caplog):
    apart = np.timedelta64(3, "h")
    two = np.concatenate([TIMES[:4], TIMES[1:5] + apart])
    content(two).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    found = wind.open(tmp_path / "a.nc")
    assert (np.diff(found.time.values) > np.timedelta64(0, "ns")).all()
    assert "time goes back at index 4, as where forecasts of several starts" in caplog.text
    caplog.clear()
    content(TIMES[::-1]).to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    assert np.array_equal(wind.open(tmp_path / "b.nc").time.values, TIMES)
    assert "goes back" not in caplog.text
