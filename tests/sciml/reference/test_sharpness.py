"""Draws that are wider than the posterior are told so by simulations alone."""

import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr
from scipy import stats

import sciml
from sciml.ode import BlackBox, Gaussian, Static
from sciml.reference.sharpness import too_wide

SLOPES = np.random.default_rng(0).normal(size=(12, 2))
SD = 0.5
PRIOR = {"a": dist.Normal(0.0, 10.0), "b": dist.Normal(0.0, 10.0)}


def line(p, rng):
    """Return A θ + ε, or fail, once in twenty."""
    if rng.random() < 0.05:
        raise RuntimeError("the instrument is broken")
    return SLOPES @ np.array([p["a"], p["b"]]) + SD * rng.normal(size=12)


COVARIANCE = np.linalg.inv(np.eye(2) / 100 + SLOPES.T @ SLOPES / SD**2)


class Widened:
    """Draws of the exact posterior of `line`, `times` as wide."""

    def __init__(self, times):
        self.root = times * np.linalg.cholesky(COVARIANCE)

    def mean(self, data):
        """Return where the posterior of each observation is."""
        return data.values @ SLOPES @ COVARIANCE / SD**2

    def sample(self, data, draws, seed):
        """Return them."""
        noise = np.random.default_rng(seed).normal(size=(draws, len(data), 2))
        theta = self.mean(data) + noise @ self.root.T
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, theta)}, {"parameter": ["a", "b"]})

    def log_prob(self, data, parameters):
        """Return their density."""
        off = np.asarray(parameters) - self.mean(data)
        values = stats.multivariate_normal.logpdf(off, cov=self.root @ self.root.T)
        return xr.DataArray(values, dims="sample")


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


def weighed(times):
    """Return what is said of draws of which one parameter has a wrong width."""
    task = Static("line", PRIOR, 12, Gaussian(sd=SD), solution=lambda p: SLOPES @ p)
    return sciml.reference.trust(Widened(np.array([[1.0], [times]])), task, seen(3))


@pytest.mark.parametrize("times", [1.0, 1.7])
def test_weights_tell_width_where_few_draws_would_move(times):
    """Their C2ST is content with both."""
    said = weighed(times)
    assert (said.c2st < 0.75).all()
    np.testing.assert_allclose(said.too_wide.sel(parameter="b"), times, rtol=0.1)
    assert said.doubted.values.tolist() == [times != 1.0] * 3


class FarOut:
    """Exact draws, of which one draw in fifty lies `far` times as far out."""

    exact, far, share = Widened(1.0), 15.0, 0.02

    def sample(self, data, draws, seed):
        """Return them."""
        found, mean = self.exact.sample(data, draws, seed), self.exact.mean(data)
        out = np.random.default_rng(seed + 1).random((draws, len(data), 1)) < self.share
        return found.assign(posterior=mean + (found.posterior - mean) * np.where(out, self.far, 1))

    def log_prob(self, data, parameters):
        """Return their density."""
        off = np.asarray(parameters) - self.exact.mean(data)
        parts = [
            stats.multivariate_normal.logpdf(off, cov=k * COVARIANCE) for k in (1, self.far**2)
        ]
        values = np.logaddexp(parts[0] + np.log1p(-self.share), parts[1] + np.log(self.share))
        return xr.DataArray(values, dims="sample")


def test_a_few_far_draws_are_told_though_ranks_and_c2st_are_right():
    """The variance of draws is 0.98 + 0.02 · 15² times that of the posterior."""
    task = Static("line", PRIOR, 12, Gaussian(sd=SD), solution=lambda p: SLOPES @ p)
    said = sciml.reference.trust(FarOut(), task, seen(6))
    assert (said.c2st < 0.55).all()
    np.testing.assert_allclose(said.too_wide.median(), np.sqrt(0.98 + 0.02 * 15**2), rtol=0.2)
    assert said.doubted.all()


class Stuck(Widened):
    """Exact draws beside a third parameter, of which all draws are one number."""

    def sample(self, data, draws, seed):
        """Return them."""
        found = super().sample(data, draws, seed).posterior
        third = xr.full_like(found[..., :1], 0.1).assign_coords(parameter=["c"])
        return xr.Dataset({"posterior": xr.concat([found, third], "parameter")})

    def log_prob(self, data, parameters):
        """Return the density of the others."""
        return super().log_prob(data, np.asarray(parameters)[..., :2])


def test_draws_that_are_all_one_number_have_no_width():
    prior = PRIOR | {"c": dist.Uniform(0.0, 1.0)}
    task = Static("line", prior, 12, Gaussian(sd=SD), solution=lambda p: SLOPES @ p[:2])
    said = sciml.reference.trust(Stuck(1.0), task, seen(4))
    np.testing.assert_allclose(said.too_wide, [[1.0, 1.0, np.nan]] * 4, atol=0.1)
    assert not said.doubted.any()
    box = BlackBox(lambda p, rng: line(p, rng) + 0 * p["c"], prior)
    told = too_wide(Stuck(1.0), box, seen(1), 0)
    np.testing.assert_allclose(told, [[1.0, 1.0, np.nan]], atol=0.3)


def test_draws_too_narrow_are_doubted(caplog):
    """By weights, of which few are large."""
    assert weighed(0.4).doubted.all()
    assert "too narrow" in caplog.text


def test_simulations_at_draws_are_not_said_to_be_no_draws_of_the_prior(caplog):
    """They are meant to be others; a data set of one's own is told."""
    box = BlackBox(lambda p: np.array([p["a"], p["b"]]), PRIOR)
    near = {name: np.linspace(0.0, 1.0, 100) for name in ("a", "b")}
    made = sciml.simulate(box, parameters=near)
    assert not caplog.records
    sciml.dataset(made.parameters, made.observation, prior=PRIOR)
    assert "was not drawn" in caplog.text


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
