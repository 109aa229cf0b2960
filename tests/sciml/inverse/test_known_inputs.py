"""Nets, likelihoods and checks under known inputs of each sample."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro.distributions import Normal, Uniform

import sciml
from sciml.ode import Gaussian, Observation, RungeKutta4, Static, System
from sciml.reference import Population, importance, smc, target
from sciml.train.recipe import Recipe

SD = 0.3


def line(unit: float = 1.0) -> Static:
    """x = slope · dose + noise: the posterior of the slope is normal, and narrower for more."""
    return Static(
        name="line",
        prior={"slope": Normal(0.0, 1.0)},
        features=3,
        noise=Gaussian(SD),
        solution=lambda p, c: p[0] * c["dose"] / unit * jnp.ones(3),
        conditions={"dose": Uniform(0.2 * unit, 2.0 * unit)},
    )


def exact(data: xr.Dataset, unit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    dose = data.dose.values / unit
    precision = 1 + 3 * dose**2 / SD**2
    return dose * data.observation.values.sum(axis=1) / SD**2 / precision, precision**-0.5


@pytest.fixture(scope="module")
def posterior():
    data = sciml.simulate(line(), 2000, seed=0)
    model = sciml.models.Gaussian(width=32, depth=2)
    return sciml.fit(model, data, epochs=40, noise=Gaussian(SD))


@pytest.fixture(scope="module")
def unseen():
    return sciml.simulate(line(), 100, seed=1, noise=Gaussian(SD))


@pytest.mark.slow
def test_one_observation_alone_is_a_sample(posterior, unseen):
    """It has no axis of samples; its condition is a number beside it."""
    alone, row = unseen.isel(sample=3), unseen.isel(sample=[3])
    for one in (alone, alone.observation, alone.observation.drop_vars("sample", errors="ignore")):
        xr.testing.assert_equal(posterior.predict(one).estimate, posterior.predict(row).estimate)
        xr.testing.assert_equal(
            importance(posterior, line(), one, draws=200).posterior,
            importance(posterior, line(), row, draws=200).posterior,
        )
    with pytest.raises(ValueError, match="the array has the dimensions"):
        posterior.predict(xr.DataArray(np.zeros(3), dims="mistake"))


@pytest.mark.slow
def test_a_net_learns_what_a_condition_means(posterior, unseen):
    mean, sd = exact(unseen)
    found = posterior.sample(unseen, 400)
    drawn = found.posterior[..., 0]
    assert np.abs((drawn.mean("draw") - mean) / sd).mean() < 0.25
    assert np.abs(np.log(drawn.std("draw") / sd)).mean() < 0.15
    assert found.dose.equals(unseen.dose)


def test_observations_without_their_conditions_are_refused(posterior, unseen, tmp_path):
    again = sciml.load(posterior.save(tmp_path / "line.fit"))
    assert again.grid.conditions == ("dose",)
    np.testing.assert_array_equal(
        again.log_prob(unseen, unseen.parameters), posterior.log_prob(unseen, unseen.parameters)
    )
    seen = unseen.observation
    for wrong, word in (
        (seen.drop_vars("dose"), "dose of the fit are not given"),
        (seen.rename(dose="dosis"), "dosis"),
        (seen.assign_coords(weight=("sample", np.ones(100), {"role": "condition"})), "weight"),
        (seen.assign_coords(dose=("sample", np.full(100, np.nan))), "finite"),
    ):
        with pytest.raises(ValueError, match=word):
            again.predict(wrong)
    reset = unseen.reset_coords("dose")  # a variable of the data set serves too
    assert again.predict(reset).estimate.equals(again.predict(unseen).estimate)
    far = unseen.assign_coords(dose=("sample", np.full(100, 9.0)))
    assert again.predict(far).flagged.all()
    assert again.predict(unseen).flagged.mean() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_conditions_do_not_matter(posterior, unseen, unit):
    data = sciml.simulate(line(unit), 2000, seed=0)
    fit = sciml.fit(posterior.model, data, epochs=40, noise=Gaussian(SD))
    other = unseen.assign_coords(dose=unseen.dose * unit)
    given, wanted = fit.predict(other).estimate, posterior.predict(unseen).estimate
    np.testing.assert_allclose(given, wanted, atol=0.15)


@pytest.mark.slow
def test_samplers_use_the_condition_of_the_observation(posterior, unseen):
    mean, sd = exact(unseen)
    found = smc(line(), unseen.observation[5], settings=Population(particles=1000, moves=10))
    assert abs(float(found.posterior.mean()) - mean[5]) < 0.2 * sd[5]
    assert abs(np.log(float(found.posterior.std()) / sd[5])) < 0.15
    assert float(found.dose) == float(unseen.dose[5])
    some = unseen.isel(sample=slice(8))
    weighed = importance(posterior, line(), some, draws=500)
    assert np.abs((weighed.posterior[..., 0].mean("draw") - mean[:8]) / sd[:8]).max() < 0.3
    assert float(weighed.efficiency.min()) > 0.3
    for wrong in (unseen.observation[5].drop_vars("dose"), unseen.observation[5].rename(dose="x")):
        with pytest.raises(ValueError, match="dose"):
            target(line(), wrong, Gaussian(SD), RungeKutta4())
    with pytest.raises(TypeError, match="bare array"):
        target(line(), unseen.observation.values[5], Gaussian(SD), RungeKutta4())


@pytest.mark.slow
def test_checks_know_the_conditions(posterior, unseen):
    found = posterior.sample(unseen, 50, check=line())
    assert found.c2st.mean() < 0.65
    copies = sciml.diagnose.replicate(
        lambda p: sciml.simulate(line(), parameters=p, noise=Gaussian(SD)), found, draws=20
    )
    inside = sciml.diagnose.predictive(unseen.observation, copies)["check"].to_dataset().inside
    assert abs(float(inside.sel(level=0.8).mean()) - 0.8) < 0.15
    other = Static("line", {"slope": Normal(0.0, 1.0)}, 3, Gaussian(SD))
    with pytest.raises(ValueError, match="conditions dose"):
        posterior.sample(unseen, 5, check=other)


@pytest.mark.slow
def test_rows_that_have_other_conditions_are_of_other_samples(posterior, unseen):
    """Draws, density and truths that were permuted are told by the doses that they carry."""
    turned = unseen.isel(sample=np.roll(np.arange(100), 1))
    drawn, said = posterior.sample(turned, 20), "dose of sample 0 is .* these are other samples"
    for wrong in (
        lambda: posterior.log_prob(turned, unseen),
        lambda: sciml.diagnose.sbc(drawn, unseen),
        lambda: sciml.diagnose.coverage(drawn, unseen.parameters),
        lambda: sciml.diagnose.recalibration(drawn, unseen),
        lambda: sciml.diagnose.informed_references(turned, unseen),
        lambda: sciml.diagnose.recovery(unseen, posterior.predict(turned), names=("slope",)),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()
    assert float(sciml.diagnose.sbc(drawn, turned).ecdf_p[0]) > 0.001


@pytest.mark.slow
@pytest.mark.parametrize("online", [False, True])
def test_point_nets_of_series_take_conditions_and_forcing(online):
    tank = System(
        name="tank",
        vector_field=lambda _t, u, p, c: (c["rain"] - p[0] * u[0] / c["area"],),
        initial_state=(0.0,),
        prior={"leak": Uniform(0.5, 1.5)},
        conditions={"area": Uniform(1.0, 3.0), "rain": Uniform(jnp.zeros(8), 1.0).to_event(1)},
        observation=Observation.regular(interval=0.5, length=8),
        noise=Gaussian(0.01),
        method=RungeKutta4(substeps=2),
    )
    net, recipe = sciml.models.Dense(width=64, depth=3), Recipe(batch=100, learning_rate=3e-3)
    data = tank if online else sciml.simulate(tank, 1000, seed=0)
    fit = sciml.fit(net, data, epochs=60, noise=tank.noise, online=online, recipe=recipe)
    assert fit.grid.inputs == (8, 3)
    unseen = sciml.simulate(tank, 200, seed=1, noise=tank.noise)
    error = fit.predict(unseen).estimate - unseen.parameters
    assert float((error**2).mean() / unseen.parameters.var()) < 0.5


@pytest.mark.slow
def test_conditions_of_others_are_flagged(posterior):
    """Each is usual, and so is each observation; together they are not."""
    positive = dataclasses.replace(line(), prior={"slope": Uniform(0.9, 1.1)})
    data = sciml.simulate(positive, 1000, seed=0)
    fit = sciml.fit(posterior.model, data, epochs=2, noise=Gaussian(SD))
    mine = sciml.simulate(positive, 300, seed=1, noise=Gaussian(SD))
    mixed = mine.assign_coords(dose=mine.dose.copy(data=np.roll(mine.dose.values, 1)))
    assert fit.predict(mine).flagged.mean() < 0.1
    assert fit.predict(mixed).flagged.mean() > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("samples", [120, 300])
def test_conditions_beyond_the_training_are_told_once_at_every_door(samples, caplog):
    """Also where the fit has seen too few samples to flag."""
    model = sciml.models.Gaussian(width=8, depth=1)
    fit = sciml.fit(model, sciml.simulate(line(), samples), epochs=1, noise=Gaussian(SD))
    usual = sciml.simulate(line(), 3, noise=Gaussian(SD))
    far = usual.assign_coords(dose=("sample", [1.0, -9.0, 4.0], {"role": "condition"}))
    for call in (
        fit.predict,
        lambda x: fit.sample(x, 5),
        lambda x: fit.log_prob(x, x),
        lambda x: importance(fit, line(), x, draws=8),
        lambda x: sciml.trials(fit, line(), x, draws=10, proposals=80),
    ):
        for data, count in ((far, 1), (usual, 0)):
            caplog.clear()
            fit.said.clear()
            call(data)
            said = [r.getMessage() for r in caplog.records if "beyond the" in r.getMessage()]
            assert len(said) == count
            assert all(text.startswith("dose is -9 at observation 1,") for text in said)


@pytest.mark.parametrize(("samples", "views"), [(120, 1), (180, 2), (240, 3)])
def test_a_fit_to_few_samples_flags_by_fewer_views(samples, views):
    """With conditions there was no `flagged` below 240 samples, without below 200."""
    model = sciml.models.Gaussian(width=8, depth=1)
    fit = sciml.fit(model, sciml.simulate(line(), samples), epochs=1, noise=Gaussian(SD))
    mine = sciml.simulate(line(), 400, seed=1, noise=Gaussian(SD))
    assert len(fit.alarm.views) == views
    assert fit.predict(mine).flagged.mean() < 0.12
    assert fit.predict(mine.assign(observation=mine.observation + 20)).flagged.all()


@pytest.mark.parametrize("given", [line(), dataclasses.replace(line(), conditions={})])
def test_a_density_far_from_the_training_is_told(given, caplog):
    """`log_prob` answered in silence where `sample` flags: it has no room for a flag."""
    if not given.conditions:
        given = dataclasses.replace(given, solution=lambda p: p[0] * jnp.ones(3))
    model = sciml.models.Gaussian(width=8, depth=1)
    fit = sciml.fit(model, sciml.simulate(given, 300), epochs=1, noise=Gaussian(SD))
    seen = sciml.simulate(given, 50, seed=1, noise=Gaussian(SD))
    fit.log_prob(seen, seen)
    assert "as far from the training" not in caplog.text
    far = seen.assign(observation=seen.observation.where(seen.sample != 7, 90.0))
    for _ in range(2):
        fit.log_prob(far, seen)
    assert [r.getMessage()[:13] for r in caplog.records if "as far" in r.getMessage()] == [
        "observation 7"
    ]


def test_a_condition_is_not_called_as_an_answer_is():
    """It ended an hour of `importance` in xarray's words, or took the place of the answer."""
    with pytest.raises(ValueError, match="'efficiency'; each must be"):
        dataclasses.replace(line(), conditions={"efficiency": Uniform(0.0, 1.0)})
    data = sciml.simulate(line(), 30).rename(dose="spread")
    with pytest.raises(ValueError, match=r"spread, which is what an answer is called.*rename"):
        sciml.fit(sciml.models.Dense(width=8), data, epochs=1)
    own = (data.parameters.values, data.observation.values, {"median": np.ones(30)})
    with pytest.raises(ValueError, match="a condition is named 'median'"):
        sciml.dataset(*own)


@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
def test_another_unit_is_refused_and_one_written_otherwise_is_not(tmp_path):
    rng, axes = np.random.default_rng(0), ("sample", "time")
    dose = xr.DataArray(rng.uniform(1, 2, 120), dims="sample", attrs={"units": "m/s"})
    time = xr.DataArray([0.0, 1.0, 2.0], dims="time", attrs={"units": "hours"})
    theta = rng.uniform(size=(120, 1))
    x = xr.DataArray(theta * dose.values[:, None] * [1, 2, 3], {"time": time}, axes)
    data = sciml.dataset(
        theta, x.assign_attrs(units="km"), {"dose": dose}, names=["a"], bounds=[(0, 1)]
    )
    fit = sciml.fit(sciml.models.Dense(4, 1), data, epochs=1)
    fit.save(tmp_path / "net.fit")
    fit = sciml.load(tmp_path / "net.fit")
    said = data.observation
    same = said.assign_attrs(units="kilometres")
    same.dose.attrs["units"], same.time.attrs["units"] = "metres per second", "h"
    np.testing.assert_array_equal(fit.predict(same).estimate, fit.predict(said).estimate)
    fit.predict(said.drop_attrs())  # which says nothing
    for name, unit in {"observation": "m", "dose": "km/h", "time": "s"}.items():
        other = data.copy(deep=True)
        other[name].attrs["units"] = unit
        with pytest.raises(ValueError, match=f"the unit of .* is '{unit}', but"):
            fit.predict(other)
        with pytest.raises(ValueError, match=f"the unit of .* is '{unit}', but"):
            sciml.fit(sciml.models.Dense(4, 1), data, other, epochs=1)
