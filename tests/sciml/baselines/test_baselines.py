"""Classical estimators: features, trees, neighbours, least squares."""

from dataclasses import replace

import jax
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
    Observation,
    RungeKutta4,
    System,
    fitzhugh_nagumo,
    lotka_volterra,
    simulate,
    slcp,
    spikes,
)
from sciml.ode.data.evidence import as_seen, check_same_grid
from sciml.reference import log_likelihood

pytestmark = pytest.mark.usefixtures("quick_compilation")
RNG = np.random.default_rng(0)


def series(values: np.ndarray) -> xr.Dataset:
    """Return values (sample, time[, channel]) in the schema of a data set."""
    axes = ("sample", "time", "channel")[: values.ndim]
    return xr.Dataset({"observation": (axes, values)}, {"time": np.arange(values.shape[1]) * 0.2})


@pytest.fixture(scope="module")
def neurons() -> tuple[xr.Dataset, xr.Dataset]:
    data = simulate(fitzhugh_nagumo(), samples=268, seed=400)
    return data.isel(sample=slice(256)), data.isel(sample=slice(256, None))


def predators() -> System:
    """Two populations that are known at the start, so that clean series begin alike."""

    def field(t, state, parameters):
        (prey, hunters), (birth, death) = state, parameters
        return birth * prey - 0.1 * prey * hunters, 0.1 * prey * hunters - death * hunters

    return System(
        name="predators",
        vector_field=field,
        initial_state=(10.0, 5.0),
        prior={"birth": dist.Uniform(0.5, 1.5), "death": dist.LogNormal(0.0, 0.3)},
        observation=Observation.regular(states=(0, 1), interval=0.1, length=30),
        observed=("prey", "hunters"),
    )


@pytest.fixture(scope="module")
def clean() -> xr.Dataset:
    return simulate(predators(), samples=300)


@pytest.fixture(scope="module")
def noisy() -> xr.Dataset:
    return simulate(predators(), samples=60, seed=9, noise=LogNormal(sd=0.1))


ESTIMATORS = {
    "least_squares": lambda train, test: least_squares(predators(), test, settings=Search(8, 1)),
    "extra_trees": lambda train, test: extra_trees(train, test, trees=3),
    "nearest_neighbours": nearest_neighbours,
}
every_estimator = pytest.mark.parametrize("estimate", ESTIMATORS.values(), ids=ESTIMATORS)


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_nearest_neighbour_of_a_training_sample_is_itself(neurons):
    train, _ = neurons
    found = nearest_neighbours(train, train.isel(sample=slice(9)), k=3)
    np.testing.assert_allclose(found.estimate, train.parameters[:9], atol=1e-6)
    with pytest.raises(ValueError, match="between 1 and 256"):
        nearest_neighbours(train, train, k=257)


@pytest.mark.slow
def test_noise_that_the_training_set_lacks_does_not_decide_alone(clean, noisy):
    """Every clean series begins alike, a feature that noise alone moves."""
    found = nearest_neighbours(clean, noisy)
    assert (found.estimate.std("sample") > 0.15).all()
    assert (r2(noisy, found) > 0.85).all()
    assert (r2(noisy, extra_trees(clean, noisy, trees=50)) > 0.85).all()


@pytest.mark.parametrize(
    ("offset", "spread"), [(0, 0), (40, 0), (40, 1e-12), (40, 1e-7), (40, 1e-3)]
)
def test_a_feature_that_hardly_varies_in_training_decides_nothing(offset: float, spread: float):
    theta = np.linspace(0, 1, 200)

    def data(sd: float) -> xr.Dataset:
        values = np.stack([theta, offset + sd * RNG.choice([-1, 1], 200)], axis=1)
        variables = {"observation": (("sample", "feature"), values)}
        variables["parameters"] = (("sample", "parameter"), theta[:, None])
        return xr.Dataset(variables, {"parameter": ["theta"]})

    for learn in (nearest_neighbours, extra_trees):
        found = learn(data(spread), data(0.1))
        np.testing.assert_allclose(found.estimate[:, 0], theta, atol=0.03)


@every_estimator
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.assign_coords(time=x.time + 0.05), r"time\[0\] of the observations is 0.05"),
        (lambda x: x.isel(time=slice(20)), r"have 20 times, but there are 30 in the (prob|train)"),
        (lambda x: x.isel(channel=0), r"\('sample', 'time'\), but \('sample', 'time', 'channel'\)"),
        (
            lambda x: x.isel(channel=[1, 0]),
            r"channel\[0\] of the observations is hunters, but prey",
        ),
        (
            lambda x: x.assign_coords(time=x.time.assign_attrs(units="year")),
            "unit of time is 'year'",
        ),
        (lambda x: x.where(x.sample != 1), r"sample 1 is missing altogether \(1 of 4 samples\)"),
        (lambda x: x.where(x.sample != 2, np.inf), "sample 2 is infinite"),
    ],
    ids=["times", "length", "axes", "order", "unit", "unseen", "infinite"],
)
def test_what_was_measured_otherwise_is_refused(clean, noisy, estimate, change, message):
    some = noisy.isel(sample=slice(4)).assign_coords(sample=range(4))
    with pytest.raises(ValueError, match=message):
        estimate(clean, change(some.observation).to_dataset().assign(valid=some.valid))


@pytest.mark.parametrize("name", ["extra_trees", "nearest_neighbours"])
def test_gaps_failures_and_rounded_times_are_taken(clean, noisy, name):
    estimate = ESTIMATORS[name]
    some = noisy.isel(sample=slice(3)).copy(deep=True)
    some.observation[0, :, 1] = np.nan
    some.observation[1] = np.nan
    some.valid[1] = False
    found = estimate(clean, some.assign_coords(time=some.time * (1 + 1e-8)))
    assert np.isfinite(found.estimate).all("parameter").values.tolist() == [True, False, True]
    whole = estimate(clean, some.drop_vars("valid").isel(sample=[0, 2]))
    # products of matrices add in an order that depends on their size, on some processors
    np.testing.assert_allclose(whole.estimate, found.estimate[[0, 2]], rtol=1e-12)


def test_training_series_without_a_value_are_refused(clean, noisy):
    unseen = clean.copy(deep=True)
    unseen.observation[7] = np.nan
    with pytest.raises(ValueError, match="sample 7 is missing altogether"):
        nearest_neighbours(unseen, noisy)


def test_least_squares_knows_features_from_series():
    """A problem of which moments are seen, not a series."""
    moments = replace(
        predators().observation, transform=lambda x: jnp.concatenate([x.mean(0), x.std(0)])
    )
    problem = replace(predators(), observation=moments, observed="moments")
    data = simulate(problem, samples=2, seed=3)
    check_same_grid(data.observation, as_seen(problem), "the problem")
    with pytest.raises(ValueError, match=r"have 3 features, but there are 4 in the problem 'pred"):
        least_squares(problem, data.isel(feature=slice(3)))


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


@pytest.mark.slow
def test_least_squares_weighs_by_the_noise_and_leaves_failures():
    problem = replace(lotka_volterra(), method=RungeKutta4(substeps=20))
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
    ("shape", "gaps"), [((9,), [3, 4, 8]), ((9, 2), [0]), ((9, 2), [0, 1, 2, 3, 5, 7])]
)
def test_autoregressive_residuals_are_white_across_gaps(shape: tuple[int, ...], gaps: list[int]):
    """r·r = eᵀ C⁻¹ e over what was seen, and r·r + ln det 2πC is twice the likelihood's."""
    x, u = RNG.normal(size=(2, *shape))
    x[gaps] = np.nan
    there = np.setdiff1d(np.arange(9), gaps)
    covariance = 0.4**2 * 0.7 ** np.abs(there[:, None] - there)
    errors = (x - u)[there].reshape(len(there), -1)
    expected = np.sum(errors * np.linalg.solve(covariance, errors))
    noise, observed = Missing(AR1(0.4, 0.7), 0.5), jnp.asarray(x)

    @jax.jit  # as one program: its operations one by one take longer to compile
    def found(u):
        slopes = jax.jacfwd(lambda u: residual(noise, observed, u))(u)
        return residual(noise, observed, u), slopes, log_likelihood(noise, observed, u, {})

    r, slopes, density = found(jnp.asarray(u))
    np.testing.assert_array_equal(r[np.array(gaps)], 0)
    assert float(jnp.sum(r**2)) == pytest.approx(expected, rel=1e-5)
    constant = errors.shape[1] * np.linalg.slogdet(2 * np.pi * covariance)[1]
    likelihood = -2 * float(density)
    assert float(jnp.sum(r**2)) + constant == pytest.approx(likelihood, rel=1e-5)
    assert jnp.isfinite(slopes).all()


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
