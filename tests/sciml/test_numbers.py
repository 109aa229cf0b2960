"""Numbers of a wrong kind are refused in one line, before any work."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Uniform

import sciml
from sciml import downscale
from sciml.train import Recipe, devices
from wse._files import write_aside

pytestmark = pytest.mark.usefixtures("untyped")
PROBLEM = sciml.ode.lotka_volterra()
NET = sciml.models.Dense(8, 1)
NONE = xr.Dataset()
SEEN = xr.DataArray(np.zeros((1, 5, 2)), dims=("sample", "time", "channel"), name="observation")


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
    with pytest.raises(TypeError, match=rf"winds is a {kind}; .* sciml.wind.open\(path\)"):
        sciml.wind.channels(fields, ("x_wind",))
    with pytest.raises(TypeError, match=rf"mine is a {kind}; fields are an xarray Dataset"):
        sciml.wind.conform(fields, "mine")


def test_numbers_of_numpy_are_numbers():
    made = sciml.simulate(PROBLEM, samples=np.int64(3), seed=np.uint8(1))
    same = sciml.simulate(PROBLEM, samples=3, seed=1)
    np.testing.assert_array_equal(made.observation, same.observation)
    kept = json.loads(json.dumps(asdict(Recipe(batch=np.int32(7), clip=np.float32(0.5)))))
    assert (kept["batch"], kept["clip"]) == (7, 0.5)


TABLE = pd.DataFrame({"a": [1.0, 2.0]})
BOX = {"simulator": lambda p: p["rate"] * np.arange(5), "prior": {"rate": Uniform(0.1, 1.0)}}


def box(**changed):
    return sciml.ode.BlackBox(**{**BOX, **changed})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sciml.refine(None, PROBLEM, NONE), "fit is None .*; pass what sciml.fit gives"),
        (lambda: sciml.refine(TABLE, PROBLEM, NONE), "fit is .* of type DataFrame; pass what"),
        (lambda: sciml.population("a", PROBLEM, SEEN), "proposal is 'a'; it must be a fit"),
        (lambda: sciml.trials(TABLE, PROBLEM, SEEN), "proposal is .*; it must be a fit"),
        (lambda: sciml.reference.trust(3, PROBLEM, SEEN), "proposal is 3; it must be a fit"),
        (lambda: sciml.reference.importance(3, PROBLEM, SEEN), "proposal is 3; it must be a fit"),
        (lambda: box(prior=None), "the prior is None; it must be a dict of names"),
        (lambda: box(prior={}), "the prior is {}; it must be a dict of names"),
        (lambda: box(prior=TABLE), "the prior is .*; it must be a dict of names"),
        (lambda: box(simulator=TABLE), "the simulator is .*; it must be a function"),
        (lambda: box(conditions=TABLE), "conditions of .*; they must be a dict"),
        (lambda: box(time=3), "time is 3; it must be a row"),
        (lambda: box(time={"a": 1}), "time is {'a': 1}; it must be a row"),
        (lambda: box(labels="ab"), "labels is 'ab'; it must be a row"),
        (lambda: box(scheduler="thread"), "scheduler is 'thread'; it must be one of threads, "),
        (lambda: box(scheduler=3), "scheduler is 3; it must be a word or a distributed.Client"),
        (lambda: sciml.dataset(np.ones((3, 1)), np.ones((3, 5)), time=3), "time is 3; it must be"),
        (lambda: sciml.ode.read_petab(None), "path is None; it must be a path"),
        (
            lambda: sciml.ode.read_sbml(3, BOX["prior"], times=[1.0], observed=["a"]),
            "path is 3; it must be a path",
        ),
        (lambda: sciml.wind.open_statics(3), "path is 3; it must be a path"),
        (
            lambda: sciml.ode.accumulate(PROBLEM, "a.zarr", samples=5, client=TABLE),
            "client is .*; it must be a distributed.Client",
        ),
        (lambda: devices.shared(np.array(3), 20), r"devices is array\(3\); it must be a number"),
    ],
)
def test_what_is_of_another_kind_is_named_in_a_line(call, said):
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_row_may_be_anything_of_one_axis():
    for time in (range(5), [0, 1, 2, 3, 4], pd.Index(np.arange(5)), np.arange(5, dtype="f2")):
        data = sciml.simulate(box(time=time), samples=3)
        np.testing.assert_array_equal(data.time, np.arange(5))
