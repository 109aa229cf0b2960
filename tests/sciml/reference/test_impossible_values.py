"""What a noise never makes is refused, or has no density; what it makes of zero has none to add."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import Normal, Uniform
from scipy.stats import lognorm, norm

from sciml.baselines.residual import residual
from sciml.ode import (
    AR1,
    Binomial,
    Combined,
    Gaussian,
    LogNormal,
    Missing,
    NegativeBinomial,
    PerChannel,
    Poisson,
    RungeKutta4,
    Static,
    lotka_volterra,
    simulate,
)
from sciml.reference import Population, log_likelihood, smc, target

pytestmark = pytest.mark.usefixtures("quick_compilation")

COUNTS = {
    "events": (Poisson(), [0.0, 3.0, 0.5], "0.5; each must be a whole number from 0 to inf"),
    "clusters": (NegativeBinomial(concentration=1.0), [0.0, -1.0, 2.0], "the first -1"),
    "tests": (Binomial(trials=5, population=9.0), [6.0, 0.0, 2.0], "the first 6; .* 0 to 5"),
    "gaps": (Missing(Poisson(), fraction=0.5), [np.nan, 0.0, 0.1], "Poisson, the first 0.1"),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_observations_that_are_no_counts_are_refused(kind):
    noise, seen, said = COUNTS[kind]
    prior = {name: Normal(0.0, 1.0) for name in "abc"}
    task = Static("task", prior, 3, noise, observed=("a", "b", "c"))
    with pytest.raises(ValueError, match=said):
        target(task, np.array(seen), noise, RungeKutta4())
    target(task, np.array([2.0, 0.0, 1.0]), noise, RungeKutta4())


def test_channels_of_counts_are_asked_for_whole_numbers_alone():
    problem = replace(lotka_volterra(), observed=("prey", "predators"))
    noise = PerChannel({"prey": Gaussian(sd=1.0), "predators": Poisson()})
    seen = np.full((len(problem.observation.times), 2), [0.5, 3.0])
    target(problem, seen, noise, RungeKutta4())
    with pytest.raises(ValueError, match=rf"{len(seen)} of .* are no counts of Poisson, the first"):
        target(problem, seen[:, ::-1], noise, RungeKutta4())


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("sd", [0.3, 0.6])
def test_log_normal_noise_keeps_signs_and_zeros(sign, sd):
    clean, seen = np.array([1.0, 2.0, 5.0]), np.array([1.1, 1.5, 7.0])
    wanted = lognorm(sd, scale=clean).logpdf(seen).sum()
    for more in ([], [0.0, 0.0]):  # as a concentration before the first dose
        pair = (jnp.asarray([*sign * each, *more]) for each in (seen, clean))
        assert log_likelihood(LogNormal(sd=sd), *pair, {}) == pytest.approx(wanted, rel=1e-5)
    for odd in (np.where(clean == 2.0, 0.0, seen), np.where(clean == 2.0, -seen, seen)):
        value = log_likelihood(LogNormal(sd=sd), jnp.asarray(sign * odd), jnp.asarray(clean), {})
        assert value == -np.inf


@pytest.mark.parametrize("noise", [Gaussian(sd=0.0), LogNormal(sd=0.0), AR1(sd=0.0)])
def test_no_error_at_all_has_no_likelihood(noise):
    task = Static("size", {"a": Uniform(1.0, 2.0)}, 1, noise)
    with pytest.raises(ValueError, match=r"sd is 0, so .* pass a noise with sd above 0"):
        smc(task, np.array([1.5]))


def test_a_relative_error_of_nothing_is_none():
    noise = Combined(sd=0.0, share=0.2)  # as a concentration before the first dose
    seen, clean = jnp.array([0.0, 1.1, jnp.nan]), jnp.array([0.0, 1.0, 0.0])

    def density(scale, seen):
        return log_likelihood(noise, seen, clean * scale, {})

    wanted = norm(1.0, 0.2).logpdf(1.1)
    assert density(1.0, seen) == pytest.approx(wanted, rel=1e-5)
    slope = float(density(1.01, seen) - density(0.99, seen)) / 0.02
    assert float(jax.grad(density)(1.0, seen)) == pytest.approx(slope, rel=1e-2)
    assert density(1.0, seen.at[0].set(0.3)) == -np.inf
    np.testing.assert_allclose(residual(noise, seen, clean), [0.0, 0.5, 0.0], rtol=1e-5)
    back = jax.grad(lambda scale: (residual(noise, seen, clean * scale) ** 2).sum())(1.0)
    assert np.isfinite(back)


@pytest.mark.slow
def test_what_no_draw_can_give_is_told_at_once():
    task = Static("size", {"a": Uniform(1.0, 2.0)}, 1, LogNormal(sd=0.3))
    seen = simulate(task, parameters=[[1.5]]).observation[0]
    with pytest.raises(ValueError, match=r"no one of 50 draws of the prior .*a 0 under LogNormal"):
        smc(task, 0 * seen, settings=Population(particles=50))
