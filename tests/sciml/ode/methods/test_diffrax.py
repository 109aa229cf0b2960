"""The adaptive methods against a closed form, and their own limits."""

import json
from dataclasses import replace

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import LogUniform, Uniform

from sciml.baselines import Search, least_squares
from sciml.ode import Diffrax, Gaussian, Observation, Static, System, simulate, solver
from sciml.reference import Chains, Population, laplace, nuts

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


@pytest.mark.slow
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
    with pytest.raises(ValueError, match="must be 'reverse' or 'forward'"):
        Diffrax(derivatives="none")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("derivatives", ["reverse", "forward"])
def test_derivatives_of_either_kind(derivatives):
    method = Diffrax("Tsit5", 1e-9, 1e-9, dtype="float64", derivatives=derivatives)
    assert "derivatives" not in method.describe()  # no number depends on it
    with jax.enable_x64():
        solve, derive = solver(decay(), method), {"reverse": jax.jacrev, "forward": jax.jacfwd}
        slope = derive[derivatives](lambda theta: solve(theta[None])[0])(jnp.array([0.5]))
    t = np.array(decay().observation.times)
    np.testing.assert_allclose(slope[:, 0], -t * np.exp(-0.5 * t), atol=1e-6)


@pytest.mark.slow
def test_what_differentiates_forwards_takes_adaptive_methods():
    """Measured closely, the posterior is normal: its sd is that of all who ask."""
    prior = {"theta": Uniform(0.1, 2.0)}
    fine = Diffrax("Tsit5", 1e-8, 1e-8, dtype="float64")
    system = replace(decay(), prior=prior, noise=Gaussian(sd=0.01), method=fine)
    seen = simulate(system, parameters=[[0.5]])
    assert float(least_squares(system, seen, settings=Search(20, 1)).estimate[0, 0]) == (
        pytest.approx(0.5, abs=1e-5)
    )
    t = np.array(system.observation.times)
    sd = 0.01 / np.sqrt(((t * np.exp(-0.5 * t)) ** 2).sum())
    assert float(laplace(system, seen).sd[0, 0]) == pytest.approx(sd, rel=0.1)
    few = Chains(chains=2, warmup=50, draws=100, starts=Population(particles=40, moves=2))
    drawn = nuts(system, seen.observation[0], settings=few).posterior
    assert float(drawn.std()) == pytest.approx(sd, rel=0.4)


@pytest.mark.slow
def test_a_solution_without_forward_derivatives_is_told():
    def solved(theta):
        term = diffrax.ODETerm(lambda _t, u, rate: -rate * u)
        steps = {"t0": 0.0, "t1": 1.0, "dt0": 0.1, "y0": jnp.ones(1, theta.dtype), "args": theta}
        return diffrax.diffeqsolve(term, diffrax.Euler(), **steps).ys[-1]

    task = Static("mine", {"rate": Uniform(0.1, 2.0)}, 1, Gaussian(sd=0.1), solution=solved)
    with pytest.raises(TypeError, match=r"'mine' has no forward derivatives: .*forward=False"):
        laplace(task, [[0.5]], draws=50)


@pytest.mark.slow
def test_an_exploding_sample_fails_its_derivatives_not_the_program():
    """u' = θ u², u(0) = 1 is 1/(1 − θ t), and infinite at t = 1/θ."""
    system = System(
        "exploding",
        lambda _t, u, p: (p[0] * u[0] ** 2,),
        (1.0,),
        {"theta": Uniform(0.1, 3.0)},
        Observation((0,), (0.25, 0.5)),
        noise=Gaussian(sd=0.1),
        method=Diffrax("Kvaerno5", 1e-8, 1e-8, dtype="float64", max_steps=2000),
    )
    with pytest.warns(UserWarning, match="1 of 2 covariances are NaN"):
        found = laplace(system, [[1.0], [2.5]]).sd[:, 0]
    t = np.array([0.25, 0.5])
    slope = t / (1 - t) ** 2
    np.testing.assert_allclose(found, [0.1 / np.sqrt((slope**2).sum()), np.nan], rtol=0.1)
