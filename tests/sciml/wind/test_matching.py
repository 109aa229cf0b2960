"""Two sources of one weather: matched in time and place, measured, corrected."""

from itertools import pairwise

import cftime
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml import wind
from sciml.wind.prepare.regrid import by_axes, edges, overlaps

FACTOR, HOUR = 4, np.timedelta64(1, "h")
START = np.datetime64("2020-01-01", "ns")
UNITS = {"latitude": "degrees_north", "longitude": "degrees_east"}


def weather(latitude, longitude, hours):
    """Wind of a few waves that move east, at any place and time (plain numbers, in m/s)."""
    y, x = np.radians(latitude), np.radians(longitude)
    t = np.asarray(hours, float)[:, None, None]
    waves = [(57.0, 33.0, 0.3), (-91.0, 48.0, 0.9), (23.0, -71.0, 2.2)]
    u = 3 + sum(3 * np.sin(a * y + b * x - 0.4 * t + c) for a, b, c in waves)
    v = -1 + sum(2 * np.cos(b * y - a * x + 0.3 * t + 2 * c) for a, b, c in waves)
    return u.astype(np.float32), v.astype(np.float32)


def opened(latitude, longitude, hours, change=lambda u, v: (u, v)):
    """Wind on a latitude–longitude grid as `wind.open` gives it."""
    u, v = change(*weather(*np.meshgrid(latitude, longitude, indexing="ij"), hours))
    content = xr.Dataset(
        {"u10": (("time", "lat", "lon"), u, {"units": "m s-1"}),
         "v10": (("time", "lat", "lon"), v, {"units": "m s-1"})},
        coords={"time": START + np.asarray(hours) * HOUR,
                "lat": ("lat", latitude, {"units": "degrees_north"}),
                "lon": ("lon", longitude, {"units": "degrees_east"})},
    )  # fmt: skip
    return wind.conform(content, "a test")


LAT, LON = 50 + 0.1 * np.arange(33), 5 + 0.1 * np.arange(42)  # 0.1° to be made of 0.4°
HOURS = [0, 1, 2, 3, 4, 5]


def fine():
    return opened(LAT, LON, HOURS)


def coarse(hours=HOURS, dlat=0.0, dlon=0.0, change=lambda u, v: (u, v)):
    return opened(49.3 + dlat + 0.43 * np.arange(13), 4.1 + dlon + 0.41 * np.arange(14), hours,
                  change)  # fmt: skip


def test_overlaps_of_straight_cells_keep_the_integral():
    source, target = edges(np.array([0.0, 1.0, 2.5, 5.0])), np.linspace(-1, 5, 5)
    weights = overlaps(source, target)
    lengths = np.diff(target)[:, None] * weights
    inside = [np.minimum(b, 5) - max(a, -1) for a, b in pairwise(source)]
    np.testing.assert_allclose(lengths.sum(axis=0), inside)  # each source cell is dealt out once
    field = np.arange(16.0).reshape(1, 4, 4)
    found = by_axes(weights[1:], weights[1:], field)[0]
    total = found.sum() * np.diff(target)[0] ** 2
    widths = lengths[1:].sum(axis=0)
    assert total == pytest.approx(widths @ field[0] @ widths, rel=1e-6)


@settings(deadline=None, max_examples=12)
@given(st.integers(2, 5), st.integers(0, 3), st.booleans())
def test_cells_that_are_blocks_come_back_as_they_are(factor, left, transposed):
    lat, lon = (50 + 0.1 * np.arange(4 * factor + left), 5 + 0.1 * np.arange(5 * factor))
    known = opened(lat, lon, [0])
    blocks = wind.coarser(known, factor)
    given_as = blocks.transpose("x", "y", "time") if transposed else blocks
    # Counted from another meridian, and in another order of variables.
    given_as = given_as.assign_coords(longitude=given_as.longitude - 360)
    found = wind.onto_blocks(given_as[list(given_as.data_vars)[::-1]], known, factor)
    for name in ("x_wind", "y_wind", "wind_speed"):
        np.testing.assert_allclose(found[name], blocks[name], atol=1e-5)
        assert found[name].dims == ("time", "y", "x")
    np.testing.assert_allclose(found.latitude, blocks.latitude)


def test_a_turned_grid_gets_its_own_components_and_a_constant_stays():
    y, x = np.meshgrid(np.arange(24.0) - 12, np.arange(24.0) - 12, indexing="ij")
    turn = 0.7
    latitude = 51.5 + 0.03 * (x * np.sin(turn) + y * np.cos(turn))
    longitude = 7 + 0.03 * (x * np.cos(turn) - y * np.sin(turn)) / np.cos(np.radians(latitude))
    ones = np.ones((1, 24, 24), np.float32)
    content = xr.Dataset(
        {n: (("time", "y", "x"), ones, {"units": "m s-1", "standard_name": n})
         for n in ("eastward_wind", "northward_wind")},
        coords={"time": [START], "latitude": (("y", "x"), latitude, {"units": UNITS["latitude"]}),
                "longitude": (("y", "x"), longitude, {"units": UNITS["longitude"]})},
    )  # fmt: skip
    known = wind.conform(content, "turned")
    found = wind.onto_blocks(coarse([0], change=lambda u, v: (0 * u + 3, 0 * v + 4)), known, 4)
    np.testing.assert_allclose(found.eastward_wind, 3, rtol=1e-5)
    along = 3 * np.cos(found.grid_angle) + 4 * np.sin(found.grid_angle)
    np.testing.assert_allclose(found.x_wind[0], along, rtol=1e-5)
    # Blocks of the turned grid see the same weather: the truth there is known.
    moved = wind.onto_blocks(opened(LAT[::2], LON[::2], [0]), known, 4)
    u, _ = weather(np.asarray(moved.latitude), np.asarray(moved.longitude), [0])
    assert np.abs(moved.eastward_wind.values - u).max() < 0.25 * u.std()


def test_a_grid_elsewhere_is_refused():
    with pytest.raises(ValueError, match=r"\(latitude 29.*\) does not cover the fine one"):
        wind.onto_blocks(coarse(dlat=-20.0), fine(), FACTOR)
    bare = fine().drop_vars(["latitude", "longitude"])
    with pytest.raises(ValueError, match="nothing tells how the coarse and the fine grid lie"):
        wind.onto_blocks(coarse(), bare, FACTOR)


def test_times_are_matched_by_what_they_say():
    pairs = wind.matched(coarse(HOURS[::-1]).sortby("time", ascending=False), fine(), FACTOR)
    assert pairs.agreement.times == (6, 6, 6)
    assert pairs.agreement.lag == 0
    np.testing.assert_array_equal(pairs.coarse.time, pairs.fine.time)
    some = wind.matched(coarse([-3, 0, 3, 6]), fine(), FACTOR)
    assert some.agreement.times == (2, 6, 4)
    np.testing.assert_array_equal(some.fine.time, START + np.array([0, 3]) * HOUR)
    half = coarse().assign_coords(time=fine().time + np.timedelta64(20, "m"))
    with pytest.raises(ValueError, match="within 0 h: name files of the same times, or a larger"):
        wind.matched(half, fine(), FACTOR)
    assert wind.matched(half, fine(), FACTOR, tolerance_h=0.4).agreement.times == (6, 6, 6)
    once = wind.matched(coarse([0, 3]), fine(), FACTOR, tolerance_h=10.0)
    np.testing.assert_array_equal(once.fine.time, START + np.array([0, 3]) * HOUR)


def test_other_calendars_and_dateless_wind_are_refused():
    stamps = [cftime.DatetimeNoLeap(2020, 1, 1, hour) for hour in HOURS]
    with pytest.raises(ValueError, match=r"calendars .* differ \(noleap, datetime64"):
        wind.matched(coarse().assign_coords(time=stamps), fine(), FACTOR)
    both = [part.assign_coords(time=stamps) for part in (coarse(), fine())]
    assert wind.matched(*both, FACTOR).agreement.times == (6, 6, 6)
    with pytest.raises(ValueError, match="the coarse wind has no dates"):
        wind.matched(coarse().drop_vars("time"), fine(), FACTOR)


def test_the_agreement_is_that_of_what_was_done_to_the_wind():
    plain = wind.matched(coarse(), fine(), FACTOR).agreement
    assert plain.correlation > 0.9
    assert max(map(abs, plain.shift_cells)) < 0.2
    # Coarse wind whose coordinates say it lies 0.2° (half a block) too far north.
    off = coarse().assign_coords(latitude=coarse().latitude + 0.2)
    found = wind.matched(off, fine(), FACTOR).agreement
    assert found.shift_cells[0] == pytest.approx(plain.shift_cells[0] - 0.5, abs=0.15)
    assert found.shift_cells[1] == pytest.approx(plain.shift_cells[1], abs=0.15)
    more = wind.matched(coarse(change=lambda u, v: (1.2 * u + 2, v - 1)), fine(), FACTOR).agreement
    np.testing.assert_allclose(np.divide(more.ratio, plain.ratio), [1.2, 1.0], rtol=0.01)
    assert more.bias_m_s[1] == pytest.approx(plain.bias_m_s[1] - 1, abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: coarse(change=lambda u, v: (u[:, ::-1], v[:, ::-1])),
            "coarse and fine wind disagree",
        ),
        (lambda: coarse().assign_coords(longitude=coarse().longitude + 0.9), "mend the coord"),
        (lambda: coarse(change=lambda u, v: (3.6 * u, 3.6 * v)), "mend the unit of one"),
        (lambda: coarse().assign_coords(time=coarse().time + 2 * HOUR).assign_coords(), "times"),
    ],
)
def test_wind_of_another_place_unit_or_time_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wind.matched(wrong(), opened(LAT, LON, range(8)), FACTOR)


def test_a_correction_makes_means_and_spreads_equal():
    pairs = wind.matched(coarse(change=lambda u, v: (1.3 * u + 2, v - 1)), fine(), FACTOR)
    correction = wind.fit_correction(pairs)
    shown = pairs.corrected_by(correction).shown()
    truth = wind.block_mean(np.asarray(pairs.fine.values), FACTOR)
    for channel in (0, 1):
        assert shown[:, channel].mean() == pytest.approx(float(truth[:, channel].mean()), abs=1e-3)
        assert shown[:, channel].std() == pytest.approx(float(truth[:, channel].std()), rel=1e-3)
    np.testing.assert_array_equal(pairs.shown(), pairs.coarse.values)
    with pytest.raises(ValueError, match="the correction is of"):
        pairs.corrected_by(wind.Correction(("wind_speed",), (1.0,), (0.0,)))


@pytest.mark.parametrize("columns", [16, 12, 8, 7, 2])
def test_what_the_coarse_wind_does_not_cover_is_said_or_refused(columns, caplog):
    fine = wind.gaussian(seed=0, snapshots=4, n=64).assign_coords(time=START + np.arange(4) * HOUR)
    part = wind.coarser(fine, 4).isel(x=slice(columns))
    if columns < 8:
        with pytest.raises(ValueError, match=rf"{columns / 16:.0%} of the blocks covered.*; at le"):
            wind.matched(part, fine, 4)
        assert wind.matched(part, fine, 4, strict=False).agreement.covered == columns / 16
        return
    pairs = wind.matched(part, fine, 4)
    assert np.isnan(pairs.coarse.values).mean() == 1 - columns / 16
    assert ("not covered, is left out" in caplog.text) == (columns < 16)
    holed = fine.where(fine.x <= fine.x[4 * columns - 1])  # of what nobody knows nothing is lacking
    assert wind.matched(part, holed, 4).agreement.covered == 1


def test_a_shift_of_half_a_cell_is_said(caplog):
    """Corners taken for centres passed as a line among others."""
    drawn = wind.gaussian(seed=0, snapshots=4, n=64)
    fine = drawn.assign_coords(
        time=np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(1, "h")
    )
    near = wind.coarser(fine, 4)
    wind.matched(near, fine, 4)
    assert "the shift is learned too" not in caplog.text
    corners = near.assign_coords(x=near.x + 0.5 * float(near.x[1] - near.x[0]))
    wind.matched(corners, fine, 4)
    assert "the shift is learned too" in caplog.text


def test_times_without_a_match_are_said(caplog):
    fine = wind.gaussian(seed=0, snapshots=4, n=64).assign_coords(time=START + np.arange(4) * HOUR)
    wind.matched(wind.coarser(fine, 4).isel(time=[0, 2]), fine, 4)
    assert "2 times matched of 4 fine" in caplog.text
