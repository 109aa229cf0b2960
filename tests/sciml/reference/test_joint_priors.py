"""Joint priors through the samplers and nets, against closed forms and grids."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist

import sciml
from sciml.models import Dense
from sciml.models import Gaussian as GaussianNet
from sciml.ode import Gaussian, Static, Truncated
from sciml.reference import Chains, Population, importance, nuts, smc
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 0.5
MEAN, COVARIANCE = np.array([1.0, -1.0]), np.array([[1.0, 0.8], [0.8, 1.0]])
SEEN = np.array([0.2, -0.3])
FEW = Chains(warmup=200, draws=500, starts=Population(particles=200, moves=10))


def task(prior):
    return Static(name="joint", prior=prior, features=2, noise=Gaussian(sd=SD))


NORMAL = task({("a", "b"): dist.MultivariateNormal(MEAN, COVARIANCE)})
TURNED = task({("b", "a"): dist.MultivariateNormal(MEAN[::-1], COVARIANCE)})
SHARES = task({("s", "i"): dist.Dirichlet(jnp.array([2.0, 1.0, 3.0]))})
UNIT = {"a": dist.Uniform(0.0, 1.0), "b": dist.Uniform(0.0, 1.0)}
BELOW = task({("a", "b"): Truncated(UNIT, inside="a + b < 1")})
SAMPLERS = {
    "nuts": lambda *of: nuts(*of, settings=FEW),
    "smc": lambda *of: smc(*of, settings=Population(particles=2000, moves=20)),
}


def exact():
    """Mean, covariance and log evidence of a normal prior with a normal likelihood."""
    both = COVARIANCE + SD**2 * np.eye(2)
    gain = COVARIANCE @ np.linalg.inv(both)
    evidence = float(dist.MultivariateNormal(MEAN, both).log_prob(SEEN))
    return MEAN + gain @ (SEEN - MEAN), COVARIANCE - gain @ COVARIANCE, evidence


def by_grid(problem, log_prior):
    """Mean and log evidence where a + b < 1, by the rule of midpoints."""
    ticks = (np.arange(500) + 0.5) / 500
    a, b = (g.ravel() for g in np.meshgrid(ticks, ticks))
    theta = np.stack([a, b], axis=1)[a + b < 1]
    log = -np.square(theta - SEEN).sum(axis=1) / (2 * SD**2) - np.log(2 * np.pi * SD**2)
    weight = np.exp(log + log_prior(theta))
    return weight @ theta / weight.sum(), float(np.log(weight.sum() / 500**2))


def close(draws, mean, covariance, tolerance):
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean) / sd, tolerance)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=2 * tolerance * sd.max() ** 2)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_correlated_prior_gives_the_exact_posterior(name):
    mean, covariance, evidence = exact()
    found = SAMPLERS[name](NORMAL, SEEN)
    assert [*found.parameter.values] == ["a", "b"]
    close(found.posterior.values, mean, covariance, 0.1)
    if name == "smc":
        assert found.attrs["log_evidence"] == pytest.approx(evidence, abs=0.1)


def test_names_in_another_order_give_the_same_posterior():
    mean, covariance, _ = exact()
    found = smc(TURNED, SEEN[::-1], settings=Population(particles=2000, moves=20))
    assert [*found.parameter.values] == ["b", "a"]
    close(found.posterior.sel(parameter=["a", "b"]).values, mean, covariance, 0.1)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("problem", [SHARES, BELOW], ids=["simplex", "rule"])
def test_a_posterior_on_a_triangle_is_that_of_a_grid(problem, name):
    concentration = {"s": (2.0, 1.0, 3.0), "a": (1.0, 1.0, 1.0)}[problem.parameter_names[0]]
    whole = lambda x: np.concatenate([x, 1 - x.sum(axis=1, keepdims=True)], axis=1)  # noqa: E731
    flat = dist.Dirichlet(jnp.array(concentration), validate_args=False)
    mean, evidence = by_grid(problem, lambda x: np.asarray(flat.log_prob(whole(x))))
    found = SAMPLERS[name](problem, SEEN)
    draws = found.posterior.values
    assert (draws > 0).all()
    assert (draws.sum(axis=1) < 1).all()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02)
    if name == "smc":
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


def test_importance_gives_the_exact_posterior_of_a_correlated_prior():
    mean, covariance, evidence = exact()
    found = importance(fitted(NORMAL), NORMAL, seen(), draws=2000, proposals=8000)
    close(found.posterior.values[:, 0], mean, covariance, 0.1)
    assert float(found.log_evidence[0]) == pytest.approx(evidence, abs=0.05)


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


@pytest.mark.parametrize("problem", [SHARES, BELOW], ids=["simplex", "rule"])
def test_importance_corrects_a_net_on_a_triangle(problem, below):
    net = below if problem is BELOW else fitted(SHARES)
    known = smc(problem, SEEN, settings=Population(particles=2000, moves=20))
    found = importance(net, problem, seen(), draws=2000, proposals=8000)
    draws = found.posterior.values[:, 0]
    assert (draws.sum(axis=1) < 1).all()
    np.testing.assert_allclose(draws.mean(axis=0), known.posterior.mean("draw"), atol=0.02)
    assert float(found.log_evidence[0]) == pytest.approx(known.attrs["log_evidence"], abs=0.1)


def test_a_net_that_has_not_learned_the_rule_is_refused(below):
    strict = below.replace(scaling=replaced(below.scaling, inside=("a + b > 5",)))
    with pytest.raises(ValueError, match="0 of 1000 lie where a \\+ b > 5"):
        strict.sample(seen(), draws=100)


def replaced(scaling, **changes):
    from dataclasses import replace

    return replace(scaling, **changes)


def test_a_rule_on_a_parameter_that_is_not_estimated_is_left_out():
    data = sciml.simulate(BELOW, samples=300, noise=BELOW.noise).isel(parameter=[0])
    model = GaussianNet(embedding=Dense(width=8, depth=1))
    assert sciml.fit(model, data, epochs=1).scaling.inside == ()
    with pytest.raises(ValueError, match="the attribute inside"):
        sciml.fit(model, data.assign_attrs(inside="a < b"), epochs=1)
    online = sciml.fit(model, BELOW, epochs=1, noise=BELOW.noise, online=True)
    assert online.scaling.inside == ("a + b < 1",)
