import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciml.ode import AR1


@pytest.mark.parametrize("correlation", [0.0, 0.8, -0.5])
def test_marginal_deviation_and_correlation(correlation):
    noise = AR1(sd=0.28, correlation=correlation)
    x = np.asarray(noise.sample(jax.random.key(0), (4000, 50)))
    assert x.std(axis=0) == pytest.approx(np.full(50, 0.28), rel=0.05)  # stationary from the start
    lagged = (x[:, 1:] * x[:, :-1]).mean() / 0.28**2
    assert lagged == pytest.approx(correlation, abs=0.01)


@settings(max_examples=20, deadline=None)
@given(time=st.sampled_from([1, 2, 7, 33]), correlation=st.floats(-0.99, 0.99))
def test_doubling_equals_the_recursion(time, correlation):
    noise = AR1(sd=1.0, correlation=correlation)
    key = jax.random.key(1)
    drawn = np.asarray(jax.random.normal(key, (3, time)), np.float64)
    expected = np.empty_like(drawn)
    expected[:, 0] = drawn[:, 0]
    for t in range(1, time):
        expected[:, t] = (
            correlation * expected[:, t - 1] + np.sqrt(1 - correlation**2) * drawn[:, t]
        )
    np.testing.assert_allclose(noise.sample(key, (3, time)), expected, atol=2e-5)
