"""Posteriors through `fit`: closed forms, borders, files; noise levels; online simulation."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro.distributions import LogUniform

import sciml
from sciml.models import Dense, Ensemble, Gaussian, SplineFlow
from sciml.ode import AR1, LogNormal, Missing, Observation, Static, System
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation")

RECIPE = Recipe(batch=50, learning_rate=3e-3)
SMALL = Dense(width=32, depth=1)


def line() -> System:
    """u' = slope, seen with noise: the least squares estimate is the posterior's centre."""
    from numpyro.distributions import Normal

    return System(
        name="line",
        vector_field=lambda t, u, p: (p[0] + 0 * u[0],),
        initial_state=lambda p: (p[1],),
        prior={"slope": Normal(0.0, 1.0), "start": Normal(0.0, 1.0)},
        observation=Observation.regular(interval=0.2, length=11),
        noise=AR1(sd=0.5, correlation=0.0),
    )


def exact(observed: np.ndarray, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (sample, param) and the covariance of the conjugate posterior."""
    t = 0.2 * np.arange(observed.shape[1])
    design = np.stack([t, np.ones_like(t)], axis=1)
    covariance = np.linalg.inv(design.T @ design / sd**2 + np.eye(2))
    return observed @ design @ covariance.T / sd**2, covariance


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return sciml.simulate(line(), samples=1000, seed=0)


@pytest.fixture(scope="module")
def test() -> xr.Dataset:
    return sciml.simulate(line(), samples=200, seed=1, noise=line().noise)


@pytest.fixture(scope="module")
def fit(data):
    return sciml.fit(
        Gaussian(embedding=SMALL), data, 0.1, epochs=60, recipe=RECIPE, noise=line().noise
    )


@pytest.mark.slow
def test_a_gaussian_posterior_equals_the_closed_form(fit, test):
    mean, covariance = exact(test.observation.values, 0.5)
    draws = fit.sample(test, draws=2000).posterior
    assert draws.dims == ("draw", "sample", "parameter")
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(draws.mean("draw") - mean).mean("sample"), 0.25 * sd)
    np.testing.assert_allclose(draws.std("draw").mean("sample"), sd, rtol=0.1)
    found = np.mean([np.corrcoef(draws[:, i].T)[0, 1] for i in range(50)])
    assert found == pytest.approx(covariance[0, 1] / np.prod(sd), abs=0.1)
    density = fit.log_prob(test, test.parameters)
    error = test.parameters.values - mean
    expected = -0.5 * np.einsum("si,ij,sj->s", error, np.linalg.inv(covariance), error)
    expected -= np.log(2 * np.pi) + 0.5 * np.log(np.linalg.det(covariance))
    assert np.median(np.abs(density - expected)) < 0.3


@pytest.mark.parametrize("count", [1, 512, 513, 1025])
def test_a_density_does_not_know_how_many_are_asked_for(fit, test, count):
    many = test.isel(sample=np.arange(count) % 200)
    each = fit.log_prob(test, test.parameters).values
    found = fit.log_prob(many, many.parameters).values
    np.testing.assert_allclose(found, each[np.arange(count) % 200], rtol=1e-5, atol=1e-5)


def test_its_estimate_is_the_mean_of_its_draws(fit, test):
    predicted = fit.predict(test)
    draws = fit.sample(test, draws=512, seed=0).posterior
    np.testing.assert_allclose(predicted.estimate, draws.mean("draw"), atol=1e-5)
    np.testing.assert_allclose(predicted.spread, draws.std("draw"), atol=1e-5)


@pytest.mark.slow
def test_draws_stay_in_the_support_and_density_integrates_to_one():
    from numpyro.distributions import Uniform

    system = replace(line(), prior={"slope": Uniform(0.0, 1.0), "start": Uniform(-1.0, 0.5)})
    data = sciml.simulate(system, samples=500, seed=0, noise=system.noise)
    model = SplineFlow(width=16, layers=2, embedding=SMALL)
    fit = sciml.fit(model, data, epochs=5, recipe=RECIPE)
    draws = fit.sample(data.isel(sample=slice(20)), draws=500).posterior
    assert draws.sel(parameter="slope").min() >= 0
    assert draws.sel(parameter="slope").max() <= 1
    assert draws.sel(parameter="start").max() <= 0.5
    one = data.isel(sample=[3] * 120 * 120)
    grid = np.meshgrid((np.arange(120) + 0.5) / 120, -1 + 1.5 * (np.arange(120) + 0.5) / 120)
    theta = np.stack([g.ravel() for g in grid], axis=1)
    mass = np.exp(fit.log_prob(one, theta).values).mean() * 1.5
    assert mass == pytest.approx(1, abs=0.02)
    outside = fit.log_prob(one.isel(sample=[0]), np.array([[1.5, 0.0]]))
    assert outside.values[0] == -np.inf


def test_a_file_brings_a_posterior_back(fit, test, tmp_path):
    back = sciml.load(fit.save(tmp_path / "run"))
    assert (back.model, back.scaling) == (fit.model, fit.scaling)
    np.testing.assert_array_equal(
        back.sample(test, draws=5).posterior, fit.sample(test, draws=5).posterior
    )


@pytest.mark.slow
def test_an_ensemble_of_points_has_a_spread(data, test):
    fit = sciml.fit(Ensemble(SMALL, size=3), data, epochs=20, recipe=RECIPE, noise=line().noise)
    predicted = fit.predict(test)
    assert predicted.estimate.shape == predicted.spread.shape == (200, 2)
    assert (predicted.spread > 0).all()
    with pytest.raises(TypeError, match="gives a point, not a posterior"):
        fit.sample(test)


@pytest.mark.slow
def test_noise_levels_are_estimated_with_the_parameters(data):
    from numpyro.distributions import Uniform

    noise = AR1(sd=Uniform(0.1, 1.0), correlation=0.0, estimate=True)
    fit = sciml.fit(SMALL, data, epochs=60, recipe=RECIPE, noise=noise)
    assert fit.grid.parameters == ("slope", "start", "noise_sd")
    test = sciml.simulate(line(), samples=300, seed=5, noise=noise)
    estimate = fit.predict(test).estimate.sel(parameter="noise_sd")
    truth = test.levels.sel(level="sd")
    assert np.corrcoef(estimate, truth)[0, 1] > 0.6
    posterior = sciml.fit(Gaussian(embedding=SMALL), data, epochs=2, recipe=RECIPE, noise=noise)
    draws = posterior.sample(test, draws=50).posterior.sel(parameter="noise_sd")
    assert 0.1 <= float(draws.min()) <= float(draws.max()) <= 1.0


@pytest.mark.slow
def test_missing_values_need_a_net_made_for_them(data):
    gaps = Missing(line().noise, fraction=0.4)
    with pytest.raises(ValueError, match="missing=True"):
        sciml.fit(SMALL, data, epochs=2, recipe=RECIPE, noise=gaps)
    fit = sciml.fit(
        Dense(width=32, depth=1, missing=True), data, epochs=60, recipe=RECIPE, noise=gaps
    )
    test = sciml.simulate(line(), samples=200, seed=3, noise=gaps)
    assert np.isnan(test.observation).any()
    error = fit.predict(test).estimate.values - test.parameters.values
    assert np.sqrt(np.mean(error**2)) < 0.5
    nothing = test.isel(sample=[0]).copy(deep=True)
    nothing["observation"][:] = np.nan
    with pytest.raises(ValueError, match="missing altogether"):
        fit.predict(nothing)


@pytest.mark.slow
def test_online_simulation_needs_the_problem_and_learns():
    fit = sciml.fit(SMALL, line(), epochs=30, recipe=RECIPE, noise=line().noise, online=True)
    test = sciml.simulate(line(), samples=300, seed=4, noise=line().noise)
    mean, _ = exact(test.observation.values, 0.5)
    assert np.abs(fit.predict(test).estimate.values - mean).mean() < 0.15
    with pytest.raises(TypeError, match="pass the problem itself"):
        sciml.fit(SMALL, test, epochs=1, recipe=RECIPE, online=True)
    with pytest.raises(TypeError, match="online=True"):
        sciml.fit(SMALL, line(), epochs=1, recipe=RECIPE)


@pytest.mark.parametrize("share", [0.0, 1.0, 0.0001, 1, 0])
def test_a_share_that_leaves_nothing_is_refused(data, share):
    with pytest.raises(ValueError, match="a share within"):
        sciml.fit(SMALL, data, share, epochs=1, recipe=RECIPE)


def test_a_data_set_without_supports_is_told_so(data, caplog):
    plain = data.assign_attrs(support=None)
    del plain.attrs["support"]
    sciml.fit(Gaussian(embedding=SMALL), plain, epochs=1, recipe=RECIPE)
    assert "does not say where its prior ends" in caplog.text


def test_wrong_shapes_are_named(fit, test):
    with pytest.raises(ValueError, match="parameters have shape"):
        fit.log_prob(test, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="draws is 0"):
        fit.sample(test, draws=0)
    with pytest.raises(ValueError, match="11"):
        fit.sample(test.isel(time=slice(5)))


@pytest.mark.slow
def test_observations_that_the_simulator_does_not_make_are_flagged(data, test):
    fit = sciml.fit(SMALL, data, epochs=20, recipe=RECIPE, noise=line().noise)
    assert 0 < float(fit.predict(test).flagged.mean()) < 0.15
    louder = sciml.simulate(line(), samples=50, seed=6, noise=AR1(sd=2.5, correlation=0.0))
    assert float(fit.predict(louder).flagged.mean()) > 0.9
    shifted = test.assign(observation=test.observation + 20)
    assert fit.predict(shifted).flagged.all()


def test_few_training_samples_raise_no_alarm_and_say_so(data, test, caplog):
    fit = sciml.fit(SMALL, data.isel(sample=slice(100)), epochs=20, recipe=RECIPE)
    assert "flagged" not in fit.predict(test)
    assert "the fit has seen 100 samples" in caplog.text


def test_draws_are_flagged_as_estimates_are(fit, test):
    assert 0 < float(fit.sample(test, draws=2).flagged.mean()) < 0.15
    assert fit.sample(test.assign(observation=test.observation + 20), draws=2).flagged.all()


@pytest.mark.filterwarnings("ignore::sciml.inverse.alarms.collapse.CollapseWarning")
def test_a_vector_of_features_is_not_taken_for_a_series():
    task = sciml.ode.gaussian_linear()
    data = sciml.simulate(task, samples=300, noise=task.noise)
    fit = sciml.fit(SMALL, data, epochs=1, recipe=RECIPE)
    assert set(fit.alarm.views) == {"values", "neighbours"}


@pytest.mark.slow
def test_a_net_that_learns_its_training_by_heart_says_so(caplog):
    """Of a few noisy series, in many epochs, not of many in a few."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(1200, 1))
    x = theta + rng.normal(size=(1200, 20))
    data = sciml.dataset(theta, x, names=["level"], bounds={"level": (-np.inf, np.inf)})
    for samples, epochs in ((1200, 3), (100, 40)):
        caplog.clear()
        some, recipe = data.isel(sample=slice(samples)), Recipe(batch=20, learning_rate=5e-3)
        fit = sciml.fit(Gaussian(width=32, depth=1), some, 0.2, epochs=epochs, recipe=recipe)
        held = fit.history.validation_loss.values
        assert ("by heart" in caplog.text) == (epochs == 40)
    assert f"after epoch {held.argmin() + 1} of 40" in caplog.text
    caplog.clear()
    far = 2 * data[["parameters", "observation"]]  # of which the loss falls from far above
    slow = Recipe(batch=100, learning_rate=5e-4)
    fit = sciml.fit(Gaussian(width=32, depth=1), data, far, epochs=2, recipe=slow)
    held = fit.history.validation_loss.values
    assert fit.history.loss.values[0] < held[1] < held[0]
    assert "by heart" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("model", [Gaussian(8, 1), Ensemble(Gaussian(8, 1), 2)], ids=str)
def test_answers_that_overflow_are_told(model, caplog):
    """Of positive parameters a posterior overflows at a tenth of what float32 holds and less."""
    theta = np.random.default_rng(0).uniform(0.5, 2.0, size=(300, 2))
    seen, about = theta @ np.ones((2, 3)), {"names": ("a", "b"), "bounds": [(0, None)] * 2}
    data = sciml.dataset(theta, seen, {"dose": theta[:, 0]}, **about)
    fit, role = sciml.fit(model, data, epochs=1), {"role": "condition"}
    two = data.observation[:2]
    far = two.copy(data=np.where([[True], [False]], 1e30, two))
    dose = two.assign_coords(dose=("sample", [1e30, theta[1, 0]], role))
    for observed in (far, far.astype(np.float32), dose):
        for found in (fit.predict(observed).estimate, fit.sample(observed, 20).posterior[0]):
            assert np.isnan(found[0]).all()
            assert np.isfinite(found[1]).all()
            assert "1 of 2 observations, of which 0 is the first, overflow" in caplog.messages[-1]
        assert np.isnan(fit.predict(observed).spread[0]).all()
        assert fit.predict(observed).flagged.values.tolist() == [True, False]
        assert not np.isnan(fit.log_prob(observed, theta[:2])).any()
    for wrong in (two.copy(data=0 * two + 3e38).astype(np.float32), two.astype(float) * 1e40):
        for ask in (fit.predict, fit.sample, lambda x: fit.log_prob(x, theta[:2])):
            with pytest.raises(ValueError, match="float32, in which nets count, serves"):
                ask(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e6, 1e30])
def test_conditions_that_no_proposal_explains_are_told(size, caplog):
    from numpyro.distributions import LogNormal, Uniform

    decay = System(
        name="decay",
        vector_field=lambda _t, u, p, _given: (-p[0] * u[0],),
        initial_state=lambda _p, given: (given["dose"],),
        prior={"rate": LogNormal(0.0, 0.5)},
        observation=Observation.regular(interval=0.5, length=4),
        noise=sciml.ode.Gaussian(sd=0.1),
        conditions={"dose": Uniform(0.5, 2.0)},
    )
    data = sciml.simulate(decay, 300, noise=decay.noise)
    fit = sciml.fit(Gaussian(8, 1), data, epochs=1)
    own = float(data.dose[1])
    wrong = data.observation[:2].assign_coords(dose=("sample", [size, own], {"role": "condition"}))
    found = sciml.reference.importance(fit, decay, wrong, draws=50)
    assert np.isnan(found.posterior[:, 0]).all()
    assert np.isfinite(found.posterior[:, 1]).all()
    assert "explains 1 of 2 observations, of which 0 is the first" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_gaps_that_the_training_never_had_are_told(data, test, known, caplog):
    """A net with missing=True that saw none answers to its own padding."""
    model = Gaussian(width=8, depth=1, embedding=Dense(width=8, depth=1, missing=True))
    noise = Missing(line().noise, fraction=0.3) if known else line().noise
    fit = sciml.fit(model, data, epochs=1, recipe=RECIPE, noise=noise)
    gaps = test.isel(sample=slice(20)).copy(deep=True)
    gaps["observation"][5, 3] = np.nan
    flagged = [fit.predict(x).flagged.values[5] for x in (gaps, gaps)]
    assert flagged == [not known] * 2
    said = [r for r in caplog.records if "observation 5 misses values" in r.getMessage()]
    assert len(said) == (not known)


def test_the_density_of_nan_is_nan(fit, test):
    some = test.isel(sample=slice(2))
    theta = some.parameters.values.copy()
    theta[1, 0] = np.nan
    assert np.isnan(fit.log_prob(some, theta).values).tolist() == [False, True]


@pytest.mark.slow
def test_a_rate_over_eight_decades_is_found_at_each_of_them(tmp_path):
    """Below a millionth of its range it was learned as one value."""
    prior = {"rate": LogUniform(1e-8, 1.0)}
    scale = Static("scale", prior, 3, LogNormal(0.3), solution=lambda p: p[0] * jnp.ones(3))
    data = sciml.simulate(scale, 1000, noise=scale.noise)
    model = Gaussian(width=32, depth=1)
    fit = sciml.fit(model, data, epochs=30, recipe=RECIPE)
    fit = sciml.load(fit.save(tmp_path / "scale.fit"))
    true = np.logspace(-7.5, -0.5, 8)[:, None]
    test = sciml.simulate(scale, parameters=true, noise=scale.noise, seed=1)
    drawn = np.log(fit.sample(test, 200).posterior)
    assert np.abs(drawn.mean("draw") - np.log(true)).max() < 0.8
    assert (drawn.std("draw") < 0.8).all()


@pytest.mark.filterwarnings("ignore::sciml.inverse.alarms.collapse.CollapseWarning")
@pytest.mark.parametrize(("low", "told"), [(1e-8, True), (0.1, False)])
def test_a_point_net_of_a_parameter_over_many_decades_is_told(low, told, caplog):
    rate = 10 ** np.random.default_rng(0).uniform(np.log10(low), 0, (200, 1))
    sciml.fit(SMALL, sciml.dataset(rate, np.log(rate)), epochs=20)
    assert ("does not tell the small ones apart" in caplog.text) == told
