"""What comes in at the border of a fit: failed samples, levels of noise, names of channels."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpyro.distributions import Uniform

import sciml
from sciml.inverse.measured import simulations
from sciml.models import Dense
from sciml.models import Gaussian as GaussianNet
from sciml.ode import Gaussian, Observation, System
from sciml.train import Recipe

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    # Nets of two epochs have learned nothing.
    pytest.mark.filterwarnings("ignore::sciml.inverse.alarms.collapse.CollapseWarning"),
]

SMALL = Dense(width=16, depth=1)
RECIPE = Recipe(batch=30, learning_rate=3e-3)
LEVEL = Gaussian(sd=Uniform(0.05, 0.5), estimate=True)


def growth(**changes) -> System:
    """u' = rate u, seen twice: as it is and doubled."""
    system = System(
        name="growth",
        vector_field=lambda t, u, p: (p[0] * u[0], p[0] * u[1]),
        initial_state=(1.0, 2.0),
        prior={"rate": Uniform(-1.0, 1.0)},
        observation=Observation.regular(interval=0.25, length=9, states=(0, 1)),
        observed=("one", "two"),
    )
    return replace(system, **changes)


def explosive() -> System:
    """u' = rate u²: half of the solutions leave all bounds before the end."""
    return growth(
        vector_field=lambda t, u, p: (p[0] * u[0] ** 2, 0 * u[1]),
        prior={"rate": Uniform(0.0, 1.0)},
    )


def fit(data, *others, model=SMALL, **options):
    return sciml.fit(model, data, *others, **{"epochs": 2, "recipe": RECIPE} | options)


# Near the time at which a solution ends, some are what the step has made of them.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.ode.StepWarning")
def test_failed_samples_are_left_out_of_both_sets():
    data = sciml.simulate(explosive(), samples=200)
    assert 0 < int(data.failures) < 150
    kept = data.isel(sample=data.valid.values)
    for held in (0.2, data):
        assert np.isfinite(fit(data, held).history.validation_loss).all()
    whole, clean = fit(data, data), fit(data, kept)
    np.testing.assert_array_equal(whole.history.validation_loss, clean.history.validation_loss)
    with pytest.raises(ValueError, match=r"data\.isel\(sample=data\.valid\.values\)"):
        whole.predict(data)


def test_online_places_of_failed_samples_go_to_many_others():
    seen, rate = map(np.asarray, jax.jit(simulations(explosive()))(jax.random.key(0)))
    assert np.isfinite(seen).all()
    counts = np.unique(rate, return_counts=True)[1]
    assert 2 <= counts.max() <= 3
    slow = rate[:, 0] < 0.45  # beyond 0.5 there is no solution at the last time
    np.testing.assert_allclose(seen[slow, -1, 0], 1 / (1 - 2 * rate[slow, 0]), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("model", [SMALL, GaussianNet(embedding=SMALL)])
def test_levels_of_a_simulated_noise_are_targets_if_they_are_to_be_estimated(model):
    data = sciml.simulate(growth(), samples=200, noise=LEVEL)
    fitted = fit(data, 0.2, model=model)
    assert fitted.grid.parameters == ("rate", "noise_sd")
    if model is not SMALL:
        assert fitted.scaling.low[1] == pytest.approx(0.05)
        assert fitted.scaling.high[1] == pytest.approx(0.5)
    known = sciml.simulate(growth(), samples=200, noise=replace(LEVEL, estimate=False))
    assert fit(known, model=model).grid.parameters == ("rate",)


@pytest.mark.slow
def test_a_validation_set_tells_the_same_targets():
    data = sciml.simulate(growth(), samples=100)
    measured = sciml.simulate(growth(), samples=50, seed=1, noise=LEVEL)
    assert np.isfinite(fit(data, measured, noise=LEVEL).history.validation_loss).all()
    fixed = sciml.simulate(growth(), samples=50, seed=1, noise=Gaussian(0.1))
    with pytest.raises(ValueError, match="tells of rate; the net is to learn rate, noise_sd"):
        fit(data, fixed, noise=LEVEL)


def test_a_validation_set_in_another_order_scores_the_same():
    rng = np.random.default_rng(0)
    theta = rng.uniform(size=(60, 2)) * [1, 100]
    data = sciml.dataset(theta, theta @ rng.normal(size=(2, 3)), names=["small", "large"])
    held = data.isel(sample=slice(40, 60))
    losses = [
        fit(data, each).history.validation_loss for each in (held, held.isel(parameter=[1, 0]))
    ]
    np.testing.assert_array_equal(*losses)


@pytest.mark.slow
def test_noise_upon_noise_is_said(caplog):
    measured = sciml.simulate(growth(), samples=50, noise=Gaussian(0.1))
    fit(measured)
    assert "simulated with noise" not in caplog.text
    fit(measured, noise=Gaussian(0.1))
    assert "simulated with noise" in caplog.text


def test_channels_in_another_order_are_refused(tmp_path):
    data = sciml.simulate(growth(), samples=50)
    fitted = sciml.load(fit(data).save(tmp_path / "growth.fit"))
    with pytest.raises(ValueError, match=r"channel\[0\] of the observations is two, but one in"):
        fitted.predict(data.sel(channel=["two", "one"]))
    assert fitted.predict(data).sizes["sample"] == 50
    assert fitted.predict(data.drop_vars("channel")).sizes["sample"] == 50


def test_features_may_have_names():
    seen = Observation((0,), (0.5, 1.0), transform=lambda u: u[:, 0])
    data = sciml.simulate(growth(observation=seen, observed=("half", "whole")), samples=50)
    fitted = fit(data)
    assert fitted.predict(data).sizes["sample"] == 50
    with pytest.raises(ValueError, match=r"reorder them by \.sel\(feature="):
        fitted.predict(data.isel(feature=[1, 0]))


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        (Dense, {}, "the model is the class Dense"),
        ("dense", {}, "the model is 'dense'; it must be a configuration"),
        (SMALL, {"noise": 0.1}, "the noise is 0.1"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_what_is_no_model_and_no_noise_is_refused(model, options, error):
    with pytest.raises(TypeError, match=error):
        fit(sciml.simulate(growth(), samples=50), model=model, **options)
