"""Populations and refinements under conditions of each observation, against closed forms."""

import numpy as np
import pytest
from scipy import stats

import sciml
from sciml.reference import Hyper, importance, population
from tests.sciml.reference.test_known_inputs import SD, Exact, exact, line, observed


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
