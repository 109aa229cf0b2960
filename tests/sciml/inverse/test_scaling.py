"""Scalings: there and back, and the slope that turns one density into the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.inverse.inputs import AsTheyAre, Standard
from sciml.inverse.scaling import Unconstrained, supports

INFINITE = np.inf
NAMES = ("free", "positive", "negative", "bounded")
SUPPORT = [(-INFINITE, INFINITE), (0.0, INFINITE), (-INFINITE, 2.0), (-1.0, 3.0)]


def targets(samples: int = 500, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(3, 2, samples),
        rng.lognormal(-1, 0.7, samples),
        2 - rng.lognormal(0, 0.5, samples),
        rng.uniform(-1, 3, samples),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def test_scaled_targets_have_unit_spread_and_come_back():
    theta = targets()
    scaling = Unconstrained.of(theta, SUPPORT, NAMES)
    z = np.asarray(scaling.forward(theta))
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(scaling.backward(z), theta, rtol=2e-4, atol=2e-5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-60, 60, width=32), min_size=4, max_size=4))
def test_nothing_leaves_its_support(z):
    scaling = Unconstrained.of(targets(), SUPPORT, NAMES)
    theta = np.asarray(scaling.backward(jnp.array([z])))[0]
    for value, (low, high) in zip(theta, SUPPORT, strict=True):
        assert low <= value <= high


def test_the_slope_is_the_derivative():
    theta = targets(20, seed=1)
    scaling = Unconstrained.of(targets(), SUPPORT, NAMES)
    slopes = jax.vmap(jax.jacfwd(scaling.forward))(jnp.asarray(theta))
    expected = np.log(np.abs(np.linalg.det(np.asarray(slopes, np.float64))))
    np.testing.assert_allclose(scaling.log_slope(theta), expected, rtol=1e-4, atol=1e-4)


def test_targets_outside_the_prior_are_refused():
    theta = targets()
    theta[7, 3] = 3.5
    with pytest.raises(ValueError, match=r"bounded of sample 7 is 3\.5; its prior is on"):
        Unconstrained.of(theta, SUPPORT, NAMES)
    theta[:, 3] = 1.0
    with pytest.raises(ValueError, match="bounded is the same in all samples"):
        Unconstrained.of(theta, SUPPORT, NAMES)


def test_a_draw_rounded_to_the_end_of_its_prior_is_inside():
    """1e-4 in single precision is a little less than 1e-4."""
    theta = np.array([[1e-4], [0.1], [0.15]], np.float32)
    scaling = Unconstrained.of(theta, [(1e-4, 0.15)], ("noise",))
    back = np.asarray(scaling.backward(scaling.forward(theta)))
    assert np.isfinite(np.asarray(scaling.forward(theta))).all()
    np.testing.assert_allclose(back, theta, rtol=1e-2)


def test_supports_are_read_from_the_attribute():
    assert supports('{"a": [0, null]}', ("a", "b")) == [(0.0, INFINITE), (-INFINITE, INFINITE)]
    assert supports(None, ("a",)) == [(-INFINITE, INFINITE)]


def test_inputs_are_standardised_and_missing_values_stay():
    rng = np.random.default_rng(0)
    x = rng.normal(5, 3, (400, 6, 2)).astype(np.float32)
    x[3, 2, 1] = np.nan
    x[:, 0, 0] = 1.0
    inputs = Standard.of(x)
    z = np.asarray(inputs.forward(x))
    assert np.isnan(z[3, 2, 1])
    assert np.isfinite(np.delete(z, 3, axis=0)).all()
    np.testing.assert_allclose(np.nanmean(z[:, 1:], axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.nanstd(z[:, 1:], axis=0), 1, rtol=1e-3)
    np.testing.assert_array_equal(AsTheyAre().forward(x), x)


@pytest.mark.parametrize("features", [False, True])
def test_no_channel_knows_of_the_unit_of_another(features):
    rng = np.random.default_rng(0)
    x = rng.normal(2, 1, (300, 3) if features else (300, 4, 3)).astype(np.float32)
    units = np.float32([2.0**-30, 1.0, 2.0**30])
    found = [
        np.asarray(Standard.of(each, features=features).forward(each)) for each in (x, x * units)
    ]
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[1].std(axis=0), 1, rtol=1e-4)


def test_wide_positive_inputs_are_taken_by_their_logarithm():
    rng = np.random.default_rng(0)
    wide = rng.lognormal(0, 2, (500, 5)).astype(np.float32)
    narrow = rng.normal(0, 1, (500, 5)).astype(np.float32)
    z = np.asarray(
        Standard.of(np.stack([wide, narrow], axis=2)).forward(np.stack([wide, narrow], axis=2))
    )
    np.testing.assert_allclose(z[..., 0], np.asarray(Standard.of(wide).forward(wide)), rtol=1e-5)
    logs = np.log(wide)
    np.testing.assert_allclose(z[..., 0], (logs - logs.mean(0)) / logs.std(0), atol=0.05)
    np.testing.assert_allclose(z[..., 1], (narrow - narrow.mean(0)) / narrow.std(0), atol=1e-4)
    mostly_zero = np.where(wide > 1, wide, 0)
    assert np.isfinite(Standard.of(mostly_zero).forward(mostly_zero)).all()


def test_counts_are_taken_by_their_square_root():
    """Poisson counts of means 4 and 400 spread alike after the root, and by 10 before it."""
    rng = np.random.default_rng(0)
    counts = rng.poisson([[4.0]] * 2000 + [[400.0]] * 2000, (4000, 3)).astype(np.float32)
    z = np.asarray(Standard.of(counts).forward(counts))
    few, many = z[:2000].std(axis=0), z[2000:].std(axis=0)
    np.testing.assert_allclose(many / few, 1, atol=0.1)
    assert np.isfinite(np.asarray(Standard.of(counts).forward(np.zeros((1, 3))))).all()


@pytest.mark.parametrize(
    "ends", [(1e-8, 1.0), (1e-10, 1e10), (1e-25, 1e25), (-1e3, -1e-6), (0.0, 1.0)]
)
def test_parameters_over_many_decades_are_told_apart_near_their_end(ends):
    """A millionth of the range was the least: of a rate from 1e-10 to 1e10 70 % were 10,000."""
    low, high = ends
    near = max(min(abs(low), abs(high)), 1e-12)
    decades = near * (max(abs(low), abs(high)) / near) ** np.linspace(0.01, 0.99, 200)
    theta = np.float32(np.sign(low + high) * decades)[:, None]
    scaling = Unconstrained.of(theta, [ends], ("rate",))
    z = np.asarray(scaling.forward(theta))
    assert len(np.unique(z)) == len(z)
    np.testing.assert_allclose(scaling.backward(z), theta, rtol=1e-4)
    between = np.diff(z[:, 0]) / np.diff(theta[:, 0])  # ∂z/∂θ, which neighbours enclose
    slope = np.exp(np.asarray(scaling.log_slope(theta)))
    assert (between > 0.9 * np.minimum(slope[1:], slope[:-1])).all()
    assert (between < 1.1 * np.maximum(slope[1:], slope[:-1])).all()


def test_a_flat_prior_keeps_its_margin():
    theta = np.random.default_rng(0).uniform(0, 1, (5000, 1)).astype(np.float32)
    assert Unconstrained.of(theta, [(0.0, 1.0)], ("share",)).nearest == ()
