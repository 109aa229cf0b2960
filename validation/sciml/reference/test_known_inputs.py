"""Populations and refinements under conditions of each observation, against closed forms."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy import stats

import sciml
from sciml.ode import Gaussian, Static
from sciml.reference import Hyper, importance, population

SD = 0.3


def line(unit: float = 1.0) -> Static:
    """x = θ · condition / unit + error: the dose in any unit, and the weight as it is."""
    return Static(
        "line",
        {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 1.0)},
        2,
        Gaussian(sd=SD),
        solution=lambda p, c: jnp.stack([p[0] * c["dose"] / unit, p[1] * c["weight"]]),
        conditions={"dose": dist.Uniform(0.5 * unit, 2.0 * unit), "weight": [1.0, 2.0]},
    )


def exact(data: xr.DataArray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each posterior by itself."""
    slope = np.stack([data.dose.values / unit, data.weight.values], axis=1)
    variance = 1 / (1 + slope**2 / SD**2)
    return variance * slope * data.values / SD**2, np.sqrt(variance)


@dataclass(frozen=True)
class Exact:
    """A net that answers with the exact posterior, by the conditions that observations carry."""

    unit: float = 1.0

    def sample(self, data, draws, seed):
        mean, sd = exact(data, self.unit)
        noise = np.random.default_rng(seed).normal(size=(draws, *mean.shape))
        dims = ("draw", "sample", "parameter")
        return xr.Dataset(
            {"posterior": (dims, mean + sd * noise)}, {"parameter": ["first", "second"]}
        )

    def log_prob(self, data, parameters):
        value = stats.norm.logpdf(parameters, *exact(data, self.unit)).sum(1)
        return xr.DataArray(value, dims="sample")


def observed(unit: float = 1.0, count: int = 9) -> xr.Dataset:
    """Observations of one θ under conditions of their own, labelled."""
    task, rng = line(unit), np.random.default_rng(5)
    given = {"dose": unit * rng.uniform(0.5, 2.0, count), "weight": rng.choice([1.0, 2.0], count)}
    theta = np.tile([0.7, -0.4], (count, 1))
    data = sciml.simulate(task, parameters=theta, conditions=given, noise=task.noise)
    return data.assign_coords(cell=("sample", list("abcdefghi")[:count]))


@pytest.mark.parametrize("likelihood", [False, True])
def test_a_population_under_conditions_is_that_of_quadrature(likelihood):
    """Each individual has a dose of its own, and so a precision of its own."""
    data = observed(1e6).isel(sample=[*range(8, -1, -1)])
    net, size = Exact(1e6), {"draws": 400, "proposals": 300}
    found = population(
        net, line(1e6), data, likelihood=likelihood, hyper=Hyper(correlation=None), **size
    )
    slope = data.dose.values / 1e6
    mu, tau = np.meshgrid(np.linspace(-3, 3, 241), np.linspace(1e-3, 3, 240))
    logs = stats.norm.logpdf(mu) + stats.norm.logpdf(tau)
    for x, h in zip(data.observation.values[:, 0], slope, strict=True):
        logs += stats.norm.logpdf(x, mu * h, np.hypot(h * tau, SD))
    share = np.exp(logs - logs.max())
    share /= share.sum()
    for drawn, grid in ((found["mean"], mu), (found["spread"], tau)):
        wanted = (share * grid).sum()
        sd = np.sqrt((share * (grid - wanted) ** 2).sum())
        drawn = drawn.sel(parameter="first")
        assert float(drawn.mean()) == pytest.approx(wanted, abs=0.35 * sd)
        assert float(drawn.std()) == pytest.approx(sd, rel=0.35)


@pytest.fixture(scope="module")
def fit():
    """A fit that knows both conditions."""
    task = line()
    data = sciml.simulate(task, 4000, noise=task.noise)
    return sciml.fit(sciml.models.Gaussian(width=32, depth=2), data, epochs=30)


def test_refined_and_replicated_under_its_own_conditions(fit):
    """The refined fit knows the dose of its observation; replicates are of each one's own."""
    task, data = line(), observed()
    one = data.isel(sample=[2])
    sharp = sciml.refine(fit, task, one, rounds=2, simulations=800, epochs=60)
    drawn = sharp.sample(one, 400).posterior[:, 0]
    mean, sd = exact(one.observation, 1.0)
    np.testing.assert_allclose((drawn.mean("draw") - mean[0]) / sd[0], 0, atol=0.5)
    posterior = importance(Exact(), task, data, draws=200)
    posterior = posterior.assign_coords(
        {"dose": data.dose, "weight": data.weight, "parameter": ["first", "second"]}
    )
    copies = sciml.diagnose.replicate(
        lambda p: sciml.simulate(task, parameters=p, noise=task.noise), posterior, draws=200
    )
    slope = np.stack([data.dose, data.weight], axis=1)
    wanted = slope * posterior.posterior.mean("draw").values
    np.testing.assert_allclose(copies.mean("draw"), wanted, atol=0.15)


def test_a_population_far_from_the_training_is_doubted(fit, caplog):
    """Doses five times those of the training: nothing that the net says there is known."""
    data = observed().assign_coords(dose=observed().dose * 5)
    found = population(fit, line(), data, draws=100, proposals=100)
    assert found.flagged.all()
    assert "9 of 9 individuals are unlike the training" in found.attrs["verdict"]
    assert "unlike the training" in caplog.text
