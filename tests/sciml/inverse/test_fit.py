"""From data sets to a net, to estimates, to a file and back; and what is refused."""

import json
import zipfile

import jax
import numpy as np
import pytest
import xarray as xr

import sciml
from sciml.estimator import CollapseWarning, NotAFitError
from sciml.models import Convolutional, Dense
from sciml.ode import AR1, Observation, System
from sciml.train import Recipe

RECIPE = Recipe(batch=20, learning_rate=5e-3)


def decay() -> System:
    """u' = −θ u."""
    from numpyro.distributions import Uniform

    return System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0] + p[1],),
        initial_state=(1.0,),
        prior={"rate": Uniform(0.5, 2.0), "source": Uniform(-1.0, 1.0)},
        observation=Observation.regular(interval=0.05, length=60),
        time_unit="h",
    )


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return sciml.simulate(decay(), samples=200, seed=0)


@pytest.fixture(scope="module")
def fit(data):
    return sciml.fit(Dense(width=16, depth=2), data, epochs=100, recipe=RECIPE)


@pytest.mark.slow
def test_recovers_parameters_it_has_not_seen(fit):
    test = sciml.simulate(decay(), samples=100, seed=1)
    estimate = fit.predict(test)
    error = estimate.estimate.values - test.parameters.values
    assert np.abs(error).mean() < 0.1
    assert estimate.estimate.dims == ("sample", "parameter")
    assert estimate.parameter.values.tolist() == ["rate", "source"]


@pytest.mark.slow
def test_same_seed_same_numbers(fit, data):
    again = sciml.fit(Dense(width=16, depth=2), data, epochs=100, recipe=RECIPE)
    other = sciml.fit(Dense(width=16, depth=2), data, epochs=100, recipe=RECIPE, seed=1)
    np.testing.assert_array_equal(fit.predict(data).estimate, again.predict(data).estimate)
    assert not np.array_equal(fit.predict(data).estimate, other.predict(data).estimate)


def test_estimates_keep_the_sample_coordinate(fit, data):
    named = data.isel(sample=slice(3)).assign_coords(sample=[7, 8, 9])
    estimate = fit.predict(named)
    assert estimate.sample.values.tolist() == [7, 8, 9]
    np.testing.assert_allclose(fit.predict(named.observation).estimate, estimate.estimate)
    # One sample or a thousand: batches are padded, results are not.
    one = fit.predict(data.isel(sample=[5]))
    np.testing.assert_allclose(one.estimate[0], fit.predict(data).estimate[5], rtol=1e-4)


@pytest.mark.slow
def test_validation_is_recorded_and_its_best_weights_kept(data):
    validation = sciml.simulate(decay(), samples=50, seed=2, noise=AR1(sd=0.1))
    fit = sciml.fit(
        Dense(width=8, depth=2), data, validation, epochs=30, recipe=RECIPE, noise=AR1(sd=0.1)
    )
    scores = fit.history.validation_loss
    assert scores.sizes["validated_epoch"] == 30
    x = fit.predict(validation).estimate.values
    low, high = np.array(fit.scaling.low), np.array(fit.scaling.high)
    best = np.mean(((x - validation.parameters.values) / (high - low)) ** 2)
    assert best == pytest.approx(float(scores.min()), rel=1e-3)


@pytest.mark.slow
def test_fresh_noise_changes_training_but_not_its_seed(data):
    model, noise = Dense(width=8, depth=1), AR1(sd=0.3)
    one = sciml.fit(model, data, epochs=15, recipe=RECIPE, noise=noise)
    two = sciml.fit(model, data, epochs=15, recipe=RECIPE, noise=noise)
    clean = sciml.fit(model, data, epochs=15, recipe=RECIPE)
    np.testing.assert_array_equal(one.history.loss, two.history.loss)
    assert not np.array_equal(one.history.loss, clean.history.loss)


@pytest.mark.slow
@pytest.mark.parametrize("model", [Dense(width=8, depth=2), Convolutional(filters=4, units=16)])
def test_a_file_brings_everything_back(tmp_path, data, model):
    fit = sciml.fit(model, data, epochs=40, recipe=RECIPE)
    back = sciml.load(fit.save(tmp_path / "run"))
    np.testing.assert_array_equal(back.predict(data).estimate, fit.predict(data).estimate)
    assert (back.model, back.recipe, back.scaling) == (fit.model, fit.recipe, fit.scaling)
    assert back.attrs == fit.attrs
    assert back.grid.time_unit == "h"
    xr.testing.assert_identical(back.history, fit.history)
    assert jax.tree.structure(back.params) == jax.tree.structure(fit.params)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_its_provenance_is_told(fit):
    settings = json.loads(fit.attrs["fit"])
    assert set(json.loads(settings.pop("prior"))) == {"rate", "source"}
    assert settings == {
        "epochs": 100,
        "seed": 0,
        "samples": 200,
        "model": f"{fit.model}",
        "noise": None,
        "online": None,
    }
    assert "jax" in fit.attrs["versions"]
    assert fit.attrs["machine"]
    assert "Dense(width=16, depth=2" in repr(fit)
    assert len(repr(fit)) < 200


def rewrite(path, change) -> None:
    """Change the description inside a saved fit."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    described = json.loads(str(arrays["description"]))
    change(described)
    arrays["description"] = np.array(json.dumps(described))
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda d: d.update(format="other"), r"not that of a sciml\.fit"),
        (lambda d: d.update(schema=99), "schema is 99"),
        (lambda d: d["model"].update(kind="os.system"), "known are"),
        (lambda d: d["model"].update(width=9), "needs"),
        (lambda d: d["model"].update(width=-9), "whole number"),
        (lambda d: d["model"].update(cost=1), "cannot be read"),
        (lambda d: d.pop("scaling"), "scaling"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, fit, change, error):
    path = fit.save(tmp_path / "run")
    rewrite(path, change)
    with pytest.raises(NotAFitError, match=error):
        sciml.load(path)


@pytest.mark.parametrize("content", [b"", b"not a fit", b"PK\x03\x04 broken"])
def test_a_corrupt_file_is_refused(tmp_path, content):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(NotAFitError, match="run"):
        sciml.load(path)


def test_a_truncated_file_is_refused(tmp_path, fit):
    path = fit.save(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(NotAFitError):
        sciml.load(path)


def test_a_foreign_archive_is_refused(tmp_path):
    path = tmp_path / "run"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(NotAFitError, match="no description"):
        sciml.load(path)


def test_pickles_are_never_read(tmp_path):
    path = tmp_path / "run"
    with path.open("wb") as file:
        np.savez(file, description=np.array([{"format": "sciml.fit"}], dtype=object))
    with pytest.raises(NotAFitError):
        sciml.load(path)


def test_a_missing_file_and_an_unwritable_folder(tmp_path, fit):
    with pytest.raises(FileNotFoundError, match="is not a file"):
        sciml.load(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        fit.save(tmp_path / "file" / "run")


def with_nan(data: xr.Dataset) -> xr.Dataset:
    broken = data.copy(deep=True)
    broken.observation[3, 5] = np.nan
    return broken


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (with_nan, "sample 3 is not finite"),
        (lambda d: d.isel(time=slice(50)), "50 times"),
        (
            lambda d: d.assign_coords(time=d.time * 2),
            r"time\[1\] of the observations is \S+, but \S+ in what the net was trained on",
        ),
        (lambda d: d.drop_vars("observation"), "must have 'observation'"),
        (lambda d: d.transpose("time", "sample", "parameter"), "they must be"),
    ],
)
def test_observations_that_do_not_fit_are_refused(fit, data, change, error):
    keep = xr.set_options(keep_attrs=True)
    with keep, pytest.raises(ValueError, match=error):
        fit.predict(change(data))


def test_another_unit_of_time_is_refused(fit, data):
    seconds = data.assign_coords(time=data.time.assign_attrs(units="s"))
    with pytest.raises(ValueError, match="unit of time is 's'"):
        fit.predict(seconds)


def test_an_array_is_answered_as_the_data_set_is(fit, data):
    bare, labelled = (fit.predict(x).estimate.values for x in (data.observation.values, data))
    np.testing.assert_array_equal(bare, labelled)
    for wrong in (data.observation.values.T, data.observation.values[..., None]):
        with pytest.raises(ValueError, match=r"one grid|must be \(sample, time"):
            fit.predict(wrong)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (with_nan, "not finite"),
        (lambda d: d.drop_vars("parameters"), "must have 'parameters'"),
        (lambda d: d.assign(valid=d.valid & False), "0 valid samples"),
        (lambda d: d.assign(parameters=d.parameters * 0 + 1), "must vary"),
        (lambda d: d.isel(sample=slice(5)), "5 samples"),
    ],
)
def test_training_sets_that_do_not_fit_are_refused(data, change, error):
    with pytest.raises(ValueError, match=error):
        sciml.fit(Dense(width=4, depth=1), change(data), epochs=1, recipe=RECIPE)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda d: d.rename(sample="run"), r"dimensions \('run', 'time'\); they must be \('sample"),
        (lambda d: d.isel(sample=slice(0)), "has 0 samples; it needs 2"),
        (lambda d: d.isel(sample=slice(1)), "has 1 samples; it needs 2"),
    ],
)
def test_sets_of_which_no_share_can_be_held_out_are_refused(data, change, error):
    with pytest.raises(ValueError, match=error):
        sciml.fit(Dense(width=4, depth=1), change(data), 0.1, epochs=1, recipe=RECIPE)


def test_the_name_of_a_folder_is_no_data_set(tmp_path):
    with pytest.raises(TypeError, match=r"xarray\.open_zarr\(folder\)"):
        sciml.fit(Dense(width=4, depth=1), tmp_path, 0.1, epochs=1)


def test_validation_on_another_grid_is_refused(data):
    with pytest.raises(ValueError, match="trained on"):
        sciml.fit(Dense(width=4, depth=1), data, data.isel(time=slice(9)), epochs=1, recipe=RECIPE)


def test_failed_samples_are_left_out(data, caplog):
    broken = with_nan(data)
    broken["valid"][3] = False
    fit = sciml.fit(Dense(width=4, depth=1), broken, epochs=20, recipe=RECIPE)
    assert json.loads(fit.attrs["fit"])["samples"] == 199
    assert "1 failed samples" in caplog.text


def test_a_collapse_to_the_mean_raises_the_alarm(data):
    flat = data.assign(observation=data.observation * 0)  # nothing to learn from
    with (
        pytest.warns(CollapseWarning, match="collapsed to the mean"),
        pytest.warns(CollapseWarning, match="all 200 observations are the same"),
    ):
        fit = sciml.fit(Dense(width=8, depth=2), flat, epochs=5, recipe=RECIPE)
    assert fit.collapsed == ("rate", "source")


def test_bfloat16_products_learn_as_well_and_come_back(data, fit, tmp_path):
    recipe = RECIPE.replace(precision="bfloat16")
    mixed = sciml.fit(Dense(width=16, depth=2), data, epochs=100, recipe=recipe)
    assert float(mixed.history.loss[-1]) < 1.5 * float(fit.history.loss[-1])
    assert {leaf.dtype for leaf in jax.tree.leaves(mixed.params)} == {np.dtype("float32")}
    back = sciml.load(mixed.save(tmp_path / "run"))
    np.testing.assert_array_equal(back.predict(data).estimate, mixed.predict(data).estimate)
    assert back.recipe.precision == "bfloat16"


@pytest.mark.slow
def test_what_all_samples_lack_is_no_part_of_what_is_usual(caplog):
    """A time without a value in any sample warns of nothing; a value there is flagged and told."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(240, 1))
    x = theta * np.arange(1.0, 6) + 0.1 * rng.normal(size=(240, 5))
    lacking = np.where(np.arange(5) == 2, np.nan, x)
    net = sciml.models.Gaussian(8, 1, embedding=Dense(8, 1, missing=True))
    data = sciml.dataset(theta, lacking, bounds=[(None, None)], time=np.arange(5))
    fit = sciml.fit(net, data, epochs=5)
    assert fit.sample(lacking, 2).flagged.mean() < 0.2
    assert "values where all" not in caplog.text
    assert fit.sample(x, 2).flagged.all()
    assert "observation 0 has values where all of the training miss theirs" in caplog.text
