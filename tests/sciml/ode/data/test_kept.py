"""Calls of a simulator that are kept: what was interrupted goes on, with the same numbers."""

import logging
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpyro.distributions import Uniform

import sciml
from sciml.ode.data import kept

pytestmark = pytest.mark.usefixtures("quick_compilation")
PRIOR = {"a": Uniform(0.0, 1.0), "b": Uniform(5.0, 6.0)}
HOW = {"seed": 3, "scheduler": "synchronous"}


class Counted:
    """Counts its calls, and stops like a user at one of them."""

    def __init__(self, function, stop=None):
        self.function, self.stop, self.calls, self.failures = function, stop, 0, 0
        self.__name__ = "simulator"

    def __call__(self, p, rng):
        self.calls += 1
        if self.calls == self.stop:
            raise KeyboardInterrupt
        try:
            return self.function(p, rng)
        except RuntimeError:
            self.failures += 1
            raise


def array(p, rng):
    return p["a"] * np.arange(4) + p["b"] + rng.normal(size=4)


def fails(p, rng):
    found = array(p, rng)
    if p["a"] < 0.3:
        raise RuntimeError("no license")
    return np.where(p["a"] > 0.9, np.nan, found)


def named(p, rng):
    return dict(zip("wxyz", array(p, rng), strict=True))


def table(p, rng):
    at = pd.Index([0.0, 0.5, 1.0, 2.0], name="time")
    return pd.DataFrame({"prey": array(p, rng), "fox": p["b"]}, index=at)


def labelled(p, rng):
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"], "datetime64[ns]")
    more = {"day": days, "lab": "here"}
    return xr.DataArray(array(p, rng), more, ["day"])


@pytest.mark.slow
@pytest.mark.parametrize("function", [array, fails, named, table, labelled])
def test_what_was_interrupted_goes_on_and_calls_nothing_twice(
    function, tmp_path, monkeypatch, caplog
):
    known = sciml.ode.black_box(function, PRIOR, 200, **HOW)
    monkeypatch.setattr(kept, "SAVED_S", 0.0)  # each call is written
    stopped = Counted(function, stop=71)
    with pytest.raises(KeyboardInterrupt):
        sciml.ode.black_box(stopped, PRIOR, 200, **HOW, folder=tmp_path)
    again = Counted(function)
    found = sciml.ode.black_box(again, PRIOR, 200, **HOW, folder=str(tmp_path))
    # One more to see that it is the same function, and those that failed, for whatever reason:
    # Dask takes blocks in an order of its own, so the first 70 calls are not the first samples.
    assert again.calls == 200 - 70 + 1 + stopped.failures
    xr.testing.assert_identical(found.drop_attrs(deep=False), known.drop_attrs(deep=False))
    third = Counted(function)
    sciml.simulate(
        sciml.ode.BlackBox(third, PRIOR, folder=tmp_path, scheduler="threads"), 200, seed=3
    )
    failed = known.parameters.sel(parameter="a").values < 0.3 if function is fails else [False]
    assert third.calls == 1 + np.sum(failed)
    other = Counted(function)
    sciml.ode.black_box(other, PRIOR, 200, **{**HOW, "seed": 4}, folder=tmp_path)
    assert other.calls == 200  # another call shares the folder, and no more
    assert not caplog.records or function is fails


def test_another_function_and_one_that_draws_by_itself_are_refused(tmp_path):
    def make(k):
        return lambda p, rng: k * array(p, rng)

    sciml.ode.black_box(make(1), PRIOR, 20, **HOW, folder=tmp_path)
    with pytest.raises(ValueError, match="another function, or draws without the generator"):
        sciml.ode.black_box(make(2), PRIOR, 20, **HOW, folder=tmp_path)
    with pytest.raises(ValueError, match=r"gives 'ZeroDivisionError.* where .* keeps"):
        sciml.ode.black_box(lambda p: p["a"] / 0, PRIOR, 20, **HOW, folder=tmp_path)
    own = np.random.default_rng(0)
    sciml.ode.black_box(lambda p: own.normal(size=3), PRIOR, 20, seed=9, folder=tmp_path)
    with pytest.raises(ValueError, match="draws without the generator"):
        sciml.ode.black_box(lambda p: own.normal(size=3), PRIOR, 20, seed=9, folder=tmp_path)
    # Of other rounding it is the same.
    near = sciml.ode.black_box(make(1 + 1e-9), PRIOR, 20, **HOW, folder=tmp_path)
    assert near.valid.all()


def test_a_mistake_is_mended_in_the_same_folder(tmp_path):
    with pytest.raises(ValueError, match="all 20 calls"):
        sciml.ode.black_box(lambda p, rng: p["c"], PRIOR, 20, **HOW, folder=tmp_path)
    found = sciml.ode.black_box(array, PRIOR, 20, **HOW, folder=tmp_path)
    known = sciml.ode.black_box(array, PRIOR, 20, **HOW)
    np.testing.assert_array_equal(found.observation, known.observation)


def test_names_that_were_exchanged_since_are_another_function(tmp_path):
    def before(p, rng):
        return {"prey": p["a"], "fox": p["b"]}

    def turned(p, rng):
        return {"fox": p["b"], "prey": p["a"]}

    def exchanged(p, rng):
        return {"fox": p["a"], "prey": p["b"]}

    known = sciml.ode.black_box(before, PRIOR, 20, **HOW, folder=tmp_path)
    same = sciml.ode.black_box(turned, PRIOR, 20, **HOW, folder=tmp_path)
    xr.testing.assert_identical(same.observation, known.observation)
    with pytest.raises(ValueError, match="it is another function"):
        sciml.ode.black_box(exchanged, PRIOR, 20, **HOW, folder=tmp_path)


def test_damaged_files_are_made_again(tmp_path, caplog):
    known = sciml.ode.black_box(array, PRIOR, 30, **HOW, folder=tmp_path)
    files = sorted(tmp_path.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:100])
    content = bytearray(files[1].read_bytes())
    content[len(content) // 3] ^= 255
    files[1].write_bytes(bytes(content))
    files[2].unlink()
    with caplog.at_level(logging.WARNING):
        found = sciml.ode.black_box(array, PRIOR, 30, **HOW, folder=tmp_path)
    assert caplog.text.count("its calls are made again") >= 2
    np.testing.assert_array_equal(found.observation, known.observation)


def test_on_a_full_disk_calls_go_on(tmp_path, monkeypatch, caplog):
    def full(path, made):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "write", full)
    found = sciml.ode.black_box(array, PRIOR, 30, **HOW, folder=tmp_path)
    assert found.valid.all()
    assert "calls are no longer kept, and go on" in caplog.text


def test_a_folder_that_is_none_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="a file; name a folder"):
        sciml.ode.black_box(array, PRIOR, 20, **HOW, folder=tmp_path / "file")
    with pytest.raises(NotADirectoryError, match="cannot be made"):
        sciml.ode.black_box(array, PRIOR, 20, **HOW, folder=tmp_path / "file" / "calls")


@pytest.mark.slow
def test_refining_goes_on_where_it_was_killed(tmp_path):
    prior = {"mean": Uniform(-5.0, 5.0)}
    few = Counted(lambda p, rng: p["mean"] + rng.normal(size=3))
    box = sciml.ode.BlackBox(few, prior, scheduler="synchronous", folder=tmp_path)
    model = sciml.models.Gaussian(width=8, depth=1)
    recipe = sciml.train.Recipe(batch=20)
    fit = sciml.fit(model, sciml.simulate(box, 120), epochs=2, recipe=recipe)
    seen = sciml.simulate(box, 1, seed=1)
    options = {"rounds": 2, "simulations": 100, "epochs": 2}
    known = sciml.refine(fit, box, seen, **options)
    spent, few.calls = few.calls, 0
    again = sciml.refine(fit, box, seen, **options)
    rounds = len(known.attrs["refinement"].split('"change"')) - 1
    assert few.calls == rounds < spent
    for one, other in zip(*(jax.tree.leaves(x.params) for x in (known, again)), strict=True):
        np.testing.assert_array_equal(one, other)


SCRIPT = """
import sys, time
import numpy as np, sciml
from numpyro.distributions import Uniform
from sciml.ode.data import kept
kept.SAVED_S = 0.05
def slow(p, rng):
    time.sleep(0.02)
    return p["a"] + rng.normal(size=3)
if __name__ == "__main__":
    found = sciml.ode.black_box(slow, {"a": Uniform(0.0, 1.0)}, 200, seed=1, folder=sys.argv[1])
    np.save(sys.argv[2], found.observation.values)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_process_leaves_what_it_computed(tmp_path):
    script, calls = tmp_path / "run.py", tmp_path / "calls"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(calls)]
    run = subprocess.Popen([*command, str(tmp_path / "a.npy")])
    while run.poll() is None and len([*calls.glob("*.npz")]) < 5:
        time.sleep(0.002)  # and no processor is kept busy
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    before = {path.name: path.stat().st_mtime_ns for path in calls.glob("*.npz")}
    subprocess.run([*command, str(tmp_path / "a.npy")], check=True)
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "whole"), str(tmp_path / "b.npy")], check=True
    )
    one, other = (np.load(tmp_path / name) for name in ("a.npy", "b.npy"))
    np.testing.assert_array_equal(one, other)
    kept_on = [n for n, t in before.items() if (calls / n).stat().st_mtime_ns == t]
    assert len(kept_on) >= 3
