import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sciml.diagnose import simultaneous_band
from sciml.diagnose.draws.band import path_p_value, staying

POINTS = np.arange(1, 50) / 50


@pytest.mark.parametrize("samples", [20, 200])
def test_holds_as_many_paths_as_it_promises(samples):
    lower, upper = simultaneous_band(samples, POINTS, 0.9)
    u = np.random.default_rng(0).random((4000, samples))
    paths = (u[:, :, None] <= POINTS).mean(axis=1)
    inside = ((paths >= lower) & (paths <= upper)).all(axis=1).mean()
    assert inside == pytest.approx(0.9, abs=0.02)


def test_one_point_is_a_binomial_interval():
    lower, upper = (round(30 * b) for b in np.ravel(simultaneous_band(30, np.array([0.3]))))
    inside = binom.cdf(upper, 30, 0.3) - binom.cdf(lower - 1, 30, 0.3)
    assert inside >= 0.95
    whole = staying(np.array([lower]), np.array([upper]), 30, np.array([0.3]))
    assert whole == pytest.approx(inside)


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 60), st.integers(0, 10_000), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_path_leaves_the_band_exactly_where_its_p_value_is_small(samples, seed, probability):
    u = np.random.default_rng(seed).random(samples) ** 1.5
    points = np.arange(1, 10) / 10
    counts = (u[:, None] <= points).sum(axis=0)
    lower, upper = simultaneous_band(samples, points, probability)
    outside = np.any((counts < np.rint(lower * samples)) | (counts > np.rint(upper * samples)))
    assert outside == (path_p_value(counts, samples, points) < 1 - probability)


def test_agrees_with_an_independent_implementation():
    module = pytest.importorskip("arviz_stats.ecdf_utils")
    u = np.random.default_rng(1).random(200)
    x, _, low, high = module.ecdf_pit(u, 0.95, 4000, rng=np.random.default_rng(0))
    inner = (x > 0.05) & (x < 0.95)
    lower, upper = simultaneous_band(200, x[inner], 0.95)
    # theirs is simulated on all points; one count is 1/200
    np.testing.assert_allclose(lower, low[inner], atol=1.5 / 200)
    np.testing.assert_allclose(upper, high[inner], atol=1.5 / 200)


@pytest.mark.parametrize("points", [[0.5, 0.5], [0.0, 0.5], [0.5, 1.0]])
def test_points_must_increase_within_the_interval(points):
    with pytest.raises(ValueError, match="increase strictly"):
        simultaneous_band(10, np.array(points))


def test_probability_must_be_one():
    with pytest.raises(ValueError, match="probability is 95"):
        simultaneous_band(10, POINTS, 95.0)
