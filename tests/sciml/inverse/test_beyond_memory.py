"""Data sets that are read as a net trains: what is learned, what is refused, what is told."""

import jax
import numpy as np
import pytest
import xarray as xr

import sciml
import wse
from sciml.inverse import Windows
from sciml.inverse.beyond_memory import windows as module
from sciml.models import Dense, Gaussian
from sciml.ode import AR1, RungeKutta4, accumulate, open_simulations
from sciml.train import Recipe

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning"),
]
SMALL, RECIPE = Dense(8, 1), Recipe(batch=20, learning_rate=5e-3)
OPTIONS = {"epochs": 2, "recipe": RECIPE}
PREY = sciml.ode.lotka_volterra()
METHOD = RungeKutta4(chunk=32)


def weights(fit) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(fit.params)])


@pytest.fixture(scope="module")
def store(tmp_path_factory, quick_compilation):
    path = tmp_path_factory.mktemp("store") / "prey.zarr"
    accumulate(PREY, path, samples=640, method=METHOD)
    return path


@pytest.fixture
def lazy(store):
    return open_simulations(store)


def windows(data, samples: int = 160) -> Windows:
    return Windows(data, samples * Windows(data).sample_bytes)


@pytest.mark.slow
def test_what_is_small_is_loaded_whole(lazy):
    loaded = sciml.fit(SMALL, lazy.load(), **OPTIONS)
    assert (weights(sciml.fit(SMALL, lazy, **OPTIONS)) == weights(loaded)).all()


@pytest.mark.slow
def test_what_is_large_is_read_in_windows(lazy, monkeypatch):
    size = 160 * Windows(lazy).sample_bytes
    expected = sciml.fit(SMALL, Windows(lazy, size), 0.1, **OPTIONS)
    monkeypatch.setattr(module, "WINDOW_BYTES", size)
    found = sciml.fit(SMALL, lazy, 0.1, **OPTIONS)
    assert (weights(found) == weights(expected)).all()
    with pytest.raises(ValueError, match="640 samples on disk, more than fit into memory"):
        sciml.fit(SMALL, lazy.isel(sample=slice(20)).load(), lazy, **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("model", [Dense(16, 1), Gaussian(embedding=Dense(16, 1))])
def test_learns_what_it_learns_in_memory(lazy, model):
    held = sciml.simulate(PREY, samples=100, seed=9)
    options = {"epochs": 8, "recipe": RECIPE, "noise": AR1(sd=0.05)}
    known, read = (
        sciml.fit(model, data, held, **options).history.validation_loss.values
        for data in (lazy, windows(lazy))
    )
    gained = known[0] - known.min()
    assert abs(read.min() - known.min()) < 0.3 * gained
    assert gained > 0


@pytest.mark.slow
def test_a_transposed_data_set_is_refused_by_its_dimensions(lazy):
    turned = lazy.transpose(..., "sample")
    assert Windows(turned).sample_bytes == Windows(lazy).sample_bytes
    with pytest.raises(ValueError, match=r"has the dimensions \(.*'sample'\); they must be"):
        sciml.fit(SMALL, windows(turned), **OPTIONS)


@pytest.mark.slow
def test_targets_span_all_samples(lazy):
    fit = sciml.fit(SMALL, windows(lazy), **OPTIONS)
    theta = lazy.parameters.values[lazy.valid.values]
    np.testing.assert_allclose(fit.scaling.low, theta.min(axis=0))
    np.testing.assert_allclose(fit.scaling.high, theta.max(axis=0))
    assert f'"samples": {lazy.valid.values.sum()}' in fit.attrs["fit"]


def test_chunks_that_are_held_out_are_not_trained_on(lazy):
    rest, held = windows(lazy).held_out(0.2, seed=3)
    read = np.concatenate([rest.piece(i).parameters.values for i in range(len(rest.sizes))])
    assert len(read) + held.sizes["sample"] == lazy.valid.values.sum()
    assert not {*map(bytes, read)} & {*map(bytes, held.parameters.values)}
    assert 0.2 <= held.sizes["sample"] / lazy.sizes["sample"] < 0.3


@pytest.mark.slow
def test_a_store_that_grows_is_read_as_far_as_it_was_opened(tmp_path):
    path = tmp_path / "growing.zarr"
    begun = accumulate(PREY, path, samples=320, method=METHOD)
    before = sciml.fit(SMALL, windows(begun), **OPTIONS)
    accumulate(PREY, path, samples=400, method=METHOD)
    after = sciml.fit(SMALL, windows(begun), **OPTIONS)
    assert (weights(after) == weights(before)).all()
    assert after.attrs["fit"] == before.attrs["fit"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["lost", "cut"])
def test_a_zarr_store_that_was_harmed_is_refused(tmp_path, harm):
    """Lost chunks were learned from as zeros; cut ones named no sample."""
    whole = sciml.simulate(sciml.ode.lotka_volterra(), samples=80, seed=0).chunk(sample=20)
    bare = {name: {"_FillValue": None} for name in ("observation", "parameters")}
    path = tmp_path / "mine.zarr"
    whole.drop_encoding().to_zarr(path, zarr_format=2, consolidated=False, encoding=bare)
    lazy = xr.open_zarr(path, consolidated=False)
    chunk = path / "observation" / "1.0.0"
    if harm == "lost":
        chunk.unlink()
        said = "observation of .*mine.zarr lacks 1 of 4 chunks, which would read as None"
    else:
        chunk.write_bytes(chunk.read_bytes()[:50])
        said = "^of samples 20 to 39 on disk, RuntimeError: .*; write them again"
    with pytest.raises(ValueError, match=said):
        sciml.fit(Dense(4, 1), windows(lazy, 40), epochs=1, recipe=Recipe(batch=8))


@pytest.mark.slow
def test_a_chunk_of_failures_alone_is_not_written_and_passed_over(tmp_path):
    """Zarr writes no chunk that holds nothing but its fill value, here NaN."""
    whole = sciml.simulate(sciml.ode.lotka_volterra(), samples=80, seed=0)
    failed = np.arange(80) // 20 == 1
    whole["observation"] = whole.observation.where(xr.DataArray(~failed, dims="sample"))
    whole["valid"] = whole.valid & ~failed
    path = tmp_path / "mine.zarr"
    whole.chunk(sample=20).drop_encoding().to_zarr(path, zarr_format=2, consolidated=False)
    assert not (path / "observation" / "1.0.0").exists()
    lazy = xr.open_zarr(path, consolidated=False)
    found = sciml.fit(Dense(4, 1), windows(lazy, 40), epochs=1, recipe=Recipe(batch=8))
    assert '"samples": 60' in found.attrs["fit"]


def test_conditions_are_read_beside_observations():
    from numpyro.distributions import Uniform

    rng = np.random.default_rng(0)
    theta, dose = rng.uniform(size=(200, 1)), rng.uniform(1, 2, size=200)
    seen = theta * dose[:, None] * np.linspace(0, 1, 5)
    data = sciml.dataset(theta, seen, {"dose": dose}, names=["a"], prior={"a": Uniform(0, 1)})
    fit = sciml.fit(SMALL, windows(data.chunk(sample=10), 60), 0.1, **OPTIONS)
    assert fit.grid.conditions == ("dose",)
    assert np.isfinite(fit.predict(data).estimate).all()


@pytest.mark.parametrize("least", [20, 1000], ids=["while it trains", "before"])
def test_a_value_that_is_not_finite_is_told_with_its_place(lazy, monkeypatch, least):
    monkeypatch.setattr(module, "FIRST_LEAST", least)
    bad = lazy.load().copy(deep=True)
    row = int(np.flatnonzero(bad.valid.values)[-1])
    bad.observation[row, 0, 0] = np.nan
    with pytest.raises(ValueError, match="of samples 608 to 639 on disk, observation of sample"):
        sciml.fit(SMALL, windows(bad.chunk(sample=32)), **OPTIONS)


def test_samples_that_were_sorted_are_told(lazy, caplog):
    lazy = lazy.load()
    windows(lazy.chunk(sample=32)).first(0, missing=False)
    assert "differ among themselves" not in caplog.text
    windows(lazy.sortby(lazy.parameters[:, 0]).chunk(sample=32), 6400).first(0, missing=False)
    assert "the chunks of the data differ among themselves" in caplog.text


@pytest.mark.parametrize(
    "chunks", [(32,) * 19 + (3,) + (29,), (2, 318, 320), (500, 140), (1,) * 640]
)
def test_chunks_of_any_size_are_alike_where_samples_are_independent(lazy, chunks, caplog):
    lazy = lazy.load()
    windows(lazy.chunk(sample=chunks), 6400).first(0, missing=False)
    assert "differ among themselves" not in caplog.text
    windows(lazy.sortby(lazy.parameters[:, 0]).chunk(sample=chunks), 6400).first(0, missing=False)
    assert "the chunks of the data differ among themselves" in caplog.text


def test_a_chunk_in_which_all_failed_is_passed_over(lazy):
    lazy = lazy.load().copy(deep=True)
    gone = slice(64, 160)
    left = lazy.isel(sample=np.r_[:64, 160:640])
    lazy["valid"][gone], lazy.observation[gone] = False, np.nan
    fit = sciml.fit(SMALL, windows(lazy.chunk(sample=32)), **OPTIONS)
    assert f'"samples": {left.valid.values.sum()}' in fit.attrs["fit"]
    assert np.isfinite(weights(fit)).all()
    lazy["valid"][:] = False
    with pytest.raises(ValueError, match="all 640 samples on disk have failed"):
        sciml.fit(SMALL, windows(lazy.chunk(sample=32)), 0.1, **OPTIONS)


REFUSED = {
    "an executor": (lambda x: {"executor": wse.CS2()}, "leave the executor out"),
    "too much held out": (lambda x: {"validation": 0.9}, "must fit into a window of 160"),
    "all held out": (lambda x: {"validation": 0.99}, "holds out 20 of 20 chunks.*smaller chunks"),
    "no share": (lambda x: {"validation": 1.0}, "validation is 1.0; it must be a share"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(lazy, name):
    options, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        sciml.fit(SMALL, windows(lazy), **OPTIONS, **options(lazy))


@pytest.mark.usefixtures("untyped")
def test_windows_that_hold_nothing_are_refused(lazy):
    with pytest.raises(ValueError, match="size_bytes is 0; it must be positive"):
        Windows(lazy, 0)
    with pytest.raises(ValueError, match=r"a chunk of the data has .* bytes as float32"):
        windows(lazy, 20)
    with pytest.raises(TypeError, match="data is a list; Windows takes a Dataset"):
        Windows([])
