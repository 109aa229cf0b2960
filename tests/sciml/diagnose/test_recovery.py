import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from sciml.diagnose import r2, recovery


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 50), st.integers(0, 1000))
def test_agrees_with_an_independent_implementation(samples, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(samples, 2))
    estimate = truth + 0.1 * rng.normal(size=(samples, 2))
    found = recovery(truth, estimate, names=("a", "b")).sel(regime="all")
    for i, name in enumerate("ab"):
        one = found.sel(parameter=name)
        t, e = truth[:, i], estimate[:, i]
        assert float(one.r2) == pytest.approx(r2_score(t, e))
        assert float(one.mse) == pytest.approx(mean_squared_error(t, e))
        assert float(one.mae) == pytest.approx(mean_absolute_error(t, e))
        assert float(one.median_se) == pytest.approx(np.median((t - e) ** 2))
        assert float(one.median_se) <= float(one.p90_se)


def test_regimes_split_the_samples():
    truth = np.arange(10.0)[:, None]
    estimate = truth + np.where(truth < 4, 1.0, 2.0)
    low = truth[:, 0] < 4
    found = recovery(
        truth, estimate, names=("a",), regimes={"low": low, "high": ~low, "none": low & ~low}
    )
    assert found.samples.values.tolist() == [10, 4, 6, 0]
    assert found.mse.values[:, 0].tolist()[1:3] == [1.0, 4.0]
    assert np.isnan(found.mse.values[3, 0])


def labelled(values, names):
    """Return values of named samples."""
    return xr.DataArray(values, {"sample": names}, "sample")


def test_constant_truth_has_no_r2():
    assert np.isnan(r2(np.ones(3), np.zeros(3)))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("truth", "estimate"),
    [((9,), (9, 1)), ((9, 2), (9, 2)), ((9,), (8,)), ((9,), ()), ((1, 9), (9,))],
)
def test_r2_is_of_one_parameter(truth, estimate):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"sciml\.diagnose\.recovery"):
        r2(rng.normal(size=truth), rng.normal(size=estimate))


def test_r2_of_a_data_set_and_a_table_are_refused():
    truth, both = np.arange(4.0), np.zeros((4, 2))
    several = xr.Dataset({"estimate": (("sample", "parameter"), both)})
    for estimate in (several, pd.DataFrame(both)):
        with pytest.raises(ValueError, match=r"sciml\.diagnose\.recovery"):
            r2(truth, estimate)


@pytest.mark.parametrize("made", [lambda v, i: pd.Series(v, index=i), labelled])
def test_r2_matches_samples_by_their_labels(made):
    truth, order = np.arange(5.0), [3, 1, 4, 0, 2]
    names = np.array(list("abcde"))
    estimate = made((truth + 0.1)[order], names[order])
    assert r2(made(truth, names), estimate) == r2(truth, truth + 0.1)


@pytest.mark.usefixtures("untyped")
def test_shapes_must_agree():
    with pytest.raises(ValueError, match="must be equal"):
        recovery(np.zeros((2, 1)), np.zeros((3, 1)), names=("a",))
