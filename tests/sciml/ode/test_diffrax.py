"""The adaptive methods against closed forms, SciPy on stiff systems, and their own limits."""

import json

import jax
import numpy as np
import pytest
from numpyro.distributions import LogUniform, Uniform
from scipy.integrate import solve_ivp

from sciml.ode import Diffrax, Observation, System, simulate, solver


def decay() -> System:
    """u' = −θ (u − sin t) + cos t, u(0) = 1: u = sin t + e^(−θ t); stiff where θ is large."""
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * (u[0] - jax.numpy.sin(t)) + jax.numpy.cos(t),),
        initial_state=(1.0,),
        prior={"theta": LogUniform(0.1, 1e5)},
        observation=Observation((0,), (0.1, 0.5, 1.0, 2.5)),
    )


def robertson() -> System:
    """The reaction kinetics of Robertson (1966), stiff, with its first rate unknown."""

    def vector_field(time, state, parameters):
        del time
        a, b, c = state
        slow, fast, fastest = parameters[0] * a, 3e7 * b * b, 1e4 * b * c
        return -slow + fastest, slow - fastest - fast, fast

    return System(
        name="robertson",
        vector_field=vector_field,
        initial_state=(1.0, 0.0, 0.0),
        prior={"rate": Uniform(0.03, 0.05)},
        observation=Observation((0, 1, 2), (0.4, 4.0, 40.0, 400.0)),
    )


@pytest.mark.parametrize(
    ("method", "error"),
    [
        (Diffrax("Tsit5"), 1e-5),
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


def test_stiff_kinetics_agree_with_scipy():
    system = robertson()
    method = Diffrax("Kvaerno5", rtol=1e-7, atol=1e-11, dtype="float64")
    data = simulate(system, parameters=np.array([[0.04]]), method=method)
    reference = solve_ivp(
        lambda t, u: system.vector_field(t, u, (0.04,)),
        (0, 400),
        (1.0, 0.0, 0.0),
        method="Radau",
        t_eval=data.time.values,
        rtol=1e-10,
        atol=1e-14,
    )
    np.testing.assert_allclose(data.observation[0], reference.y.T, rtol=1e-5)
    np.testing.assert_allclose(data.observation.sum("channel"), 1.0, atol=1e-9)  # mass is kept


def test_too_many_steps_fail_one_sample_not_its_neighbours():
    theta = np.array([[0.5], [1e5], [3.0]])  # an explicit method must follow e^(−10⁵ t)
    data = simulate(decay(), parameters=theta, method=Diffrax("Tsit5", max_steps=200))
    assert data.valid.values.tolist() == [True, False, True]
    assert data.attrs["failures"] == 1
    assert np.isnan(data.observation[1]).all()
    alone = simulate(decay(), parameters=theta[:1], method=Diffrax("Tsit5", max_steps=200))
    np.testing.assert_allclose(data.observation[0], alone.observation[0], atol=1e-6)


def test_a_solver_that_always_fails_says_so():
    with pytest.raises(ValueError, match=r"all 3 .*'decay' failed.*'max_steps': 2.*Kvaerno5"):
        simulate(decay(), samples=3, method=Diffrax("Tsit5", max_steps=2))


def test_can_be_differentiated():
    solve = solver(decay(), Diffrax("Tsit5"))
    t = np.asarray(decay().observation.times)
    slope = jax.jit(jax.jacobian(lambda p: solve(p[None, None])[0]))(jax.numpy.asarray(0.7))
    np.testing.assert_allclose(slope, -t * np.exp(-0.7 * t), atol=1e-4)


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
