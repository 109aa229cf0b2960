"""The adaptive methods against a closed form, and their own limits."""

import json

import jax
import numpy as np
import pytest
from numpyro.distributions import LogUniform

from sciml.ode import Diffrax, Observation, System, simulate

pytestmark = pytest.mark.usefixtures("quick_compilation")


def decay() -> System:
    """u' = −θ (u − sin t) + cos t, u(0) = 1: u = sin t + e^(−θ t); stiff where θ is large."""
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * (u[0] - jax.numpy.sin(t)) + jax.numpy.cos(t),),
        initial_state=(1.0,),
        prior={"theta": LogUniform(0.1, 1e5)},
        observation=Observation((0,), (0.1, 0.5, 1.0, 2.5)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "error"),
    [
        (Diffrax("Dopri8", rtol=1e-10, atol=1e-10, dtype="float64"), 1e-8),
        (Diffrax("Kvaerno5", rtol=1e-8, atol=1e-8, dtype="float64"), 1e-7),
    ],
)
def test_error_follows_the_tolerance(method, error):
    theta = np.array([[0.5], [3.0]])
    data = simulate(decay(), parameters=theta, method=method)
    t = data.time.values
    np.testing.assert_allclose(data.observation, np.sin(t) + np.exp(-theta * t), atol=error)
    assert data.observation.dtype == method.dtype
    assert json.loads(data.attrs["settings"])["method"]["solver"] == method.solver


def test_too_many_steps_fail_one_sample_not_its_neighbours():
    """And float32, Tsit5, keep to the tolerance of 1e-6."""
    theta = np.array([[0.5], [1e5], [3.0]])  # an explicit method must follow e^(−10⁵ t)
    data = simulate(decay(), parameters=theta, method=Diffrax("Tsit5", max_steps=200))
    assert data.valid.values.tolist() == [True, False, True]
    assert data.attrs["failures"] == 1
    assert data.observation.dtype == np.float32
    assert json.loads(data.attrs["settings"])["method"]["solver"] == "Tsit5"
    assert np.isnan(data.observation[1]).all()
    t, others = data.time.values, theta[[0, 2]]
    exact = np.sin(t) + np.exp(-others * t)
    np.testing.assert_allclose(data.observation[[0, 2]], exact, atol=1e-5)


def test_a_solver_that_always_fails_says_so():
    with pytest.raises(ValueError, match=r"all 3 .*'decay' failed.*'max_steps': 2.*Kvaerno5"):
        simulate(decay(), samples=3, method=Diffrax("Tsit5", max_steps=2))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rtol": 1e-8}, "float64"),
        ({"rtol": 0.0}, "positive"),
        ({"atol": -1.0}, "positive"),
        ({"max_steps": 0}, "at least 1"),
        ({"chunk": 0}, "at least 1"),
    ],
)
def test_bad_options_are_refused(options, error):
    with pytest.raises(ValueError, match=error):
        Diffrax(**options)


def test_unknown_names_are_refused(untyped):
    with pytest.raises(ValueError, match="must be 'Tsit5', 'Dopri8' or 'Kvaerno5'"):
        Diffrax("Euler")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="must be 'float32' or 'float64'"):
        Diffrax(dtype="float16")  # pyright: ignore[reportArgumentType]
