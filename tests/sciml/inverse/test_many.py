"""Answers for many observations, written as they come."""

import numpy as np
import pytest
import xarray as xr

import sciml
from sciml.inverse.beyond_memory import many
from sciml.models import Dense, Gaussian
from sciml.train import Recipe

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning"),
]
PREY = sciml.ode.lotka_volterra()


@pytest.fixture(scope="module")
def data(quick_compilation):
    made = sciml.simulate(PREY, samples=300, seed=0)
    return made.isel(sample=made.valid.values)


@pytest.fixture(scope="module")
def fit(data):
    return sciml.fit(Gaussian(embedding=Dense(8, 1)), data, epochs=3, recipe=Recipe(batch=50))


def test_draws_are_those_of_each_observation(fit, data, tmp_path, monkeypatch):
    monkeypatch.setattr(many, "CHUNK_BYTES", 40 * (4 * 200 * 4 + 80))
    lazy = data.chunk(sample=25).assign_coords(place=("sample", np.arange(data.sizes["sample"])))
    found = fit.sample(lazy, 200, 5, out=tmp_path / "draws.zarr")
    assert found.posterior.chunks is not None
    assert found.posterior.chunks[1][0] == 40
    assert found.posterior.dims == ("draw", "sample", "parameter")
    known = fit.sample(data, 200, 5)
    assert found.sizes == known.sizes
    np.testing.assert_array_equal(found.place, np.arange(data.sizes["sample"]))
    np.testing.assert_array_equal(found.flagged, known.flagged)
    # Both are 200 draws of the same densities.
    scale = known.posterior.std("draw") / np.sqrt(200)
    apart = ((found.posterior.mean("draw") - known.posterior.mean("draw")) / scale).values
    assert np.abs(apart).mean() < 2
    again = fit.sample(lazy, 200, 5, out=tmp_path / "again.zarr")
    xr.testing.assert_identical(again.load(), found.load())
    each = found.posterior.values
    assert len(np.unique(each[0, :, 0])) == data.sizes["sample"]  # no chunk repeats another


def test_estimates_are_those_of_one_call(data, tmp_path, monkeypatch):
    fit = sciml.fit(Dense(8, 1), data, epochs=1, recipe=Recipe(batch=50))
    monkeypatch.setattr(many, "CHUNK_BYTES", 2**18)
    found = fit.predict(data.chunk(sample=10), out=tmp_path / "estimates.zarr")
    known = fit.predict(data)
    np.testing.assert_allclose(found.estimate, known.estimate, rtol=1e-5)
    assert found.attrs.keys() == known.attrs.keys()


def test_what_cannot_be_written_is_refused(fit, data, tmp_path):
    with pytest.raises(FileExistsError, match="is there already; remove it"):
        fit.sample(data, 2, out=tmp_path)
    with pytest.raises(ValueError, match="out= needs at least 1 along `sample`"):
        fit.sample(data.isel(sample=slice(0)), 2, out=tmp_path / "none")
    bad = data.copy(deep=True)
    bad.observation[-1] = np.nan
    with pytest.raises(ValueError, match="is not finite"):
        fit.sample(bad, 2, out=tmp_path / "half")
    assert not [*tmp_path.iterdir()]


def test_what_is_no_path_is_refused(fit, data, untyped):
    with pytest.raises(TypeError, match="out is 5; it must be the path of a store"):
        fit.sample(data, 2, out=5)
