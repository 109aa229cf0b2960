"""The adaptive methods on stiff kinetics, against SciPy, and differentiated."""

import jax
import numpy as np
import pytest
from numpyro.distributions import Uniform
from scipy.integrate import solve_ivp

from sciml.ode import Diffrax, Observation, System, simulate, solver

pytestmark = [pytest.mark.validation, pytest.mark.usefixtures("quick_compilation")]


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


def test_can_be_differentiated():
    system = System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * (u[0] - jax.numpy.sin(t)) + jax.numpy.cos(t),),
        initial_state=(1.0,),
        prior={"theta": Uniform(0.1, 1.0)},
        observation=Observation((0,), (0.1, 0.5, 1.0, 2.5)),
    )
    solve = solver(system, Diffrax("Tsit5", max_steps=64))
    t = np.asarray(system.observation.times)
    slope = jax.jit(jax.jacobian(lambda p: solve(p[None, None])[0]))(jax.numpy.asarray(0.7))
    np.testing.assert_allclose(slope, -t * np.exp(-0.7 * t), atol=1e-4)
