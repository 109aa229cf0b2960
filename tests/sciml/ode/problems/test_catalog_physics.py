"""Closed forms, conservation and published values of the problems of the catalogue."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml.ode import (
    TRUTHS,
    Observation,
    RungeKutta4,
    System,
    fitzhugh_nagumo_ramsay,
    goodwin,
    hodgkin_huxley,
    hodgkin_huxley_stochastic,
    lorenz63,
    lorenz96,
    lotka_volterra,
    simulate,
    sir,
    slcp,
    van_der_pol,
    voltage_statistics,
)
from sciml.ode.problems import membrane
from sciml.ode.problems.fitzhugh_nagumo import GAMMA, ZETA
from sciml.ode.problems.fitzhugh_nagumo import vector_field as rudi
from sciml.ode.problems.hodgkin_huxley import PASSIVE
from sciml.ode.problems.hodgkin_huxley_stochastic import NoisyCurrent
from sciml.ode.problems.lorenz96 import SITES, seasonal_variance

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]
STEP = 0.1  # ms, between two values of a trace
DOUBLE = RungeKutta4(longest_step=0.01, dtype="float64")


def everything(system: System, interval: float, length: int) -> System:
    """Return the system with all states seen as they are."""
    first = system.initial_state
    assert isinstance(first, tuple)
    states = tuple(range(len(first)))
    observation = Observation.regular(states=states, interval=interval, length=length)
    return replace(system, observation=observation)


def at(system: System, *parameters: float, method: RungeKutta4 = DOUBLE) -> np.ndarray:
    """Return the noise-free observation of one parameter."""
    return simulate(system, parameters=np.array([parameters]), method=method).observation.values[0]


def test_an_epidemic_conserves_people():
    states = at(everything(sir(), 5.0, 33), *TRUTHS["sir"])
    np.testing.assert_allclose(states.sum(axis=1), 1e6, rtol=1e-12)
    assert (np.diff(states[:, 2]) > 0).all()


def test_the_final_size_of_an_epidemic_solves_its_equation():
    beta, gamma = TRUTHS["sir"]
    last = at(everything(sir(), 50.0, 11), beta, gamma)[-1]
    share = last[2] / 1e6
    assert share == pytest.approx(1 - np.exp(-beta / gamma * share), abs=1e-5)


def test_lotka_volterra_keeps_its_first_integral():
    """No trajectory changes δ x − γ ln x + β y − α ln y."""
    alpha, beta, gamma, delta = TRUTHS["lotka_volterra"]
    x, y = at(everything(lotka_volterra(), 0.1, 201), alpha, beta, gamma, delta).T
    kept = delta * x - gamma * np.log(x) + beta * y - alpha * np.log(y)
    np.testing.assert_allclose(kept, kept[0], rtol=1e-7)


def test_the_fixed_points_of_lorenz63():
    sigma, rho, beta = TRUTHS["lorenz63"]
    a = (beta * (rho - 1)) ** 0.5
    for state in [(0, 0, 0), (a, a, rho - 1), (-a, -a, rho - 1)]:
        rest = lorenz63().vector_field(0.0, state, (sigma, rho, beta))
        np.testing.assert_allclose(rest, 0, atol=1e-12)


def test_lorenz96_advects_without_changing_energy():
    state = jnp.asarray(np.random.default_rng(0).normal(size=SITES))
    force, amplitude = 8.0, 2.5
    rate = state @ lorenz96().vector_field(18.0, state, (force, amplitude))
    assert rate == pytest.approx(float((-state + force + amplitude) @ state), rel=1e-5)


def test_lorenz96_rests_where_all_sites_equal_the_forcing():
    rest = lorenz96().vector_field(0.0, jnp.full(SITES, 8.0), (8.0, 2.5))
    np.testing.assert_allclose(rest, 0, atol=1e-6)


def test_seasonal_variances_of_a_known_ring():
    length = len(lorenz96().observation.times)
    amplitudes = np.repeat([0.0, 0, 0, 0, 1, 2, 3, 4], length // 8)  # spin-up, then four seasons
    signs = np.resize([1.0, -1.0], SITES)
    found = seasonal_variance(jnp.asarray(amplitudes[:, None] * signs))
    np.testing.assert_allclose(found, [1, 4, 9, 16], rtol=1e-6)


def test_the_period_of_van_der_pol():
    x = at(everything(van_der_pol(), 0.01, 10_001), 1.0)[:, 0]
    down = np.nonzero((x[:-1] > 0) & (x[1:] <= 0))[0]
    crossings = down + x[down] / (x[down] - x[down + 1])
    assert 0.01 * np.diff(crossings)[3:].mean() == pytest.approx(6.6632869, abs=1e-4)


def test_a_weak_van_der_pol_oscillates_harmonically():
    x = at(everything(van_der_pol(), np.pi / 8, 17), 0.0)[:, 0]
    np.testing.assert_allclose(x, 2 * np.cos(np.arange(17) * np.pi / 8), atol=1e-7)


def test_goodwin_stays_positive_and_oscillates():
    states = at(goodwin(), *TRUTHS["goodwin"])
    assert (states > 0).all()
    z = states[100:, 2]
    assert ((z[1:-1] > z[:-2]) & (z[1:-1] > z[2:])).sum() >= 1


def test_both_forms_of_fitzhugh_nagumo_agree():
    state, (a, b) = (0.3, -0.7), (0.2, 0.4)
    voltage, recovery = rudi(0.0, state, (a, b))
    ours = fitzhugh_nagumo_ramsay().vector_field(0.0, state, (a, b, GAMMA))
    np.testing.assert_allclose(ours, (voltage - GAMMA * ZETA, recovery), rtol=1e-12)


def trace(*parameters: float) -> np.ndarray:
    seen = Observation.regular(interval=STEP, length=1201)
    method = replace(DOUBLE, longest_step=STEP / 10)
    return at(replace(hodgkin_huxley(), observation=seen), *parameters, method=method)


def test_the_neuron_rests_until_the_current_flows():
    v = trace(*TRUTHS["hodgkin_huxley"])
    count, rest, *_ = voltage_statistics(jnp.asarray(v), STEP, membrane.ON, membrane.OFF)
    assert count == 5
    assert rest == pytest.approx(-70, abs=0.5)
    silent = v[: round(membrane.ON / STEP)]
    assert np.abs(silent + 70).max() < 0.5
    assert 20 < v.max() < membrane.E_NA
    assert v.min() > membrane.E_K


def test_the_noisy_neuron_without_noise_is_the_other_one():
    theta = jnp.asarray([TRUTHS["hodgkin_huxley_stochastic"]]).at[0, 6].set(0.0)
    noise = hodgkin_huxley_stochastic().noise
    stochastic = np.asarray(noise.trace(jax.random.key(0), theta))[0]
    deterministic = trace(*TRUTHS["hodgkin_huxley"])
    np.testing.assert_allclose(theta[0, jnp.array([2, 3, 4, 5, 7])], [*PASSIVE.values()])
    early = slice(None, 400)  # before errors of phase add up over the spikes
    assert np.abs(stochastic[::10][early] - deterministic[early]).mean() < 1.0
    found, expected = (
        voltage_statistics(jnp.asarray(v), dt, membrane.ON, membrane.OFF)
        for v, dt in [(stochastic, 0.01), (deterministic, STEP)]
    )
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=0.05)


def test_noisy_neurons_are_the_same_however_many_go_together(monkeypatch):
    """Without noise; with it each has noise of its own."""
    noise = NoisyCurrent(step_ms=0.05)
    theta = jnp.tile(jnp.asarray(TRUTHS["hodgkin_huxley_stochastic"]), (7, 1))
    theta = theta.at[:, 0].add(jnp.arange(7.0))
    still, key = theta.at[:, 6].set(0.0), jax.random.key(0)
    whole = noise.apply(key, still, {})
    monkeypatch.setattr(sys.modules[NoisyCurrent.__module__], "TOGETHER", 3)
    np.testing.assert_allclose(noise.apply(key, still, {}), whole, rtol=1e-4)
    alike = noise.apply(key, jnp.tile(theta[:1], (7, 1)), {})
    assert len(np.unique(alike[:, 3])) == 7


def test_statistics_of_a_known_voltage():
    time = np.arange(0, 120, 0.01)
    v = jnp.asarray(np.where((time > 10) & (time < 110), 20 * np.sin(time), -60.0))
    count, rest, sd, mean, variance, skewness, kurtosis = voltage_statistics(v, 0.01, 10.0, 110.0)
    assert count == 16  # sin rises through −1/2 at 12 rad + 2π k below 110
    assert (rest, sd) == (pytest.approx(-60, abs=1e-3), pytest.approx(0, abs=1e-3))
    assert variance == pytest.approx(200, rel=0.02)
    assert kurtosis == pytest.approx(1.5, rel=0.02)
    assert abs(mean) < 0.5
    assert abs(skewness) < 0.05


def test_the_gates_have_finite_gradients_where_their_rates_are_zero_by_zero():
    slope = jax.grad(lambda v: membrane.rates(v, -60.0)[0].sum())
    assert jnp.isfinite(slope(-47.0))
    assert jnp.isfinite(slope(-45.0))


def test_the_pairs_of_slcp_have_the_stated_covariance():
    noise, theta = slcp().noise, jnp.asarray([[0.5, -1.0, 1.2, -0.7, 0.6]])
    first, below, last = (float(x[0]) for x in noise.cholesky(theta))
    triangle = np.array([[first, 0], [below, last]])
    s1, s2, rho = 1.44, 0.49, np.tanh(0.6)
    expected = [[s1**2, rho * s1 * s2], [rho * s1 * s2, s2**2]]
    np.testing.assert_allclose(triangle @ triangle.T, expected, atol=3e-6)
    drawn = noise.apply(jax.random.key(0), jnp.tile(theta, (20_000, 1)), {})
    pairs = np.asarray(drawn).reshape(-1, 2)
    np.testing.assert_allclose(np.cov(pairs.T), expected, rtol=0.02, atol=0.01)
    np.testing.assert_allclose(pairs.mean(axis=0), [0.5, -1.0], atol=0.02)
