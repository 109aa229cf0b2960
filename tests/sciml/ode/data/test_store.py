"""Stores of simulations: growth, damage, refusal, laziness, and the same numbers by Dask."""

import json
import os
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import dask
import dask.array
import numpy as np
import pytest
import xarray as xr
import zarr
from numpyro.distributions import Uniform

from sciml.ode import (
    AR1,
    Missing,
    Observation,
    RungeKutta4,
    System,
    accumulate,
    distribute,
    open_simulations,
)
from sciml.ode.data import store

pytestmark = pytest.mark.usefixtures("quick_compilation")
METHOD = RungeKutta4(chunk=8)
NOISE = Missing(AR1(sd=Uniform(0.1, 0.2), correlation=Uniform(0.5, 0.9)), 0.1)


def decay(rate: float = 1.0) -> System:
    """u' = −rate θ u."""
    return System(
        name="decay",
        vector_field=lambda t, u, p: (-rate * p[0] * u[0], u[0]),
        initial_state=(1.0, 0.0),
        prior={"theta": Uniform(0.5, 2.0)},
        observation=Observation.regular(states=(0, 1), interval=0.1, length=5),
        time_unit="h",
        observed=("level", "sum"),
    )


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    xr.testing.assert_identical(one.load(), other.load())


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("whole") / "store.zarr"


@pytest.fixture(scope="module")
def whole(kept: Path) -> xr.Dataset:
    return accumulate(decay(), kept, samples=37, seed=5, noise=NOISE, method=METHOD)


@pytest.fixture
def copied(tmp_path, kept: Path, whole) -> Path:
    """A store of our own, to be damaged."""
    return Path(shutil.copytree(kept, tmp_path / "store.zarr"))


def test_a_store_is_a_data_set_of_lazy_arrays(whole):
    assert whole.sizes == {"sample": 37, "time": 5, "channel": 2, "parameter": 1, "level": 2}
    assert isinstance(whole.observation.data, dask.array.Array)
    assert whole.observation.chunks[0] == (8, 8, 8, 8, 5)
    assert whole.time.attrs["units"] == "h"
    assert whole.channel.values.tolist() == ["level", "sum"]
    assert whole.level.values.tolist() == ["sd", "correlation"]
    assert whole.attrs["failures"] == 0
    assert json.loads(whole.attrs["settings"])["seed"] == 5
    assert json.loads(whole.attrs["support"])["theta"] == [0.5, 2.0]
    theta = whole.parameters.values
    assert len(np.unique(theta)) == 37  # no chunk repeats another
    clean = np.exp(-theta * whole.time.values)
    assert np.nanmax(np.abs(whole.observation.values[..., 0] - clean)) < 5 * 0.2
    assert np.isnan(whole.observation).mean() == pytest.approx(0.1, abs=0.06)


@pytest.mark.slow
def test_growing_gives_the_numbers_of_one_go(tmp_path, whole):
    """Within a chunk, to its end, one beyond, over several; and asked for fewer than there are."""
    path = tmp_path / "store.zarr"
    for samples in (3, 8, 9, 37, 10):
        data = accumulate(decay(), path, samples=samples, seed=5, noise=NOISE, method=METHOD)
        assert data.sizes["sample"] == samples
        same(data, whole.isel(sample=slice(samples)))
    same(open_simulations(path), whole)
    assert [entry.name for entry in tmp_path.iterdir()] == ["store.zarr"]


def test_dask_gives_the_numbers_of_the_serial_loop(tmp_path, whole):
    path = tmp_path / "store.zarr"
    task = distribute(decay(), path, samples=37, seed=5, noise=NOISE, method=METHOD)
    assert open_simulations(path).sizes["sample"] == 0  # nothing has been simulated
    assert task.compute(scheduler="threads") == 5
    same(open_simulations(path), whole)
    again = distribute(decay(), path, samples=37, seed=5, noise=NOISE, method=METHOD)
    assert again.compute(scheduler="threads") == 0


def test_a_chunk_without_its_mark_does_not_count(copied, whole):
    """As after a kill between the data and the mark: read up to there, and written again."""
    group = zarr.open_group(copied, mode="r+")
    group["written"][1] = False
    group["observation"][8:16] = 77.0
    same(open_simulations(copied), whole.isel(sample=slice(8)))
    data = accumulate(decay(), copied, samples=37, seed=5, noise=NOISE, method=METHOD)
    same(data, whole)


def test_what_zarr_left_of_a_killed_writer_is_removed_when_it_is_old(copied, whole):
    old, young, other = (
        copied / "observation" / f"c.{name}"
        for name in (f"{'a' * 32}.partial", f"{'b' * 32}.partial", "mine.partial")
    )
    for path, age_s in ((old, 700), (young, 500), (other, 700)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age_s,) * 2)
    same(accumulate(decay(), copied, samples=37, seed=5, noise=NOISE, method=METHOD), whole)
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


def test_a_store_whose_making_was_killed_is_removed_by_who_grows_the_next_one(copied, whole):
    names = (f".{copied.stem}.{token * 16}{copied.suffix}" for token in "ab")
    old, young = (copied.with_name(name) for name in names)
    for path, age_s in ((old, 700), (young, 500)):
        path.mkdir()
        (path / "zarr.json").write_text("{}")
        for written in (path / "zarr.json", path):
            os.utime(written, (time.time() - age_s,) * 2)
    same(accumulate(decay(), copied, samples=37, seed=5, noise=NOISE, method=METHOD), whole)
    assert [path.exists() for path in (old, young, copied)] == [False, True, True]


def test_arrays_of_unequal_length_can_be_read_and_grown(tmp_path, whole):
    """As after a kill while room was being made."""
    path, given = tmp_path / "store.zarr", {"seed": 5, "noise": NOISE, "method": METHOD}
    accumulate(decay(), path, samples=8, **given)
    zarr.open_group(path, mode="r+")["observation"].resize((40, 5, 2))
    same(open_simulations(path), whole.isel(sample=slice(8)))
    same(accumulate(decay(), path, samples=37, **given), whole)


def test_a_store_can_be_read_after_each_file_that_growing_writes(tmp_path, whole, monkeypatch):
    """What another process finds at any moment, and what a kill leaves."""
    path, given = tmp_path / "store.zarr", {"seed": 5, "noise": NOISE, "method": METHOD}
    accumulate(decay(), path, samples=8, **given)
    replaced, seen = Path.replace, []

    def replace_and_read(self, target):
        replaced(self, target)
        seen.append(open_simulations(path).sizes["sample"])
        return Path(target)

    monkeypatch.setattr(Path, "replace", replace_and_read)
    same(accumulate(decay(), path, samples=37, **given), whole)
    assert seen == sorted(seen)
    assert {8, 16, 37} <= set(seen)


@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX does")
def test_two_that_grow_a_store_by_different_numbers_lose_nothing(tmp_path, whole, monkeypatch):
    """One looks at the store, the other begins to grow it further, the first grows it by less."""
    path, given = tmp_path / "store.zarr", {"seed": 5, "noise": NOISE, "method": METHOD}
    accumulate(decay(), path, samples=8, **given)
    further = ThreadPoolExecutor()
    begun: list[Future] = []
    look = store.opened

    def looked(path, mode):
        found = look(path, mode)
        if mode == "r+" and not begun:
            begun.append(further.submit(accumulate, decay(), path, samples=37, **given))
            wait(begun, timeout=5)  # with nobody who keeps it out, it has ended by then
        return found

    monkeypatch.setattr(store, "opened", looked)
    assert accumulate(decay(), path, samples=16, **given).sizes["sample"] == 16
    same(begun[0].result(), whole)
    same(open_simulations(path), whole)


@pytest.mark.parametrize(
    ("problem", "options", "error"),
    [
        (decay(), {"seed": 6}, "seed: stored 5, given 6"),
        (decay(), {"noise": None}, "noise: stored"),
        (decay(), {"noise": AR1(sd=0.1)}, "noise: stored"),
        (decay(), {"method": RungeKutta4(chunk=9)}, "chunk: stored 8, given 9"),
        (decay(), {"method": RungeKutta4(substeps=2, chunk=8)}, "method: stored"),
        (decay(rate=1.1), {}, "equation: stored"),
        (replace(decay(), name="other"), {}, "system: stored decay, given other"),
        (replace(decay(), prior={"theta": Uniform(0.5, 2.1)}), {}, "prior: stored"),
        (replace(decay(), observation=Observation((0, 1), (0.1, 0.2))), {}, "times: stored"),
        (
            replace(decay(), observation=replace(decay().observation, start=-5.0)),
            {},
            "start: stored 0.0, given -5.0",
        ),
    ],
)
def test_another_simulation_is_refused_by_name(kept, whole, problem, options, error):
    given = {"seed": 5, "noise": NOISE, "method": METHOD}
    with pytest.raises(ValueError, match=error):
        accumulate(problem, kept, samples=1, **given | options)


def test_a_store_of_before_is_read_but_not_gone_on_with(copied):
    """Whether its start and transform are the same, nobody can tell."""
    group = zarr.open_group(copied, mode="r+")
    told = json.loads(group.attrs["identity"])
    kept = {name: told[name] for name in told if name not in ("start", "transform")}
    group.attrs.update({"schema": 1, "identity": json.dumps(kept)})
    assert open_simulations(copied).sizes["sample"] == 37
    with pytest.raises(ValueError, match=r"start: stored nothing, given 0\.0; transform: st"):
        accumulate(decay(), copied, samples=38, seed=5, noise=NOISE, method=METHOD)


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is no store"):
        open_simulations(tmp_path / "nothing")
    (tmp_path / "file").write_text("text")
    with pytest.raises(ValueError, match="is no store"):
        open_simulations(tmp_path / "file")
    zarr.open_group(tmp_path / "other.zarr", mode="w")
    with pytest.raises(ValueError, match="schema None"):
        accumulate(decay(), tmp_path / "other.zarr", samples=1)
    with pytest.raises(ValueError, match="at least 1"):
        accumulate(decay(), tmp_path / "new.zarr", samples=0)
    assert not (tmp_path / "new.zarr").exists()


def test_failures_are_counted_and_a_hopeless_store_is_refused(tmp_path):
    system = System(
        name="explosive",
        vector_field=lambda t, u, p: (p[0] * u[0] ** 2,),
        initial_state=(1.0,),
        prior={"theta": Uniform(0.1, 1.0)},
        observation=Observation.regular(interval=0.25, length=9),
    )
    data = accumulate(system, tmp_path / "some.zarr", samples=20, method=METHOD)
    failed = (data.parameters.values[:, 0] > 0.5).sum()
    assert data.attrs["failures"] == pytest.approx(failed, abs=2)
    hopeless = replace(system, prior={"theta": Uniform(2.0, 3.0)})
    with pytest.raises(ValueError, match="all 8 simulations of 'explosive' failed"):
        accumulate(hopeless, tmp_path / "none.zarr", samples=20, method=METHOD)


def again(path: Path) -> xr.Dataset:
    """Accumulate what `kept` holds."""
    return accumulate(decay(), path, samples=37, seed=5, noise=NOISE, method=METHOD)


def chunk_file(path: Path, name: str) -> Path:
    """Return the file of the second chunk of an array."""
    inner = {"observation": ("0", "0"), "parameters": "0", "levels": "0"}.get(name, ())
    return path.joinpath(name, "c", "1", *inner)


def flip(file: Path) -> None:
    """Change one bit."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["observation", "parameters", "valid", "levels"])
def test_a_chunk_without_its_file_is_refused_and_made_again(copied, whole, name):
    before = open_simulations(copied)
    file = chunk_file(copied, name)
    file.unlink()
    error = rf"lacks 1 files .* the first {name}/c/1.* \(chunk 1 of {name}\).*accumulate again"
    with pytest.raises(ValueError, match=error):
        open_simulations(copied)
    with pytest.raises(ValueError, match=error):
        before.load()
    file.mkdir()  # which Zarr takes for nothing, too
    with pytest.raises(ValueError, match=error):
        open_simulations(copied)
    with pytest.raises(ValueError, match=r"chunk 1 .* cannot be written .*Is a directory.*remove"):
        again(copied)
    file.rmdir()
    same(again(copied), whole)


@pytest.mark.parametrize("name", ["valid", "written", "observation"])
def test_a_damaged_chunk_is_named_and_made_again(copied, whole, name):
    file = chunk_file(copied, name)
    flip(file)
    data = open_simulations(copied) if name == "observation" else None
    for part in (slice(None), 9, [1, 9, 30], np.arange(37) == 9):
        with pytest.raises(ValueError, match=rf"store.zarr: chunk 1 of {name} .* remove {file} "):
            (data or open_simulations(copied)).observation[part].load()
    if data is not None:
        np.testing.assert_array_equal(data.observation[17], whole.observation[17])
        file.write_bytes(b"")
    task = distribute(decay(), copied, samples=37, seed=5, noise=NOISE, method=METHOD)
    assert task.compute(scheduler="threads") == 1
    same(open_simulations(copied), whole)


def test_a_store_of_schema_1_may_lack_chunks_that_are_empty(copied, whole):
    """It left out what was all NaN or False; what is not is missed there as well."""
    group = zarr.open_group(copied, mode="r+")
    group["valid"][8:16], group["observation"][8:16] = False, np.nan
    group.attrs["schema"] = 1
    for name in ("valid", "observation"):
        chunk_file(copied, name).unlink(missing_ok=True)
    assert open_simulations(copied).attrs["failures"] == 8
    chunk_file(copied, "levels").unlink()
    with pytest.raises(ValueError, match=r"lacks 1 files .*chunk 1 of levels"):
        open_simulations(copied)
    same(again(copied), whole)
    chunk_file(copied, "valid").unlink()
    with pytest.raises(ValueError, match=r"lacks 1 files .*chunk 1 of valid"):
        open_simulations(copied)


def test_an_array_that_is_too_short_gets_room_again(copied, whole):
    file = copied / "written/zarr.json"
    said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"shape": [3]}))
    with pytest.raises(ValueError, match="written is 3 long; it must be at least 5: call acc"):
        open_simulations(copied)
    same(again(copied), whole)


def test_a_chunk_in_which_all_failed_has_a_file(tmp_path):
    problem = replace(decay(), vector_field=lambda t, u, p: (-p[0] * u[0] / (p[0] > 0.9), u[0]))
    path = tmp_path / "store.zarr"
    accumulate(problem, path, samples=8, seed=2, method=RungeKutta4(chunk=1))
    found = open_simulations(path)
    assert 0 < found.attrs["failures"] < 8


def mutated(file: Path, kind: str, chance: np.random.Generator) -> None:
    """Damage a file."""
    content = bytearray(file.read_bytes())
    place = int(chance.integers(len(content)))
    match kind:
        case "flip":
            content[place] ^= 1 << int(chance.integers(8))
        case "digit" if digits := [i for i, byte in enumerate(content) if chr(byte).isdigit()]:
            content[chance.choice(digits)] = ord("0") + int(chance.integers(10))
        case "cut":
            del content[place:]
        case "zeros":
            content[place : place + 8] = bytes(8)[: len(content) - place]
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind != "delete":
        file.write_bytes(content)


@pytest.mark.parametrize("kind", ["flip", "digit", "cut", "zeros", "delete", "folder"])
def test_damage_is_refused_or_changes_nothing(kept, whole, tmp_path, kind):
    """Twelve files each; only a mark that has gone is taken for a chunk that is still to come."""
    chance, whole = np.random.default_rng(len(kind)), whole.load()
    files = sorted(p.relative_to(kept) for p in kept.rglob("*") if p.is_file())
    told = [file for file in files if file.name == "zarr.json"]
    refused = kept_whole = 0
    for case in range(12):
        path = Path(shutil.copytree(kept, tmp_path / f"{case}.zarr"))
        some = told if case % 2 else files
        file = some[chance.integers(len(some))]
        mutated(path / file, kind, chance)
        try:
            found = open_simulations(path).load()
        except ValueError as error:
            refused += str(path) in str(error) and "accumulate" in str(error)
        else:
            kept_whole += 1
            gone = file.parent.as_posix() == "written/c" and kind in ("delete", "folder")
            assert found.sizes["sample"] == (8 * int(file.name) if gone else 37)
            same(found, whole.isel(sample=slice(found.sizes["sample"])))
    assert refused + kept_whole == 12
    assert refused >= 4
