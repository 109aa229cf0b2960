"""Draws of a net that hardly learned, weighted until they follow a posterior of closed form."""

import math

import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist

import sciml
from sciml.ode import Gaussian, Static
from sciml.reference import importance

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 0.5
MEASURED = np.array([[0.8, -1.0], [0.1, 0.4]])


@pytest.mark.validation
def test_a_net_of_few_updates_is_corrected():
    prior = {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 2.0)}
    problem = Static(name="line", prior=prior, features=2, noise=Gaussian(sd=SD))
    variances = np.array([1.0, 4.0])  # prior and measurement are normal
    mean = MEASURED * variances / (variances + SD**2)
    sd = 1 / np.sqrt(1 / variances + 1 / SD**2)
    values = MEASURED.astype(np.float32)
    seen = xr.Dataset({"observation": (("sample", "feature"), values)}, {"sample": [0, 1]})
    data = sciml.simulate(problem, samples=500, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(width=16, depth=1), data, epochs=10)
    found = importance(fit, problem, seen, draws=2000, proposals=8000)
    assert (found.efficiency > 0.4).all()
    error = sd / math.sqrt(0.4 * 8000)
    off = found.posterior.mean("draw").values - mean
    np.testing.assert_allclose(off / error, 0, atol=4)
    rough = fit.sample(seen, draws=8000).posterior.mean("draw").values - mean
    assert np.abs(rough / error).max() > 8
