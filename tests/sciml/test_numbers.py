"""Numbers of a wrong kind are refused in one line, before any work."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import xarray as xr

import sciml
from sciml import downscale
from sciml.train import Recipe
from wse._files import write_aside

pytestmark = pytest.mark.usefixtures("untyped")
PROBLEM = sciml.ode.lotka_volterra()
NET = sciml.models.Dense(8, 1)
NONE = xr.Dataset()


def fitted(*given, **settings):
    return sciml.fit(NET, NONE, *given, **{"epochs": 1, **settings})


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: sciml.simulate(PROBLEM, samples="10"), ValueError, "samples is '10'"),
        (lambda: sciml.simulate(PROBLEM, samples=True), ValueError, "samples is True"),
        (lambda: sciml.simulate(PROBLEM, samples=4, seed="a"), ValueError, "seed is 'a'"),
        (lambda: sciml.simulate(PROBLEM, samples=4, seed=1.5), ValueError, "seed is 1.5"),
        (lambda: sciml.simulate(PROBLEM, samples=4, seed=2**63), ValueError, "seed is 9223"),
        (lambda: sciml.ode.accumulate(PROBLEM, "a.zarr", samples=1e3), ValueError, "1000.0"),
        (lambda: fitted("a"), TypeError, "validation is 'a'; .* share"),
        (lambda: fitted(0.2, epochs="3"), ValueError, "epochs is '3'"),
        (lambda: fitted(0.2, seed=-1), ValueError, "seed is -1; .* from 0"),
        (lambda: fitted(0.2, recipe={"batch": 20}), TypeError, "recipe is .*batch.* a Recipe"),
        (lambda: fitted(0.2, executor="CS2"), TypeError, r"executor is 'CS2'; .* wse.CS2\(\)"),
        (lambda: sciml.train.Checkpoint("."), ValueError, r"checkpoint is '\.'; .* a file"),
        (lambda: sciml.train.Checkpoint(3), ValueError, "checkpoint is '3'"),
        (lambda: Recipe(batch="20"), ValueError, "Recipe.batch is '20'"),
        (lambda: Recipe(batch=2.5), ValueError, "Recipe.batch is 2.5"),
        (lambda: Recipe(learning_rate="fast"), ValueError, "learning_rate is 'fast'"),
        (lambda: Recipe(clip="never"), ValueError, "Recipe.clip is 'never'"),
        (lambda: sciml.wind.gaussian(seed="a", snapshots=1, n=16), ValueError, "seed is 'a'"),
        (lambda: sciml.wind.gaussian(seed=0, snapshots="1", n=16), ValueError, "snapshots is '1'"),
    ],
)
def test_what_is_no_such_number_is_named(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


@pytest.mark.parametrize("path", [None, 3, "", 2.5])
@pytest.mark.parametrize(
    "call",
    [
        sciml.load,
        sciml.wind.open,
        lambda path: sciml.wind.open([path]),
        lambda path: sciml.ode.accumulate(PROBLEM, path, samples=3),
        downscale.load_downscaling,
        lambda path: write_aside(path).__enter__(),
    ],
)
def test_what_is_no_path_is_named(call, path):
    with pytest.raises(TypeError, match=rf"path is {path!r}; it must be a path, .*: pass "):
        call(path)


@pytest.mark.parametrize("fields", [None, 3, "winds.nc", xr.DataArray([1.0], name="x_wind")])
def test_fields_that_are_no_dataset_are_named(fields):
    kind = type(fields).__name__
    with pytest.raises(TypeError, match=rf"winds are a {kind}; .* sciml.wind.open\(path\)"):
        sciml.wind.channels(fields, ("x_wind",))
    with pytest.raises(TypeError, match=rf"mine is a {kind}; fields are an xarray Dataset"):
        sciml.wind.conform(fields, "mine")


def test_numbers_of_numpy_are_numbers():
    made = sciml.simulate(PROBLEM, samples=np.int64(3), seed=np.uint8(1))
    same = sciml.simulate(PROBLEM, samples=3, seed=1)
    np.testing.assert_array_equal(made.observation, same.observation)
    kept = json.loads(json.dumps(asdict(Recipe(batch=np.int32(7), clip=np.float32(0.5)))))
    assert (kept["batch"], kept["clip"]) == (7, 0.5)
