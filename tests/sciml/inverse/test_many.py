"""Answers for many observations, written as they come."""

import shutil

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Normal

import sciml
from sciml.inverse import result as many
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_estimates_are_those_of_one_call(data, tmp_path, monkeypatch):
    fit = sciml.fit(Dense(8, 1), data, epochs=1, recipe=Recipe(batch=50))
    monkeypatch.setattr(many, "CHUNK_BYTES", 2**18)
    found = fit.predict(data.chunk(sample=10), out=tmp_path / "estimates.zarr")
    known = fit.predict(data)
    np.testing.assert_allclose(found.estimate, known.estimate, rtol=1e-5)
    assert found.attrs.keys() == known.attrs.keys()


@pytest.mark.slow
def test_what_cannot_be_written_is_refused(fit, data, tmp_path):
    with pytest.raises(FileExistsError, match="is there already; remove it"):
        fit.sample(data, 2, out=tmp_path)
    with pytest.raises(ValueError, match="out= needs at least 1 along `sample`"):
        fit.sample(data.isel(sample=slice(0)), 2, out=tmp_path / "none")
    bad = data.copy(deep=True)
    bad.observation[-1] = np.nan
    with pytest.raises(ValueError, match="is not finite"):
        fit.sample(bad, 2, out=tmp_path / "half")
    with pytest.raises(TypeError, match="problem"):
        fit.sample(data, 2, check="prey", out=tmp_path / "judged")
    assert not [*tmp_path.iterdir()]


def test_what_is_no_path_is_refused(fit, data, untyped):
    with pytest.raises(TypeError, match="out is 5; it must be a path"):
        fit.sample(data, 2, out=5)


class Stopped(Exception):
    """As if the process were killed."""


def stopping(call, after):
    """Answer so often, and then stop."""
    numbers = []

    def answered(*args, **kwargs):
        if len(numbers) == after:
            raise Stopped
        numbers.append(args[2])  # of the first observation
        return call(*args, **kwargs)

    return answered, numbers


@pytest.fixture
def chunks(fit, data, monkeypatch):
    """Seven chunks of observations, with names of which the last are the longest."""
    monkeypatch.setattr(many, "CHUNK_BYTES", 40 * (4 * 20 * 4 + fit.reference[0].nbytes))
    names = [f"cell {10**k}" for k in np.arange(data.sizes["sample"]) // 40]
    return data.assign_coords(cell=("sample", names))


@pytest.mark.slow
def test_answers_go_on_where_a_kill_ended_them(fit, chunks, tmp_path, monkeypatch):
    total = chunks.sizes["sample"]
    whole = fit.sample(chunks, 20, 3, out=tmp_path / "whole.zarr").load()
    own = type(fit).drawn
    first, done = stopping(own, 3)
    monkeypatch.setattr(type(fit), "drawn", first)
    with pytest.raises(Stopped) as stopped:
        fit.sample(chunks, 20, 3, out=tmp_path / "draws.zarr")
    assert done == [0, 40, 80]
    assert "3 chunks are kept in" in stopped.value.__notes__[0]
    with pytest.raises(ValueError, match=r"otherwise \(draws: there 20, here 30, .*: ask the same"):
        fit.sample(chunks, 30, 3, out=tmp_path / "draws.zarr")
    chunks.observation[50] *= 1.01  # in the second chunk
    monkeypatch.setattr(type(fit), "drawn", own)
    renamed = chunks.assign_coords(cell=chunks.cell.where(chunks.cell != "cell 10", "cell 11"))
    with pytest.raises(ValueError, match="cell of the observations is not what it was when"):
        fit.sample(renamed, 20, 3, out=tmp_path / "draws.zarr")
    rest, more = stopping(own, 99)
    monkeypatch.setattr(type(fit), "drawn", rest)
    found = fit.sample(chunks, 20, 3, out=tmp_path / "draws.zarr").load()
    assert more == [40, *range(120, total, 40)]
    assert [*found.cell.values] == [*chunks.cell.values]
    same = np.arange(total) != 50
    xr.testing.assert_identical(found.isel(sample=same), whole.isel(sample=same))
    assert not (found.posterior[:, 50] == whole.posterior[:, 50]).any()
    assert sorted(x.name for x in tmp_path.iterdir()) == ["draws.zarr", "whole.zarr"]


@pytest.mark.slow
def test_whatever_is_asked_of_a_fit_can_be_written(tmp_path):
    line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    data = sciml.simulate(line, samples=300, noise=line.noise)
    fit = sciml.fit(Gaussian(8, 1), data, epochs=20)
    seen = data.isel(sample=slice(50))

    def weighed(part, first):
        return sciml.reference.importance(fit, line, part, draws=200, seed=first)

    how = {"asked": {"draws": 200}, "at_once": 20}
    found = sciml.estimator.in_parts(weighed, seen, tmp_path / "draws.zarr", **how)
    np.testing.assert_allclose(found.posterior.mean("draw"), seen.observation / 1.25, atol=0.2)
    assert (found.efficiency > 0.2).all()
    assert len(np.unique(found.posterior[0])) == 50  # no chunk repeats another
    densities = sciml.estimator.in_parts(
        lambda part, _: fit.log_prob(part, part.parameters), data, tmp_path / "q.zarr", **how
    )
    np.testing.assert_allclose(densities.log_prob, fit.log_prob(data, data.parameters), rtol=1e-5)
    labelled = seen.assign_coords(sample=[f"run {i}" for i in range(50)][::-1])
    found = sciml.estimator.in_parts(
        lambda part, _: fit.log_prob(part, part), labelled, tmp_path / "named.zarr", **how
    )
    np.testing.assert_array_equal(found.sample, labelled.sample)
    np.testing.assert_allclose(found.log_prob, densities.log_prob[:50], rtol=1e-5)


@pytest.mark.parametrize("lost", ["posterior/0.1.0", "flagged/1", "posterior", "cell"])
def test_answers_that_were_lost_are_answered_again(fit, chunks, tmp_path, monkeypatch, lost):
    whole = fit.sample(chunks, 20, 3, out=tmp_path / "whole.zarr").load()
    own = type(fit).drawn
    monkeypatch.setattr(type(fit), "drawn", stopping(own, 3)[0])
    with pytest.raises(Stopped):
        fit.sample(chunks, 20, 3, out=tmp_path / "draws.zarr")
    place = tmp_path / ".draws.zarr.partial" / "answers" / lost
    assert place.exists()
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    rest, more = stopping(own, 99)
    monkeypatch.setattr(type(fit), "drawn", rest)
    xr.testing.assert_identical(
        fit.sample(chunks, 20, 3, out=tmp_path / "draws.zarr").load(), whole
    )
    assert more[0] == (0 if lost in ("posterior", "cell") else 40)


NO_ANSWERS = {
    "bare": (lambda part, _: part.parameters.values, {}, "call gave array"),
    "one for all": (lambda part, _: part.parameters.mean(), {}, r"call gave \{\}; it must give"),
    "too few": (lambda part, _: part.parameters[:5], {}, "with 20 along sample"),
    "no JSON": (lambda part, _: part.parameters, {"asked": {"a": {1}}}, "asked must be a dict"),
    "a name of ours": (lambda part, _: part.parameters, {"asked": {"at_once": 1}}, "are added"),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_is_no_answer_is_refused(data, tmp_path, name, untyped):
    call, more, said = NO_ANSWERS[name]
    how = {"asked": {}, "at_once": 20} | more
    with pytest.raises(ValueError, match=said):
        sciml.estimator.in_parts(call, data, tmp_path / "out.zarr", **how)
    assert not [*tmp_path.iterdir()]


def test_labels_of_several_levels_are_refused_in_one_line(fit, data, tmp_path):
    levels = pd.MultiIndex.from_product([["a", "b"], range(5)], names=["cell", "run"])
    coords = xr.Coordinates.from_pandas_multiindex(levels, "sample")
    some = data.isel(sample=slice(10)).assign_coords(coords)
    with pytest.raises(ValueError, match=r"pass data\.reset_index"):
        fit.sample(some, 5, out=tmp_path / "out.zarr")
    found = fit.sample(some.reset_index("sample"), 5, out=tmp_path / "out.zarr")
    np.testing.assert_array_equal(found.run, [*range(5), *range(5)])


def test_a_fit_does_not_change_with_the_array_that_it_learned(data):
    mine = data.copy(deep=True)
    one, other = (
        sciml.fit(Dense(8, 1), each, epochs=1, recipe=Recipe(batch=50)) for each in (data, mine)
    )
    mine.observation.values[:] = 1e6
    np.testing.assert_array_equal(other.predict(data).flagged, one.predict(data).flagged)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3", "netCDF"])
def test_labels_are_kept_whatever_packed_them_in_the_file_of_the_observations(
    fit, data, tmp_path, kind
):
    count = 10
    some = data[["observation", "parameters"]].isel(sample=slice(count)).drop_encoding()
    some = some.assign_coords(
        depth=("sample", 0.5 * np.arange(count)), site=("sample", [*"abcdefghij"])
    )
    packed = {"depth": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}}
    if kind == "netCDF":
        some.to_netcdf(tmp_path / "in", engine="h5netcdf", encoding=packed)
        read = xr.open_dataset(tmp_path / "in", engine="h5netcdf")
    else:
        some.to_zarr(
            tmp_path / "in", zarr_format=int(kind[-1]), encoding=packed, consolidated=False
        )
        read = xr.open_zarr(tmp_path / "in", consolidated=False)
    moved = read.assign_coords(depth=read.depth.copy(data=0.1 * np.arange(count)))
    found = fit.sample(moved, 5, out=tmp_path / "out.zarr")
    np.testing.assert_array_equal(found.depth, 0.1 * np.arange(count))
    np.testing.assert_array_equal(found.site, [*"abcdefghij"])
