"""Splits in time on a process whose correlation is known, and stripes of a snapshot."""

import itertools
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr

from sciml import estimator, models, train, wind
from sciml.downscale import comparison, sources
from sciml.wind.prepare.split import autocorrelation


def record(times=400, lasts_h=6.0, step_h=1.0):
    """First-order autoregressive noise at every point: r(lag) = exp(−lag / lasts)."""
    rng = np.random.default_rng(0)
    r = np.exp(-step_h / lasts_h)
    values = np.zeros((times, 12, 12))
    values[0] = rng.normal(size=(12, 12))
    for t in range(1, times):
        values[t] = r * values[t - 1] + np.sqrt(1 - r**2) * rng.normal(size=(12, 12))
    hours = np.arange(times) * np.timedelta64(round(3600 * step_h), "s")
    stamps = np.datetime64("2020-01-01", "ns") + hours
    return xr.DataArray(values, dims=("time", "y", "x"), coords={"time": stamps})


def test_the_decorrelation_time_of_a_known_process_is_found():
    assert autocorrelation(record())[3] == pytest.approx(np.exp(-0.5), abs=0.05)
    assert wind.decorrelation_h(record()) in (6, 7)
    assert wind.decorrelation_h(record(step_h=3.0)) in (6, 9)


def test_parts_are_consecutive_and_further_apart_than_the_weather_lasts():
    fields = record()
    cut = wind.split(fields)
    assert cut.gap_h == cut.decorrelation_h
    train, validation, test = cut.parts.values()
    for earlier, later in ((train, validation), (validation, test)):
        assert (np.diff(earlier) == 1).all()
        assert later[0] - earlier[-1] >= cut.gap_h
    assert len(train) == pytest.approx(0.7 * 390, abs=3)
    assert test[-1] == 399


def test_a_gap_in_the_record_counts_as_time():
    fields = record().isel(time=np.r_[0:200, 300:400])
    parts = wind.split(fields, {"train": 0.5, "test": 0.5}).parts
    stamps = fields.time.values
    apart = stamps[parts["test"][0]] - stamps[parts["train"][-1]]
    assert apart >= np.timedelta64(6, "h")


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        (record(), {"gap_h": 2.0}, "gap_h is 2 but speeds stay correlated for"),
        (record(times=8, lasts_h=60.0), {}, "too short|one situation"),
        (record(times=20), {"gap_h": 9.0}, "too short to be split"),
        (record(times=2), {}, "at least three dates; use stripes"),
        (record(), {"shares": {"train": 0.5, "test": 0.6}}, "positive and sum to 1"),
    ],
)
def test_dishonest_splits_in_time_are_refused(fields, options, message):
    with pytest.raises(ValueError, match=message):
        wind.split(fields, **options)


def test_a_random_split_of_hours_is_refused_unless_insisted_on():
    with pytest.raises(ValueError, match=r"stay correlated for \d h \(0\.8\d from one to the next"):
        wind.random_split(record())
    dealt = wind.random_split(record(), insist=True)
    everything = np.sort(np.concatenate(list(dealt.parts.values())))
    np.testing.assert_array_equal(everything, np.arange(400))
    far_apart = record(lasts_h=2.0, step_h=12.0)
    assert len(wind.random_split(far_apart).parts["train"]) == 280


def test_the_real_hours_are_as_correlated_as_was_published(shared):
    name = "arome_subset_16Nov2015.nc"
    fields = wind.open(shared / "data" / "wind" / "arome_metcoop_2p5km" / name).wind_speed
    assert autocorrelation(fields)[[1, 6]] == pytest.approx([0.89, 0.47], abs=0.03)
    with pytest.raises(ValueError, match=r"0\.89 from one to the next"):
        wind.random_split(fields)


def test_the_stripes_of_a_snapshot_are_those_of_the_readme():
    parts = wind.stripes(1799)
    columns = {
        part: np.concatenate([np.arange(s.start, s.stop) for s in slices])
        for part, slices in parts.items()
    }
    assert [len(parts[p]) for p in ("train", "validation", "test")] == [4, 2, 3]
    owner = np.full(1799, "", "U10")
    for part, inside in columns.items():
        assert (owner[inside] == "").all()
        owner[inside] = part
    used = np.flatnonzero(owner != "")
    for here, there in pairwise(used):
        assert owner[here] == owner[there] or there - here > 32
    assert parts["test"][1] == slice(8 * 128 + 16, 9 * 128 - 16)
    assert columns["train"][0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": (14,)}, r"hold 14 stripes of 128; numbers \[14\]"),
        ({"validation": (3,), "test": (3,)}, r"numbers \[3\]"),
        ({"gap": 128}, "gap below the width"),
    ],
)
def test_stripes_that_overlap_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        wind.stripes(1799, **options)


@pytest.mark.parametrize("columns", [1429, 1664, 1799, 3000, 440])
def test_stripes_of_a_source_fit_any_width(columns):
    parts = sources.cut_to(columns, sources.Source("a.nc", split="stripes"))
    assert all(parts[name] for name in ("train", "validation", "test"))
    every = sorted((s.start, s.stop, name) for name, cut in parts.items() for s in cut)
    for (_, end, before), (start, _, after) in itertools.pairwise(every):
        assert start - end == (sources.GAP if before != after else 0)
    assert every[-1][1] <= columns
    if columns >= 1664:
        assert parts == wind.stripes(columns)


def test_stripes_of_a_narrow_source_are_no_slivers():
    parts = sources.cut_to(429, sources.Source("a.nc", split="stripes"))
    assert min(s.stop - s.start for slices in parts.values() for s in slices) >= 64
    with pytest.raises(ValueError, match=r"divide it by times or columns$"):
        sources.cut_to(80, sources.Source("a.nc", split="stripes"))


def test_stripes_may_be_named_a_width_and_are_refused_where_they_are_too_thin():
    narrow = sources.Source("a.nc", split="stripes", width=60)
    assert all(sources.cut_to(300, narrow)[name] for name in ("train", "validation", "test"))
    with pytest.raises(
        ValueError, match=r"a\.nc has 200 columns: .* name a width between 32 and 50"
    ):
        sources.cut_to(200, sources.Source("a.nc", split="stripes"))
    for wrong in ({"split": "stripes", "width": 20}, {"part": "train", "width": 60}):
        with pytest.raises(ValueError, match="it goes with split: stripes"):
            sources.Source("a.nc", **wrong)


@pytest.mark.parametrize("rows", [[*range(19, -1, -1)], [0, *range(19)], [1, 0, *range(2, 20)]])
def test_times_that_do_not_increase_are_refused_wherever_hours_are_counted(rows):
    fine = wind.conform(wind.gaussian(seed=0, snapshots=20, n=16), "a test")
    stamps = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(1, "h")
    whole = fine.assign_coords(time=stamps)
    moved, repeats = whole.isel(time=rows), len({*rows}) < 20
    fields, net = wind.channels(moved, ("x_wind", "y_wind")), models.Between(steps=2)
    how = {"recipe": train.Recipe(2), "epochs": 1}
    asked = {
        "decorrelation": lambda: wind.decorrelation_h(moved.wind_speed),
        "split": lambda: wind.split(moved.wind_speed, gap_h=2.0),
        "between": lambda: estimator.fit_between(net, fields, fields, **how),
        "scores": lambda: comparison.scores(moved, whole, 4),
    }
    if repeats:  # the order of truth and of coarse wind does not matter
        asked["truth"] = lambda: comparison.scores(whole.isel(time=slice(19)), moved, 4)
        asked["coarse"] = lambda: comparison.scores(whole, whole, 4, wind.coarser(moved, 4))
    for name, ask in asked.items():
        with pytest.raises(ValueError, match=r"is not later than .*use \.sortby"):
            pytest.fail(f"{name}: {ask()}")
    if not repeats:
        one, other = (comparison.scores(whole, each, 4).skill for each in (whole, moved))
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("begins", [0.0, -180.0])
def test_parts_keep_apart_where_a_grid_goes_round(begins):
    """The last columns are neighbours of the first."""
    places = {"latitude": ("y", [0.0, 1.0]), "longitude": ("x", begins + np.arange(720) / 2)}
    speed = ("time", "y", "x"), np.zeros((1, 2, 720), "f4")
    globe = xr.Dataset({"wind_speed": speed}, places)
    parts = sources.divided(sources.Source("a.nc", split="stripes", width=64), globe)
    first, last = (parts[name][at].longitude.values for name, at in (("train", 0), ("train", -1)))
    assert (first[0], last[-1]) == (begins, begins + 351.5)  # both of one part
    parts = sources.divided(sources.Source("a.nc", split="stripes", width=180), globe)
    first, last = parts["train"][0].longitude.values, parts["test"][-1].longitude.values
    assert first[0] + 360 - last[-1] == (sources.GAP + 1) / 2
    near = {"train": [0, 300], "validation": [340, 500], "test": [540, 700]}
    with pytest.raises(ValueError, match=r"test ends at column 700 .* at 720, 720 being once"):
        sources.divided(sources.Source("a.nc", columns=near), globe)
    far = near | {"test": [540, 688]}
    assert sources.divided(sources.Source("a.nc", columns=far), globe)["test"][0].sizes["x"] == 148
    half = globe.isel(x=slice(0, 715))  # ends before it begins anew
    assert sources.divided(sources.Source("a.nc", columns=near), half)["test"][0].sizes["x"] == 160
    with pytest.raises(ValueError, match="next to train: the grid goes round"):
        sources.apart_at_seam({"train": [slice(0, 60)], "test": [slice(100, 130)]}, 130)


def test_parts_of_a_record_that_counts_hours_are_between_hours():
    """As text, "12" would be looked for among numbers, and another part come out."""
    counted = xr.Dataset({"wind_speed": record(12, lasts_h=0.1, step_h=6.0)})
    counted = counted.assign_coords(time=("time", 6.0 * np.arange(12), {"units": "h"}))
    wanted = {"train": [0, 12], "validation": [36, 66]}
    parts = sources.divided(sources.Source("a.nc", times=wanted), counted)
    assert parts["train"][0].time.values.tolist() == [0.0, 6.0, 12.0]
    assert parts["validation"][0].time.values.tolist() == [36.0, 42.0, 48.0, 54.0, 60.0, 66.0]
    dated = {"train": ["2020-01-01", "2020-01-02"], "validation": ["2020-01-03", "2020-01-04"]}
    with pytest.raises(ValueError, match="times has 2020-01-01, and the record has no dates"):
        sources.divided(sources.Source("a.nc", times=dated), counted)


@pytest.mark.parametrize("shares", [{"train": 0.9, "test": 0.9}, {"train": 1.2, "test": -0.2}, {}])
def test_random_parts_are_of_one_whole(shares):
    with pytest.raises(ValueError, match=r"shares are .* must be positive and sum to 1"):
        wind.random_split(record(30), shares, insist=True)
