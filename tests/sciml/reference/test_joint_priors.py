"""Joint priors through the samplers and nets, against closed forms and grids."""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy import stats

import sciml
from sciml.models import Dense
from sciml.models import Gaussian as GaussianNet
from sciml.ode import Gaussian, Static, Truncated
from sciml.reference import Hyper, Population, importance, population, smc, trials
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 0.5
MEAN, COVARIANCE = np.array([1.0, -1.0]), np.array([[1.0, 0.8], [0.8, 1.0]])
SEEN = np.array([0.2, -0.3])


def task(prior):
    return Static(name="joint", prior=prior, features=2, noise=Gaussian(sd=SD))


NORMAL = task({("a", "b"): dist.MultivariateNormal(MEAN, COVARIANCE)})
TURNED = task({("b", "a"): dist.MultivariateNormal(MEAN[::-1], COVARIANCE)})
SHARES = task({("s", "i"): dist.Dirichlet(jnp.array([2.0, 1.0, 3.0]))})
UNIT = {"a": dist.Uniform(0.0, 1.0), "b": dist.Uniform(0.0, 1.0)}
BELOW = task({("a", "b"): Truncated(UNIT, inside="a + b < 1")})
MANY = Population(particles=2000, moves=20)


def exact():
    """Mean, covariance and log evidence of a normal prior with a normal likelihood."""
    both = COVARIANCE + SD**2 * np.eye(2)
    gain = COVARIANCE @ np.linalg.inv(both)
    evidence = float(dist.MultivariateNormal(MEAN, both).log_prob(SEEN))
    return MEAN + gain @ (SEEN - MEAN), COVARIANCE - gain @ COVARIANCE, evidence


def by_grid(problem):
    """Mean and log evidence on the triangle, by the rule of midpoints."""
    concentration = (2.0, 1.0, 3.0) if problem is SHARES else (1.0, 1.0, 1.0)
    ticks = (np.arange(500) + 0.5) / 500
    a, b = (g.ravel() for g in np.meshgrid(ticks, ticks))
    theta = np.stack([a, b], axis=1)[a + b < 1 - 1e-6]
    log = -np.square(theta - SEEN).sum(axis=1) / (2 * SD**2) - np.log(2 * np.pi * SD**2)
    whole = np.concatenate([theta, 1 - theta.sum(axis=1, keepdims=True)], axis=1)
    weight = np.exp(log + stats.dirichlet(concentration).logpdf(whole.T))
    return weight @ theta / weight.sum(), float(np.log(weight.sum() / 500**2))


def inside(draws, mean):
    """Draws lie on the triangle, and have this mean."""
    assert (draws > 0).all()
    assert (draws.sum(axis=1) < 1).all()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02)


def close(draws, mean, covariance, tolerance):
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean) / sd, tolerance)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=2 * tolerance * sd.max() ** 2)


@pytest.mark.slow
def test_smc_gives_it_with_names_in_another_order():
    mean, covariance, evidence = exact()
    found = smc(TURNED, SEEN[::-1], settings=MANY)
    assert [*found.parameter.values] == ["b", "a"]
    close(found.posterior.sel(parameter=["a", "b"]).values, mean, covariance, 0.1)
    assert found.attrs["log_evidence"] == pytest.approx(evidence, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [SHARES, BELOW], ids=["simplex", "rule"])
def test_smc_on_a_triangle_gives_what_a_grid_gives(problem):
    mean, evidence = by_grid(problem)
    found = smc(problem, SEEN, settings=MANY)
    inside(found.posterior.values, mean)
    assert found.attrs["log_evidence"] == pytest.approx(evidence, abs=0.1)


def fitted(problem, epochs=30):
    data = sciml.simulate(problem, samples=2000, noise=problem.noise)
    recipe = Recipe(batch=100, learning_rate=3e-3)
    return sciml.fit(
        GaussianNet(embedding=Dense(width=32, depth=1)), data, epochs=epochs, recipe=recipe
    )


@pytest.fixture(scope="module")
def below():
    return fitted(BELOW)


def seen(values=SEEN):
    return xr.Dataset({"observation": (("sample", "feature"), np.float32(values)[None])})


@pytest.mark.slow
def test_importance_gives_the_exact_posterior_of_a_correlated_prior():
    mean, covariance, evidence = exact()
    found = importance(fitted(NORMAL), NORMAL, seen(), draws=2000, proposals=8000)
    close(found.posterior.values[:, 0], mean, covariance, 0.1)
    assert float(found.log_evidence[0]) == pytest.approx(evidence, abs=0.05)


@pytest.mark.slow
def test_a_net_puts_nothing_where_the_rule_is_broken(below, tmp_path):
    found = below.sample(seen(), draws=3000)
    draws = found.posterior.values[:, 0]
    assert draws.shape == (3000, 2)
    assert (draws.sum(axis=1) < 1).all()
    assert 0.3 < float(found.inside[0]) < 1
    ticks = (np.arange(150) + 0.5) / 150
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    density = np.exp(below.log_prob(seen().isel(sample=[0] * len(grid)), grid).values)
    assert density.mean() == pytest.approx(1, abs=0.03)
    assert (density[grid.sum(axis=1) >= 1] == 0).all()
    back = sciml.load(below.save(tmp_path / "fit"))
    assert back.scaling == below.scaling
    np.testing.assert_array_equal(
        back.sample(seen(), draws=20).posterior, below.sample(seen(), draws=20).posterior
    )
    assert below.predict(seen()).estimate.sum() < 1


@pytest.mark.slow
@pytest.mark.parametrize("problem", [SHARES, BELOW], ids=["simplex", "rule"])
def test_importance_corrects_a_net_on_a_triangle(problem, below):
    net = below if problem is BELOW else fitted(SHARES)
    mean, evidence = by_grid(problem)
    found = importance(net, problem, seen(), draws=2000, proposals=8000)
    inside(found.posterior.values[:, 0], mean)
    assert float(found.log_evidence[0]) == pytest.approx(evidence, abs=0.05)


@pytest.mark.slow
def test_a_net_that_has_not_learned_the_rule_is_refused(below):
    strict = below.replace(scaling=replace(below.scaling, inside=("a + b > 5",)))
    with pytest.raises(ValueError, match="0 of 1000 lie where a \\+ b > 5"):
        strict.sample(seen(), draws=100)


@pytest.mark.slow
def test_a_rule_on_a_parameter_that_is_not_estimated_is_left_out():
    data = sciml.simulate(BELOW, samples=300, noise=BELOW.noise).isel(parameter=[0])
    model = GaussianNet(embedding=Dense(width=8, depth=1))
    assert sciml.fit(model, data, epochs=1).scaling.inside == ()
    with pytest.raises(ValueError, match="the attribute inside"):
        sciml.fit(model, data.assign_attrs(inside="a < b"), epochs=1)


@dataclass(frozen=True)
class Exact:
    """A net that answers with the exact posterior under a normal prior."""

    covariance: np.ndarray

    def parts(self, data):
        gain = self.covariance @ np.linalg.inv(self.covariance + SD**2 * np.eye(2))
        return MEAN + (data.values - MEAN) @ gain.T, self.covariance - gain @ self.covariance

    def sample(self, data, draws, seed):
        mean, covariance = self.parts(data)
        noise = np.random.default_rng(seed).normal(size=(draws, *mean.shape))
        theta = mean + noise @ np.linalg.cholesky(covariance).T
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, theta)}, {"parameter": ["a", "b"]})

    def log_prob(self, data, parameters):
        mean, covariance = self.parts(data)
        off = np.asarray(parameters) - mean
        return xr.DataArray(stats.multivariate_normal.logpdf(off, cov=covariance), dims="sample")


@pytest.mark.slow
@pytest.mark.parametrize("covariance", [COVARIANCE, np.diag(np.diag(COVARIANCE))])
def test_individuals_count_the_same_whatever_correlated_prior_their_net_had(covariance):
    """Trials multiply to the closed form; a population is that of the marginals."""
    x = np.random.default_rng(2).normal(size=(12, 2)) * 0.9 + [0.6, -0.2]
    data = xr.DataArray(np.float32(x), dims=("sample", "feature"))
    problem = task({("a", "b"): dist.MultivariateNormal(MEAN, covariance)})
    net = Exact(covariance)
    same = trials(net, problem, data, draws=2000).posterior[:, 0].values
    whole = np.linalg.inv(np.linalg.inv(covariance) + 12 * np.eye(2) / SD**2)
    mean = whole @ (np.linalg.inv(covariance) @ MEAN + data.values.sum(axis=0) / SD**2)
    close(same, mean, whole, 0.12)
    few = {"draws": 400, "proposals": 400, "hyper": Hyper(correlation=None)}
    found = population(net, problem, data, **few)
    for i, own in enumerate(data.values.T):
        mu, spread = by_quadrature(own, MEAN[i])
        for drawn, (right, sd) in ((found["mean"], mu), (found.spread, spread)):
            assert float(drawn[:, i].mean()) == pytest.approx(right, abs=0.35 * sd)


def by_quadrature(x, middle):
    """Mean and sd of μ ~ N(middle, 1) and of σ ~ half-normal, of one parameter."""
    mu, tau = np.meshgrid(middle + np.linspace(-3, 3, 241), np.linspace(1e-3, 3, 240))
    logs = stats.norm.logpdf(mu, middle) + stats.norm.logpdf(tau)
    logs += stats.norm.logpdf(x[:, None, None], mu, np.hypot(tau, SD)).sum(axis=0)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means = [(share * each).sum() for each in (mu, tau)]
    return [
        (m, np.sqrt((share * (v - m) ** 2).sum())) for v, m in zip((mu, tau), means, strict=True)
    ]
