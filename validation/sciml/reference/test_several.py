"""Populations over many of them, beyond the prior, and beside a sampler of the whole hierarchy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

import sciml
from sciml.diagnose import c2st
from sciml.ode import Gaussian as Error
from sciml.ode import Observation, Static, System
from sciml.reference import Hyper, population

FEW = {"draws": 400, "proposals": 200, "hyper": Hyper(correlation=None)}
SEEN = 6
WITHIN = 0.7  # spread of populations, in that of the prior


@pytest.fixture(scope="module")
def line():
    """Return θ ~ N(0, 1) seen with an error of 0.5."""
    return Static("line", {"theta": dist.Normal(0.0, 1.0)}, 1, Error(sd=0.5))


@pytest.fixture(scope="module")
def fit(line):
    """Return a net that has learned it."""
    data = sciml.simulate(line, 4000, noise=line.noise)
    return sciml.fit(sciml.models.Gaussian(width=32, depth=1), data, 0.1, epochs=40)


def cells(mean, spread, count, seed):
    """Return observations of so many individuals."""
    rng = np.random.default_rng(seed)
    theta = mean + spread * rng.normal(size=(count, 1))
    return sciml.simulate(
        Static("line", {"theta": dist.Normal(0.0, 1.0)}, 1, Error(sd=0.5)),
        parameters=theta,
        noise=Error(sd=0.5),
        seed=seed,
    )


def test_intervals_of_the_mean_hold_their_share(line, fit):
    """Of 100 populations drawn from the hyperprior, by a trained net: 80 %, known to 4."""
    rng, ranks = np.random.default_rng(0), []
    for seed in range(100):
        mean, spread = rng.normal(), abs(rng.normal())
        found = population(fit, line, cells(mean, spread, 8, seed), seed=seed, **FEW)
        drawn = (
            (found["mean"][:, 0].values < mean).mean(),
            (found.spread[:, 0].values < spread).mean(),
        )
        ranks.append(drawn)
    inside = (np.abs(np.array(ranks) - 0.5) < 0.4).mean(axis=0)
    assert (inside > 0.68).all()  # three standard deviations
    assert inside[0] < 0.92


def test_a_population_beyond_the_prior_is_refused(line, fit):
    """There the net has seen nothing."""
    with pytest.raises(ValueError, match="lie beyond"):
        population(fit, line, cells(8.0, 0.5, 8, 0), **FEW)


def decay():
    """Return du/dt = −rate u of an unknown start, seen six times."""
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0],),
        initial_state=lambda p: (p[1],),
        prior={"rate": dist.LogNormal(0.0, 0.7), "start": dist.LogNormal(0.7, 0.7)},
        observation=Observation.regular(states=(0,), interval=0.4, length=SEEN),
        noise=Error(sd=0.1),
    )


def whole(x, times):
    """Say the hierarchy of decays to numpyro, each individual with parameters of its own."""
    mean = numpyro.sample("mean", dist.Normal(0, 1).expand([2]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(1).expand([2]).to_event(1))
    with numpyro.plate("individual", len(x)):
        free = numpyro.sample("free", dist.Normal(0, 1).expand([2]).to_event(1))
    theta = jnp.exp(jnp.array([0.0, 0.7]) + 0.7 * (mean + sd * free))
    clean = theta[:, 1:] * jnp.exp(-theta[:, :1] * times)
    numpyro.sample("x", dist.Normal(clean, 0.1).to_event(2), obs=x)


@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")  # of individuals far from the prior
def test_intervals_of_a_trained_net_hold_their_share_for_mean_spread_and_members():
    """Of 40 populations of 4, 10 or 20 individuals, of two parameters: 80 % where it trusts them.

    Most lie where the net has learned; those that do not are told, and their intervals are narrow.
    """
    problem = replace(decay(), noise=Error(sd=0.3))
    data = sciml.simulate(problem, 4000, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=64, depth=2), data, 0.1, epochs=40)
    told = FEW | {"proposals": 300, "hyper": Hyper(mean=WITHIN, spread=WITHIN, correlation=None)}
    rng, ranks, trusted = np.random.default_rng(11), {"mean": [], "spread": [], "posterior": []}, 0
    for seed in range(40):
        mean, sd = WITHIN * rng.normal(size=2), WITHIN * np.abs(rng.normal(size=2))
        free = mean + sd * rng.normal(size=(int(rng.choice([4, 10, 20])), 2))
        theta = np.exp(np.array([0.0, 0.7]) + 0.7 * free)
        seen = sciml.simulate(problem, parameters=theta, noise=problem.noise, seed=100 + seed)
        found = population(fit, problem, seen, seed=seed, **told)
        if not found.verdict.startswith("the chains agree"):
            continue
        trusted += 1
        known = {"mean": np.array([0.0, 0.7]) + 0.7 * mean, "spread": 0.7 * sd, "posterior": theta}
        for name, truth in known.items():
            below = (found[name].values < truth).mean(axis=0)
            ranks[name].append(np.atleast_2d(below))
    assert trusted >= 30
    for name, each in ranks.items():
        inside = (np.abs(np.concatenate(each) - 0.5) < 0.4).mean(axis=0)
        sd = np.sqrt(0.16 / trusted)
        assert (inside > 0.8 - 3 * sd).all(), name  # of one parameter; then of two
        assert 0.8 - 3 * sd / np.sqrt(2) < inside.mean() < 0.95, name


def test_the_whole_hierarchy_sampled_at_once_says_the_same():
    """A net of 4000 simulations, weighed by the likelihood, beside NUTS over all of θ, μ and σ."""
    problem = decay()
    data = sciml.simulate(problem, 4000, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=64, depth=2), data, 0.1, epochs=40)
    rng = np.random.default_rng(3)
    theta = np.exp(np.array([0.3, 0.9]) + np.array([0.3, 0.2]) * rng.normal(size=(16, 2)))
    seen = sciml.simulate(problem, parameters=theta, noise=problem.noise, seed=5)
    sampler = MCMC(NUTS(whole), num_warmup=500, num_samples=1000, progress_bar=False)
    sampler.run(jax.random.key(0), seen.observation.values, seen.time.values)
    known = sampler.get_samples()
    right = np.concatenate([known["mean"], known["sd"]], axis=1) * 0.7
    right[:, :2] += np.array([0.0, 0.7])
    found = population(
        fit, problem, seen, likelihood=True, hyper=Hyper(correlation=None), proposals=400
    )
    mine = np.concatenate([found["mean"].values, found.spread.values], axis=1)
    assert found.attrs["variance"] < 1
    assert float(c2st(mine, right).score) < 0.6
    own = np.exp(np.log(found.posterior).mean("draw").values)
    np.testing.assert_allclose(own, np.exp(np.log(theta)), rtol=0.35)
