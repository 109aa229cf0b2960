"""Classical estimators: features, trees, neighbours, least squares."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist

from sciml.baselines import (
    Search,
    Summary,
    extra_trees,
    least_squares,
    nearest_neighbours,
    principal_components,
    spike_features,
    together,
)
from sciml.baselines.residual import residual
from sciml.ode import (
    AR1,
    Binomial,
    Gaussian,
    LogNormal,
    Missing,
    NoisyCurrent,
    fitzhugh_nagumo,
    lotka_volterra,
    simulate,
    slcp,
    spikes,
)

RNG = np.random.default_rng(0)


def series(values: np.ndarray) -> xr.Dataset:
    """Return values (sample, time[, channel]) in the schema of a data set."""
    axes = ("sample", "time", "channel")[: values.ndim]
    return xr.Dataset({"observation": (axes, values)}, {"time": np.arange(values.shape[1]) * 0.2})


@pytest.fixture(scope="module")
def neurons() -> tuple[xr.Dataset, xr.Dataset]:
    return tuple(simulate(fitzhugh_nagumo(), samples=n, seed=n) for n in (400, 12))


def r2(truth: xr.Dataset, found: xr.Dataset) -> np.ndarray:
    error = ((found.estimate - truth.parameters) ** 2).mean("sample")
    return (1 - error / truth.parameters.var("sample")).values


def test_features_of_a_sine():
    time = np.arange(400)
    features = Summary(lags=(10, 20))(series(np.sin(2 * np.pi * time / 40)[None]))[0]
    mean, sd, low, *_, high, quarter, half = features
    assert (mean, sd) == (pytest.approx(0, abs=1e-9), pytest.approx(0.5**0.5))
    assert (low, high) == (-1, 1)
    assert (quarter, half) == (pytest.approx(0, abs=0.03), pytest.approx(-1, abs=0.03))


def test_features_leave_missing_values_out():
    whole = RNG.normal(size=(3, 2000))
    part = np.where(RNG.random(whole.shape) < 0.3, np.nan, whole)
    found, expected = (Summary(quantiles=(0.5,))(series(x)) for x in (part, whole))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=0.1)


def test_a_short_series_is_its_own_summary_too():
    values = RNG.normal(size=(3, 5, 2))
    found = Summary()(series(values))
    np.testing.assert_array_equal(found[:, -10:], values.reshape(3, 10))


def test_spike_features_are_the_published_ones(neurons):
    _, test = neurons
    count, duration = spikes(test.observation.values, 0.2)
    np.testing.assert_allclose(spike_features(test), np.stack([count, duration], axis=1))


def test_principal_components_keep_all_when_all_are_kept():
    train, test = series(RNG.normal(size=(9, 4))), series(RNG.normal(size=(5, 4)))
    project = principal_components(train, 4)
    centred = test.observation.values - train.observation.values.mean(axis=0)
    norms = np.linalg.norm(project(test), axis=1)
    np.testing.assert_allclose(norms, np.linalg.norm(centred, axis=1))
    assert (np.diff(project(train).var(axis=0)) <= 0).all()
    with pytest.raises(ValueError, match="between 1 and 4"):
        principal_components(train, 5)


def test_the_nearest_neighbour_of_a_training_sample_is_itself(neurons):
    train, _ = neurons
    found = nearest_neighbours(train, train.isel(sample=slice(9)), k=3)
    np.testing.assert_allclose(found.estimate, train.parameters[:9], atol=1e-6)
    with pytest.raises(ValueError, match="between 1 and 400"):
        nearest_neighbours(train, train, k=401)


def test_trees_and_neighbours_learn(neurons):
    train, test = neurons
    both = together(Summary(), principal_components(train))
    trees = extra_trees(train, test, features=both, trees=50)
    assert (r2(test, trees) > 0.7).all()
    assert (r2(test, nearest_neighbours(train, test, features=both)) > 0.5).all()
    assert trees.estimate.dims == ("sample", "parameter")
    assert (trees.spread > 0).any()
    assert list(trees.parameter) == ["theta0", "theta1"]


def test_what_failed_is_left_out_of_training_and_stays_unknown(neurons):
    train, test = neurons
    hurt = train.copy(deep=True)
    hurt.valid[:5] = False
    hurt.observation[:5] = np.nan
    failed = test.copy(deep=True)
    failed.valid[1] = False
    found = extra_trees(hurt, failed, trees=5)
    assert np.isnan(found.estimate[1]).all()
    assert np.isfinite(found.estimate[0]).all()
    with pytest.raises(ValueError, match="no training sample is valid"):
        extra_trees(hurt.isel(sample=slice(5)), test)


def test_least_squares_recovers_neurons(neurons):
    _, test = neurons
    found = least_squares(fitzhugh_nagumo(), test, settings=Search(pool=1000, starts=2, steps=15))
    error = np.abs(found.estimate - test.parameters).max("parameter")
    assert (error < 1e-3).mean() > 0.7
    assert (found.misfit[error < 1e-3] < 1e-2).all()


def test_least_squares_weighs_by_the_noise_and_leaves_failures():
    problem = lotka_volterra()
    data = simulate(problem, samples=6, seed=5, noise=Missing(problem.noise, 0.1))
    data.valid[3] = False
    found = least_squares(
        problem, data, noise=problem.noise, settings=Search(pool=300, starts=2, steps=15)
    )
    assert np.isnan(found.estimate[3]).all()
    error = np.abs(np.log(found.estimate / data.parameters))
    assert error.median() < 0.1  # 10 % noise, twenty values, four parameters
    assert found.misfit.median() < 1.2


def test_autoregressive_residuals_are_white():
    x, u = RNG.normal(size=(2, 12))
    covariance = 0.4**2 * 0.7 ** np.abs(np.arange(12)[:, None] - np.arange(12))
    r = residual(AR1(0.4, 0.7), jnp.asarray(x), jnp.asarray(u))
    expected = (x - u) @ np.linalg.solve(covariance, x - u)
    assert float(jnp.sum(r**2)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("noise", "clean"),
    [
        (None, 0.7),
        (Gaussian(sd=2.0), 0.7),
        (Gaussian(sd=dist.Uniform(1.0, 3.0)), 0.7),
        (LogNormal(sd=0.3), 0.7),
        (Binomial(1000, 10.0), 3.0),
    ],
)
def test_residuals_have_unit_variance(noise, clean: float):
    import jax

    truth = jnp.full((1, 20_000), clean)
    measured = noise or Gaussian(sd=1.0)
    levels = {"sd": jnp.full(1, 2.0)} if measured.prior else {}
    seen = measured.apply(jax.random.key(0), truth, levels)
    r = residual(noise, seen[0], truth[0])
    assert float(r.mean()) == pytest.approx(0, abs=0.03)
    assert float(r.std()) == pytest.approx(1, abs=0.03)


def test_missing_values_leave_no_residual():
    r = residual(Missing(Gaussian(sd=0.5), 0.1), jnp.array([1.0, jnp.nan]), jnp.zeros(2))
    np.testing.assert_array_equal(r, [2, 0])


def test_what_cannot_be_fitted_is_refused(neurons, untyped):
    _, test = neurons
    with pytest.raises(TypeError, match="no System"):
        least_squares(slcp(), test)
    with pytest.raises(TypeError, match="NoisyCurrent has no residuals"):
        residual(NoisyCurrent(), jnp.zeros(2), jnp.zeros(2))
    with pytest.raises(ValueError, match="nothing to fit"):
        least_squares(fitzhugh_nagumo(), test.assign(valid=test.valid & False))


@pytest.mark.parametrize(
    "wrong", [{"starts": 0}, {"pool": 2, "starts": 3}, {"tolerance": 0.0}, {"lanes": 0}]
)
def test_an_impossible_search_is_refused(wrong: dict):
    with pytest.raises(ValueError, match=r"at least 1|not be smaller"):
        Search(**wrong)
