"""Draws that are wider than the posterior are told so by simulations alone."""

import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr

import sciml
from sciml.ode import BlackBox
from sciml.reference.sharpness import too_wide

SLOPES = np.random.default_rng(0).normal(size=(12, 2))
SD = 0.5
PRIOR = {"a": dist.Normal(0.0, 10.0), "b": dist.Normal(0.0, 10.0)}


def line(p, rng):
    """Return A θ + ε, or fail, once in twenty."""
    if rng.random() < 0.05:
        raise RuntimeError("the instrument is broken")
    return SLOPES @ np.array([p["a"], p["b"]]) + SD * rng.normal(size=12)


class Widened:
    """Draws of the exact posterior of `line`, `times` as wide."""

    def __init__(self, times):
        self.times = times

    def sample(self, observed, draws, seed):
        """Return them."""
        covariance = np.linalg.inv(np.eye(2) / 100 + SLOPES.T @ SLOPES / SD**2)
        mean = observed.values @ SLOPES @ covariance / SD**2
        noise = np.random.default_rng(seed).normal(size=(draws, 1, 2))
        theta = mean + self.times * noise @ np.linalg.cholesky(covariance).T
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, theta)}, {"parameter": ["a", "b"]})


def seen(count):
    """Return observations of `line`."""
    theta = np.random.default_rng(1).normal(size=(count, 2))
    return xr.DataArray(theta @ SLOPES.T, dims=("sample", "feature"))


@pytest.mark.parametrize("times", [1.0, 2.0, 4.0])
def test_width_is_told(times):
    """Of a Gaussian posterior the ratio is the true one."""
    found = too_wide(Widened(times), BlackBox(line, PRIOR), seen(2), seed=0)
    assert found.dims == ("sample", "parameter")
    np.testing.assert_allclose(found, times, rtol=0.3)


def test_too_few_simulations_tell_nothing():
    """Where the simulator fails, there is no ratio."""

    def broken(p, rng):
        return line(p, rng) if rng.random() < 0.1 else np.full(12, np.nan)

    assert np.isnan(too_wide(Widened(1.0), BlackBox(broken, PRIOR), seen(1), seed=0)).all()


def test_what_needs_more_than_simulations_is_refused():
    """One line each."""
    box = BlackBox(line, PRIOR)
    with pytest.raises(TypeError, match="'line' is a BlackBox"):
        sciml.reference.nuts(box, seen(1)[0], noise=sciml.ode.Gaussian(sd=1.0))
    with pytest.raises(ValueError, match="noise is Gaussian"):
        sciml.simulate(box, 3, noise=sciml.ode.Gaussian(sd=1.0))


def test_parameters_of_a_black_box_are_put_in_order():
    """By their names; a function without noise gives what it gives."""
    box = BlackBox(lambda p: np.array([p["a"], 10 * p["b"]]), PRIOR)
    given = xr.DataArray([[2.0, 1.0]], {"parameter": ["b", "a"]}, ("sample", "parameter"))
    np.testing.assert_allclose(sciml.simulate(box, parameters=given).observation, [[1.0, 20.0]])
