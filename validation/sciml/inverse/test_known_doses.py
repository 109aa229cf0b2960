"""Posteriors of one compartment under a known dose, against quadrature."""

import numpy as np
import pytest
from numpyro.distributions import LogNormal, Uniform
from scipy.stats import lognorm, norm

import sciml
from sciml.ode import Bolus, Gaussian, Observation, System
from sciml.reference import Chains, importance, nuts

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 1.0


def drug() -> System:
    """u' = −k u after two doses, 6 hours apart."""
    return System(
        name="drug",
        vector_field=lambda _t, u, p: (-p[0] * u[0],),
        initial_state=(0.0,),
        prior={"k": LogNormal(-1.5, 0.4)},
        conditions={"dose": Uniform(5.0, 50.0)},
        doses=(Bolus(state=0, time=(0.0, 6.0), amount="dose"),),
        observation=Observation.regular(interval=2.0, length=6),
        noise=Gaussian(SD),
        time_unit="h",
    )


def exact(seen, dose: float) -> tuple[float, float]:
    """The posterior mean and standard deviation of k by quadrature."""
    k = np.linspace(0.01, 1.5, 20_000)[:, None]
    t = np.arange(0.0, 12.0, 2.0)
    clean = dose * (np.exp(-k * t) + np.where(t >= 6, np.exp(-k * (t - 6)), 0))
    log = lognorm.logpdf(k[:, 0], 0.4, scale=np.exp(-1.5)) + norm.logpdf(seen, clean, SD).sum(
        axis=1
    )
    weight = np.exp(log - log.max())
    mean = np.average(k[:, 0], weights=weight)
    return mean, np.sqrt(np.average((k[:, 0] - mean) ** 2, weights=weight))


@pytest.fixture(scope="module")
def unseen():
    return sciml.simulate(drug(), 40, seed=1, noise=drug().noise)


@pytest.mark.parametrize("row", [0, 1])
def test_nuts_under_each_dose_is_quadrature(unseen, row):
    found = nuts(drug(), unseen.observation[row], settings=Chains(draws=500))
    mean, sd = exact(unseen.observation.values[row], float(unseen.dose[row]))
    assert abs(float(found.posterior.mean()) - mean) < 0.15 * sd
    assert abs(np.log(float(found.posterior.std()) / sd)) < 0.1


def test_one_net_is_right_under_all_doses(unseen):
    data = sciml.simulate(drug(), 4000, seed=0)
    net = sciml.models.SplineFlow(width=32, layers=2)
    fit = sciml.fit(net, data, 0.1, epochs=60, noise=drug().noise)
    wanted = np.array(
        [exact(x, float(d)) for x, d in zip(unseen.observation.values, unseen.dose, strict=True)]
    )
    plain = fit.sample(unseen, 500).posterior[..., 0]
    exactly = importance(fit, drug(), unseen, draws=500).posterior[..., 0]
    for drawn, bound in ((plain, 0.35), (exactly, 0.1)):
        assert np.abs((drawn.mean("draw") - wanted[:, 0]) / wanted[:, 1]).mean() < bound
    assert np.corrcoef(np.log(plain.std("draw")), np.log(wanted[:, 1]))[0, 1] > 0.9
