"""The simulator against closed forms, the published spikes, and bad input."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import Normal, Uniform
from scipy.integrate import solve_ivp

from sciml.ode import (
    AR1,
    Observation,
    RungeKutta4,
    System,
    fitzhugh_nagumo,
    is_spiking,
    simulate,
    spikes,
)

pytestmark = pytest.mark.usefixtures("quick_compilation")


def oscillator(interval: float = 0.5, length: int = 21) -> System:
    """u'' = −ω² u, u(0) = (1, 0): u = cos ωt."""
    return System(
        name="oscillator",
        vector_field=lambda t, u, p: (u[1], -(p[0] ** 2) * u[0]),
        initial_state=(1.0, 0.0),
        prior={"omega": Uniform(1.0, 2.0)},
        observation=Observation.regular(interval=interval, length=length),
    )


def explosive() -> System:
    """u' = θ u²: infinite at t = 1/θ."""
    return System(
        name="explosive",
        vector_field=lambda t, u, p: (p[0] * u[0] ** 2,),
        initial_state=(1.0,),
        prior={"theta": Normal(0.0, 1.0)},
        observation=Observation.regular(interval=0.25, length=9),
    )


@pytest.mark.slow
def test_fourth_order_against_the_closed_form():
    omega = np.array([[1.0], [1.7]])
    errors = []
    for substeps in (2, 4, 8):
        data = simulate(
            oscillator(), parameters=omega, method=RungeKutta4(substeps=substeps, dtype="float64")
        )
        exact = np.cos(omega * data.time.values)
        errors.append(np.abs(data.observation.values - exact).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 4) < 0.2), orders


def test_time_dependent_field_is_integrated_exactly():
    system = System(
        name="cubic",
        vector_field=lambda t, u, p: (p[0] * t**3,),
        initial_state=(0.0,),
        prior={"theta": Uniform(0, 1)},
        observation=Observation.regular(interval=0.3, length=6),
    )
    data = simulate(system, parameters=np.array([[4.0]]), method=RungeKutta4(dtype="float64"))
    np.testing.assert_allclose(data.observation.values[0], data.time.values**4, atol=1e-13)


def test_fitzhugh_nagumo_agrees_with_an_independent_solver():
    theta = np.array([[0.4, 0.4], [0.0847, 1.0094]])
    data = simulate(fitzhugh_nagumo(), parameters=theta, method=RungeKutta4(dtype="float64"))
    for row, (t0, t1) in enumerate(theta):
        reference = solve_ivp(
            lambda t, u, t0=t0, t1=t1: (
                3 * (u[0] - u[0] ** 3 / 3 + u[1] - 0.4),
                -(u[0] - t0 + t1 * u[1]) / 3,
            ),
            (0, 200),
            (0, 0),
            t_eval=data.time.values,
            rtol=1e-10,
            atol=1e-12,
        )
        np.testing.assert_allclose(data.observation.values[row], reference.y[0], atol=2e-3)


@pytest.mark.slow
def test_spikes_of_the_published_pairs(shared):
    folder = shared / "data" / "fhn"
    theta = np.load(folder / "fhn_T200_samplePrior_theta.npy")[:5000]
    rate = np.load(folder / "fhn_T200_samplePrior_spikeRate_first5000.npy")
    duration = np.load(folder / "fhn_T200_samplePrior_spikeDuration_first5000.npy")
    published = np.nan_to_num(rate * 0.1998).round()  # rates per second over 199.8 ms; NaN: none
    data = simulate(fitzhugh_nagumo(), parameters=theta)
    ours = spikes(data.observation.values, interval=0.2)
    assert (ours.number == published).mean() >= 0.975
    assert (np.abs(ours.number - published) <= 1).mean() >= 0.999
    assert np.median(np.abs(ours.duration - duration)) <= 0.02
    # Those at rest lie below (duration 0) or above zero (all of 199.8 ms).
    at_rest = (ours.number == 0) & (published == 0)
    assert (np.abs(ours.duration - duration)[at_rest] < 0.01).mean() > 0.99


def test_spikes_of_named_parameters():
    theta = [(0.7478, 0.6010), (-0.0652, -0.2284), (0.0847, 1.0094), (0.7115, 0.9395)]
    data = simulate(fitzhugh_nagumo(), parameters=np.array(theta))
    found = spikes(data.observation.values, interval=0.2)
    assert found.number.tolist() == [18, 22, 0, 0]
    np.testing.assert_allclose(found.duration, [3.03, 2.72, 0.0, 199.8], atol=0.05)
    assert is_spiking(data.observation.values).tolist() == [True, True, False, False]


def short() -> System:
    """The published neuron, seen twice."""
    return replace(fitzhugh_nagumo(), observation=Observation.regular(interval=0.2, length=2))


@pytest.mark.slow
def test_prior_is_the_published_one():
    values = simulate(short(), samples=4000, seed=5).parameters.values
    assert values.min(axis=0) == pytest.approx([-0.2, -0.4], abs=0.02)
    assert values.max(axis=0) == pytest.approx([1.0, 1.2], abs=0.02)
    # sd of a normal cut at ±2σ is 0.8796 σ.
    assert values.std(axis=0) == pytest.approx([0.2639, 0.3519], rel=0.03)
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.05


@pytest.mark.slow
def test_same_seed_same_numbers_whatever_the_chunk():
    one = simulate(fitzhugh_nagumo(), samples=33, seed=3, noise=AR1(sd=0.1))
    two = simulate(
        fitzhugh_nagumo(), samples=33, seed=3, noise=AR1(sd=0.1), method=RungeKutta4(chunk=10)
    )
    # Programs of other shapes round differently, and phases drift apart over the spikes.
    np.testing.assert_allclose(one.observation, two.observation, atol=1e-2)
    np.testing.assert_array_equal(one.parameters, two.parameters)
    other = simulate(short(), samples=33, seed=4)
    assert not np.array_equal(one.parameters, other.parameters)


def test_attributes_tell_how_to_make_it_again():
    """The same seed gives the same bytes."""
    data = simulate(fitzhugh_nagumo(), samples=33, seed=7, noise=AR1(sd=0.28, correlation=0.5))
    settings = json.loads(data.attrs["settings"])
    again = simulate(
        fitzhugh_nagumo(),
        samples=settings["samples"],
        seed=settings["seed"],
        noise=AR1(settings["noise"]["sd"], settings["noise"]["correlation"]),
    )
    np.testing.assert_array_equal(data.observation, again.observation)
    assert data.time.attrs["units"] == "ms"
    assert list(data.parameter.values) == ["theta0", "theta1"]


def test_failures_are_masked_and_counted():
    data = simulate(explosive(), parameters=np.array([[-1.0], [5.0], [0.1]]))
    assert data.attrs["failures"] == 1
    assert data.valid.values.tolist() == [True, False, True]
    assert np.isnan(data.observation.values[1]).all()
    np.testing.assert_allclose(data.observation[0], 1 / (1 + data.time), rtol=1e-4)


def test_float64_on_request_leaves_no_trace():
    theta = np.array([[1.5]])
    assert simulate(
        oscillator(), parameters=theta, method=RungeKutta4(dtype="float64")
    ).observation.dtype == np.dtype("float64")
    assert simulate(oscillator(), parameters=theta).observation.dtype == np.dtype("float32")
    assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "give exactly one"),
        ({"samples": 2, "parameters": np.zeros((2, 1))}, "give exactly one"),
        ({"samples": 0}, "at least 1"),
        ({"parameters": np.zeros((2, 3))}, r"shape \(2, 3\)"),
        ({"parameters": np.array([[1.0], [np.nan]])}, r"parameters\[1\]"),
    ],
)
def test_bad_input_is_refused(arguments, error):
    with pytest.raises(ValueError, match=error):
        simulate(oscillator(), **arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Observation((-1,), (0.0, 1.0)),
        lambda: Observation.regular(interval=0.0, length=2),
        lambda: Observation.regular(interval=1.0, length=0),
        lambda: RungeKutta4(substeps=0),
        lambda: RungeKutta4(chunk=0),
        lambda: AR1(sd=-0.1),
        lambda: AR1(sd=float("nan")),
        lambda: AR1(sd=0.1, correlation=1.0),
    ],
)
def test_bad_values_are_refused(make):
    with pytest.raises(ValueError, match="must"):
        make()


def test_observed_state_must_exist():
    with pytest.raises(ValueError, match="2 states"):
        System(
            name="x",
            vector_field=lambda t, u, p: u,
            initial_state=(0.0, 0.0),
            prior={"a": Normal(0.0, 1.0)},
            observation=Observation((2,), (0.0, 1.0)),
        )
