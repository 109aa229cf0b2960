"""What is scored and matched is of one time, level and kind of place, or it is told."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from sciml import wind
from sciml.downscale.apply import predict
from sciml.downscale.commands import factor_of
from sciml.downscale.comparison import scores

HOURS = np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(1, "h")
SECOND = np.timedelta64(1, "s")


@pytest.fixture(scope="module")
def truth():
    drawn = wind.gaussian(seed=0, snapshots=4, n=16)
    return drawn[["x_wind"]].assign_coords(time=HOURS)


@pytest.fixture(scope="module")
def guess(truth):
    return truth.assign(x_wind=truth.x_wind + 0.1 * np.arange(4)[:, None, None])


def later(winds, seconds):
    return winds.assign_coords(time=winds.time.values + seconds * SECOND)


def counted(winds, unit, step=1.0):
    return winds.assign_coords(time=("time", step * np.arange(4), {"units": unit}))


def test_times_a_few_seconds_apart_count_as_one_only_where_it_is_said(truth, guess, caplog):
    known = scores(guess, truth, 4)
    for seconds in (3, 1800):
        with pytest.raises(ValueError, match=rf"lacks . times .* its nearest is {seconds} s away"):
            scores(later(guess, seconds), truth, 4)
    pd.testing.assert_frame_equal(scores(later(guess, 3), truth, 4, tolerance_h=0.01), known)
    assert "times of prediction and truth differ by up to 3 s" in caplog.text
    coarse = later(wind.coarser(truth, 4), -5)
    pd.testing.assert_frame_equal(scores(guess, truth, 4, coarse, tolerance_h=0.01), known)
    with pytest.raises(ValueError, match="the coarse wind lacks 4 times"):
        scores(guess, truth, 4, coarse)
    with pytest.raises(
        ValueError, match="two times of the prediction are next to one of the truth"
    ):
        half = guess.assign_coords(time=HOURS[0] + np.arange(4) * 1800 * SECOND)
        scores(half, truth, 4, tolerance_h=0.6)
    with pytest.raises(ValueError, match="tolerance_h is -1"):
        scores(guess, truth, 4, tolerance_h=-1.0)


def test_times_in_any_order_and_rounded_are_the_same(truth, guess):
    known = scores(guess, truth, 4)
    pd.testing.assert_frame_equal(scores(guess, truth.isel(time=[2, 0, 3, 1]), 4), known)
    tenths = counted(truth, "h", 0.1)
    rounded = guess.assign_coords(time=tenths.time.astype("f4"))
    pd.testing.assert_series_equal(scores(rounded, tenths, 4)["rmse_m_s"], known["rmse_m_s"])


def test_hours_are_compared_in_their_units(truth, guess):
    """Days 0, 1, 2 were scored against hours 0, 1, 2."""
    known = scores(guess, truth, 4)["rmse_m_s"]
    seconds = scores(counted(guess, "s", 3600.0), counted(truth, "h"), 4)["rmse_m_s"]
    pd.testing.assert_series_equal(seconds, known)
    with pytest.raises(ValueError, match="lacks 3 times of the prediction, the first 24"):
        scores(counted(guess, "days"), counted(truth, "h"), 4)
    with pytest.raises(ValueError, match="the calendars of the truth and the prediction differ"):
        scores(guess, counted(truth, "h"), 4)


def test_times_of_which_one_has_no_dates_are_told(truth, guess, caplog):
    scores(guess, truth.drop_vars("time"), 4)
    assert "not both prediction and truth have dates: times are taken in order" in caplog.text
    with pytest.raises(ValueError, match="4 times of the prediction and 3 of the truth"):
        scores(guess, truth.drop_vars("time").isel(time=slice(3)), 4)


@pytest.mark.parametrize("use", ["scores", "matched"])
def test_another_height_is_told(truth, guess, use, caplog):
    """Wind of 10 m was scored against that of 100 m without a word."""
    low, high = (
        part.assign(x_wind=part.x_wind.assign_attrs(height_m=at))
        for part, at in ((guess, 10.0), (truth, 100.0))
    )
    if use == "scores":
        scores(low, high, 4)
    else:
        wind.matched(wind.coarser(low, 4), high, 4, ("x_wind",))
    assert "x_wind is at height_m 10.0 in the" in caplog.text


def test_places_in_kilometres_are_places(truth, guess):
    far = truth.assign_coords(x=("x", truth.x.values / 1e3 + 500, {"units": "km"}))
    with pytest.raises(ValueError, match="differ in x by up to 500000 m"):
        scores(guess.assign_coords(x=truth.x.assign_attrs(units="m")), far, 4)


NOISY = {"x_wind": lambda w: w.x_wind + np.random.default_rng(0).normal(0, 0.1, w.x_wind.shape)}
OTHER_COARSE = {
    "ratio of spreads 3.60": lambda near: near * 3.6,
    "their correlation must be": lambda near: near.assign(
        x_wind=near.x_wind.copy(data=near.x_wind.values[:, ::-1])
    ),
    "must be covered": lambda near: near.where(near.x < near.x[5]),
    "shift along y and x": lambda near: near.assign_coords(x=near.x - 0.4 * near.x[1].item()),
}


@pytest.fixture(scope="module")
def wide():
    drawn = wind.gaussian(seed=0, snapshots=4, n=64)[["x_wind"]].assign_coords(time=HOURS)
    return drawn.assign_coords(y=drawn.y.assign_attrs(units="m"), x=drawn.x.assign_attrs(units="m"))


@pytest.mark.parametrize("said", OTHER_COARSE)
def test_a_coarse_wind_of_other_weather_is_told(wide, said, caplog):
    """Beside one in km/h every prediction had a skill of 99.99 %, without a word."""
    near = wind.coarser(wide, 4)
    with xr.set_options(keep_attrs=True):
        other = OTHER_COARSE[said](near)
    scores(wide.assign(NOISY), wide, 4, near)
    assert not caplog.text
    scores(wide.assign(NOISY), wide, 4, other)
    assert said in caplog.text


def test_a_prediction_that_lies_half_a_cell_aside_is_told(wide, caplog):
    step = float(wide.x[1] - wide.x[0])
    scores(wide.assign_coords(x=wide.x + 0.4 * step), wide, 4)
    assert not caplog.text
    scores(wide.assign_coords(x=wide.x + 0.6 * step), wide, 4)
    assert "more than half of a fine cell" in caplog.text


def test_what_the_coarse_wind_lacks_is_not_scored(caplog):
    whole = wind.conform(wind.gaussian(seed=0, snapshots=4, n=16), "a test")
    near = wind.coarser(whole, 4)
    assert {*scores(whole, whole, 4, near[["wind_speed"]]).variable} == {"wind_speed"}
    assert "x_wind, y_wind is not scored: the coarse wind has wind_speed" in caplog.text
    with pytest.raises(ValueError, match="the coarse wind has y_wind, and none of x_wind"):
        scores(whole[["x_wind"]], whole, 4, near[["y_wind"]])


ONE_TIME = {
    "scores": lambda one, fine: scores(one, one, 4),
    "matched": lambda one, fine: wind.matched(one, fine, 4, ("x_wind",)),
    "onto_blocks": lambda one, fine: wind.onto_blocks(one, fine, 4),
    "check": lambda one, fine: wind.check(one),
    "decorrelation_h": lambda one, fine: wind.decorrelation_h(one.x_wind),
    "predict": lambda one, fine: predict(None, one),
}


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("use", ONE_TIME)
def test_one_field_without_an_axis_of_time_is_told(truth, use):
    """It ended in an IndexError or a KeyError."""
    with pytest.raises(ValueError, match=r"expand_dims\('time'\)"):
        ONE_TIME[use](truth.isel(time=0), truth)


def test_an_axis_that_is_none_of_ours_is_told(truth):
    with pytest.raises(ValueError, match=r"of lead take one, as \.isel\(lead=0\)"):
        scores(truth, truth.expand_dims(lead=[1, 2]), 4)


def test_a_factor_that_was_not_that_of_the_prediction_is_refused(truth):
    with pytest.raises(ValueError, match="of which 3 is no divisor"):
        scores(truth, truth, 3)
    with pytest.raises(ValueError, match="factor is 2; the prediction was refined 4-fold"):
        factor_of(truth.assign_attrs(refinement_factor=4), 2)


@pytest.mark.parametrize("use", ["scores", "matched"])
def test_a_mean_over_time_beside_moments_is_told(use, caplog):
    """Hourly means were scored, and matched, against moments without a word."""
    fine = wind.conform(wind.gaussian(seed=0, snapshots=4, n=32), "a test")
    fine = fine.assign_coords(time=HOURS)
    fine["x_wind"].attrs["cell_methods"] = "area: point time: mean (interval: 1 hour)"
    fine["y_wind"].attrs["GRIB_stepType"] = "avg"  # as cfgrib says it
    means = wind.conform(fine.drop_vars("wind_speed"), "means")
    for name in ("x_wind", "y_wind"):
        assert means[name].attrs["cell_methods"] == "time: mean"
    assert "cell_methods" not in means.wind_speed.attrs  # no mean of speeds
    moments = wind.conform(wind.gaussian(seed=0, snapshots=4, n=32), "a test")
    moments = moments.assign_coords(time=HOURS)

    def run(one, other):
        if use == "scores":
            scores(one, other, 4)
        else:
            wind.matched(wind.coarser(one, 4), other, 4)

    run(means, means)
    assert "is a mean over time" not in caplog.text
    run(means, moments)
    of = "the prediction" if use == "scores" else "the coarse wind"
    assert f"x_wind is a mean over time in {of} (time: mean)" in caplog.text


STATIONS = xr.Dataset(
    {"x_wind": (("station", "time"), np.zeros((3, 4)), {"units": "m s-1"})}, {"time": HOURS}
)
USES = {
    "truth": lambda fine: scores(fine, STATIONS, 4),
    "coarser": lambda _: wind.coarser(STATIONS, 4),
    "fine": lambda fine: wind.matched(wind.coarser(fine, 4), STATIONS, 4),
    "coarse": lambda fine: wind.matched(STATIONS, fine, 4),
    "onto_blocks": lambda fine: wind.onto_blocks(STATIONS, fine, 4),
    "check": lambda _: wind.check(STATIONS),
    "series": lambda _: wind.decorrelation_h(STATIONS.x_wind),
    "channels": lambda _: wind.channels(STATIONS, ("x_wind",)),
}


@pytest.mark.parametrize("use", USES)
def test_stations_are_no_field(truth, use):
    """They ended in a KeyError of 'y', and a check of them found nothing."""
    with pytest.raises(ValueError, match=r"is on station.*; take a prediction at their places"):
        USES[use](truth)


def test_a_file_of_stations_is_refused_by_its_name(tmp_path):
    for part, dims in ((STATIONS, "'station', 'time'"), (STATIONS.isel(station=0), "'time',")):
        part.to_netcdf(tmp_path / "masts.nc", engine="h5netcdf")
        with pytest.raises(
            ValueError, match=rf"axes \({dims}\).*; stations and towers are no field"
        ):
            wind.open(tmp_path / "masts.nc")
