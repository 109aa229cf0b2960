"""Arrays of others as a data set, and simulators that are no JAX."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import LogNormal, Poisson, Uniform

import sciml
from sciml._numbers import as_real
from sciml.ode import black_box

RNG = np.random.default_rng(0)
THETA = RNG.uniform(size=(60, 2))
SEEN = THETA @ RNG.normal(size=(2, 7)) + 0.1 * RNG.normal(size=(60, 7))


def test_arrays_tables_and_labelled_arrays_give_the_same():
    array = sciml.dataset(THETA, SEEN, names=("a", "b"), bounds=[(0, 1), (0, None)])
    table = pd.DataFrame(THETA, columns=["a", "b"])
    labelled = xr.DataArray(THETA.T, {"parameter": ["a", "b"]}, ("parameter", "sample"))
    for theta in (table, dict(table), labelled):
        other = sciml.dataset(theta, SEEN, bounds={"b": (0, None), "a": (0, 1)})
        xr.testing.assert_equal(array, other)
        assert json.loads(other.attrs["support"]) == {"a": [0.0, 1.0], "b": [0.0, None]}
    assert array.observation.dims == ("sample", "feature")
    assert array.valid.all()


def test_axes_are_told_by_times_labels_and_shapes():
    series = sciml.dataset(THETA, SEEN, time=np.arange(7) / 2)
    assert series.observation.dims == ("sample", "time")
    assert series.parameter.values.tolist() == ["theta0", "theta1"]
    both = np.stack([SEEN, -SEEN], axis=2)
    channels = sciml.dataset(THETA, both, time=np.arange(7), labels=("u", "v"))
    assert channels.observation.sel(channel="v").dims == ("sample", "time")
    turned = xr.DataArray(both.T, {"channel": ["u", "v"]}, ("channel", "time", "sample"))
    xr.testing.assert_equal(
        sciml.dataset(THETA, turned).observation, channels.observation.drop_vars("time")
    )
    named = sciml.dataset(THETA, pd.DataFrame(SEEN).add_prefix("x"))
    assert named.feature.values.tolist() == [f"x{i}" for i in range(7)]


def test_samples_follow_their_labels():
    rows = RNG.permutation(60)
    theta = xr.DataArray(THETA, {"sample": np.arange(60)}, ("sample", "parameter"))
    seen = xr.DataArray(SEEN, {"sample": np.arange(60)}, ("sample", "feature"))[rows]
    found = sciml.dataset(theta, seen)
    np.testing.assert_allclose(found.observation, SEEN, rtol=1e-6)


def test_failed_samples_are_marked_and_gaps_are_missing(caplog):
    seen = SEEN.copy()
    seen[3], seen[4, 2], seen[5, 0] = np.nan, np.nan, np.inf
    with caplog.at_level(logging.WARNING):
        data = sciml.dataset(THETA, seen)
    assert np.flatnonzero(~data.valid).tolist() == [3, 5]
    assert "2 of 60 samples failed" in caplog.text
    assert np.isnan(data.observation[4, 2])
    assert np.isnan(data.observation[5]).all()


@pytest.mark.slow
def test_it_is_fitted_sampled_and_judged():
    prior = {"a": Uniform(0.0, 1.0), "b": LogNormal(0.0, 1.0)}
    data = sciml.dataset(THETA, SEEN, names=("a", "b"), prior=prior)
    fit = sciml.fit(
        sciml.models.Gaussian(width=8), data, epochs=5, recipe=sciml.train.Recipe(batch=20)
    )
    draws = fit.sample(data, draws=20)
    assert (draws.posterior >= 0).all()
    assert float(draws.posterior.sel(parameter="a").max()) <= 1
    assert sciml.diagnose.sbc(draws, data)["rank"].shape == (60, 2)


@pytest.mark.parametrize(
    ("theta", "changes", "message"),
    [
        (THETA[0], {}, r"theta has shape \(2,\)"),
        (THETA[:9], {}, "9 parameters and 60 observations"),
        (THETA, {"names": ("a",)}, "names are a and theta has 2"),
        (THETA, {"names": ("a", "a")}, "each once"),
        (THETA, {"bounds": {"a": (0, 1)}}, "bounds are of a; the parameters are theta0"),
        (THETA, {"bounds": [(0, 0.1), (0, 1)]}, r"theta0 of sample \d+ is .* lie in \[0.0, 0.1\]"),
        (THETA, {"bounds": [(0, 1)] * 3}, "must be a pair"),
        (THETA, {"bounds": {"theta0": 0, "theta1": (0, 1)}}, "must be a pair"),
        (THETA, {"bounds": [(1, 0), (0, 1)]}, "the first must be the lower"),
        (THETA, {"prior": {"theta0": Poisson(1.0), "theta1": Uniform(0, 1)}}, "whole numbers"),
        (THETA, {"prior": {"theta0": Uniform(0, 1)}, "bounds": []}, "both given"),
        (THETA, {"time": np.arange(6)}, "there are 6 values for time"),
        (THETA * np.nan, {}, "must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(theta, changes, message):
    with pytest.raises(ValueError, match=message):
        sciml.dataset(theta, SEEN, **changes)


def test_observations_of_which_nothing_is_there_are_refused():
    with pytest.raises(ValueError, match="all 60 observations are missing"):
        sciml.dataset(THETA, SEEN * np.nan)
    with pytest.raises(ValueError, match="the axes sample, place"):
        sciml.dataset(THETA, xr.DataArray(SEEN, dims=("sample", "place")))


def growth(parameters, rng):
    """Return a series by a loop in Python, and fail for some parameters."""
    if parameters["rate"] > 0.9:
        raise ArithmeticError("too fast")
    values = [1.0]
    for _ in range(5):
        values.append(values[-1] * (1 + parameters["rate"]) + 0.1 * rng.normal())
    return values


def test_a_black_box_gives_the_same_numbers_under_every_scheduler(caplog):
    prior = {"rate": Uniform(0.0, 1.0)}
    found = [
        black_box(growth, prior, 80, time=np.arange(6), scheduler=scheduler)
        for scheduler in ("threads", "synchronous")
    ]
    xr.testing.assert_equal(*found)
    data = found[0]
    np.testing.assert_array_equal(~data.valid, data.parameters[:, 0] > 0.9)
    assert "failed, as ArithmeticError: too fast" in caplog.text
    first = data.observation[int(data.valid.values.argmax())]
    assert float(first[0]) == 1.0
    assert json.loads(data.attrs["support"]) == {"rate": [0.0, 1.0]}


def test_black_boxes_that_never_work_or_change_shape_are_refused():
    prior = {"rate": Uniform(0.1, 1.0)}
    with pytest.raises(ValueError, match="all 3 calls of broken failed, the first with KeyError"):

        def broken(parameters):
            return parameters["speed"]

        black_box(broken, prior, 3)
    with pytest.raises(ValueError, match=r"shapes \[\(1,\), \(2,\)\]|shapes"):

        def ragged(parameters):
            return np.ones(1 + int(parameters["rate"] > 0.5))

        black_box(ragged, prior, 20)


@given(
    st.permutations(range(5)), st.permutations(range(5)), st.sampled_from(["text", "whole", "date"])
)
@settings(max_examples=8, deadline=None)
def test_rows_of_tables_are_aligned_by_their_labels(rows, others, kind):
    """Tables, columns of a dict and conditions in orders of their own; a default index too."""
    labels = {
        "text": pd.Index(list("vwxyz")),
        "whole": pd.RangeIndex(5),
        "date": pd.date_range("2024-01-01", periods=5),
    }[kind]
    theta = pd.DataFrame({"a": np.arange(5.0), "b": np.arange(5.0) ** 2}, labels)
    seen = pd.DataFrame(theta.to_numpy() @ np.ones((2, 3)), labels).iloc[list(rows)]
    dose = theta["a"].iloc[list(others)] * 2
    for given_theta in (theta, {"a": theta["a"], "b": theta["b"].iloc[list(rows)]}):
        for known in ({"dose": dose}, pd.DataFrame({"dose": dose})):
            data = sciml.dataset(given_theta, seen, known)
            np.testing.assert_array_equal(data.parameters, theta)
            np.testing.assert_allclose(data.observation[:, 0], theta.sum(axis=1))
            np.testing.assert_allclose(data.dose, 2 * theta["a"])
    bare = sciml.dataset(theta, theta.to_numpy(), {"dose": dose})
    np.testing.assert_allclose(bare.dose, 2 * theta["a"])


def test_tables_of_other_rows_and_uneven_columns_are_refused():
    theta = pd.DataFrame({"a": [0.1, 0.2]}, ["p", "q"])
    with pytest.raises(ValueError, match=r"labelled otherwise.*reset_index"):
        sciml.dataset(theta, pd.DataFrame({"x": [1.0, 2.0]}, ["q", "r"]))
    assert "sample" not in sciml.dataset(theta.reset_index(drop=True), np.ones((2, 1))).coords
    for wrong in ({"a": [[0.1, 0.2]]}, {"a": [0.1, 0.2], "b": [0.1]}):
        with pytest.raises(ValueError, match="must be a row of as many numbers"):
            sciml.dataset(wrong, np.ones((2, 1)))


def test_parameters_that_are_not_of_their_prior_are_told(caplog):
    """Of two, the one that is not; both lie within its support."""
    theta = np.random.default_rng(0).uniform(size=(200, 2))
    prior = {"a": Uniform(0.0, 1.0), "b": LogNormal(0.0, 0.5)}
    sciml.dataset(theta, theta, names=("a", "b"), prior=prior)
    assert "b has the median" in caplog.text
    assert "a has the median" not in caplog.text


def test_a_parameter_of_few_values_is_warned_of(caplog):
    kinds = np.random.default_rng(0).integers(1, 5, (200, 1))
    sciml.dataset(kinds, kinds * np.ones((1, 3)), names=("kind",), bounds=[(1, 4)])
    assert "kind takes 4 values in 200 samples" in caplog.text


@pytest.mark.parametrize(
    ("attrs", "encoding"),
    [
        ({"valid_max": 50.0}, {}),
        ({"valid_range": "-1, 50"}, {}),
        ({"missing_value": "99"}, {}),
        ({"_FillValue": np.float32(99)}, {}),
        ({}, {"missing_value": np.int16(99), "dtype": np.dtype("f8")}),
    ],
)
def test_what_an_array_declares_missing_is_missing(caplog, attrs, encoding):
    """As of a file: of observations, and what must be known is then refused."""
    rng = np.random.default_rng(0)
    theta = xr.DataArray(rng.uniform(size=(20, 1)), dims=("sample", "parameter"))
    seen = xr.DataArray(rng.uniform(size=(20, 3)), dims=("sample", "feature"))
    seen[3, 1] = 99.0
    row = seen[:, 1]
    for one in (seen, row):
        one.attrs, one.encoding = dict(attrs), dict(encoding)
    found = sciml.dataset(theta, seen).observation
    assert found.isnull().sum() == found[3, 1].isnull() == 1
    assert "1 values of x are missing by its attributes" in caplog.text
    assert not sciml.dataset(theta, seen.where(seen < 1, 0.0)).observation.isnull().any()
    with pytest.raises(ValueError, match="theta0 of sample 3 is nan"):
        sciml.dataset({"theta0": row}, theta.rename(parameter="feature"))
    with pytest.raises(ValueError, match="dose of sample 3"):
        sciml.dataset(theta, seen.drop_attrs().fillna(0.0), {"dose": row})


def test_what_is_still_packed_is_refused():
    seen = xr.DataArray(np.ones((3, 2)), dims=("sample", "feature"), attrs={"scale_factor": 0.1})
    with pytest.raises(ValueError, match=r"x has scale_factor 0.1, so that its values are packed"):
        sciml.dataset(np.ones((3, 1)), seen)
    lazy = seen.drop_attrs().assign_attrs(valid_max=0.5).chunk()
    assert as_real(lazy, "x").chunks is not None
    assert as_real(lazy, "x").isnull().all()


@pytest.mark.parametrize(
    ("times", "attrs", "error", "message"),
    [
        ([0.0, 1.0, -9.0], {"_FillValue": -9.0}, ValueError, "time.* -9 at index 2, which is mis"),
        ([0.0, 1.0, 2.0], {"valid_range": [0.0, 1.0]}, ValueError, "time.* is 2 at index 2, which"),
        ([0, 1, 2], {"scale_factor": 0.1}, ValueError, "time.* has scale_factor 0.1"),
        ([0.0, np.nan, 2.0], {}, ValueError, "time.* is nan at index 1; each must be a finite num"),
        (np.arange(3).astype("M8[D]").astype("M8[ns]"), {}, TypeError, "time.* of dates"),
    ],
)
def test_a_time_that_is_none_is_refused(times, attrs, error, message):
    """As a coordinate, as an argument, of a condition, and of a data set that was made by hand."""
    theta = np.array([[0.1], [0.2]])
    at = xr.DataArray(times, dims="time", attrs=attrs)
    seen = xr.DataArray(np.arange(6.0).reshape(2, 3), {"time": at}, ("sample", "time"))
    good = {"time": [0.0, 1.0, 2.0]}
    data = sciml.dataset(theta, seen.assign_coords(good))
    model = sciml.models.Gaussian(8, 1)
    for call in (
        lambda: sciml.dataset(theta, seen),
        lambda: sciml.dataset(theta, seen.values, time=at),
        lambda: sciml.dataset(theta, seen.assign_coords(good), {"dose": seen}),
        lambda: sciml.fit(model, data.assign_coords(time=at), epochs=1),
    ):
        with pytest.raises(error, match=message):
            call()


def test_the_unit_of_labelled_times_stays():
    hours = xr.DataArray([0.0, 1.0], dims="time", attrs={"units": "h", "valid_min": 0.0})
    assert sciml.dataset(np.ones((2, 1)), np.ones((2, 2)), time=hours).time.attrs["units"] == "h"


TABLE = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e4, 1e-3]


def marked(value: float, column: int) -> np.ndarray:
    found = TABLE.copy()
    found[[3, 7], column] = value
    return found


@pytest.mark.parametrize("value", [-999.0, -9999.0, 1e20, np.float32(-99.0)])
@pytest.mark.parametrize("column", [0, 2])
def test_numbers_that_stand_for_missing_ones_are_told(value, column, caplog):
    sciml.dataset(TABLE, marked(value, column))
    assert f"2 of the values of x[..., {column}] are" in caplog.text
    assert "pass NaN" in caplog.text


def test_conditions_that_stand_for_missing_ones_are_told(caplog):
    sciml.dataset(TABLE, TABLE, {"dose": marked(-999.0, 0)[:, 0]})
    assert "2 of the condition dose are -999, far from the others" in caplog.text


def test_plain_numbers_are_no_missing_ones(caplog):
    theta = TABLE[:, :1]
    for x in (
        TABLE,
        marked(np.nan, 0),
        marked(-999.0, 1),
        TABLE * 300 - 999,
        np.full((50, 1), -99.0),
    ):
        sciml.dataset(theta, x, {"dose": np.arange(950.0, 1000.0)})
    assert "stands for" not in caplog.text
