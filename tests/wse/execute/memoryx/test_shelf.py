"""The folder of a store: what is its own, steps taken twice, other optimizers, damage."""

import json
import os
import re
import tempfile

import jax
import numpy as np
import optax
import pytest

import wse
from tests.wse.chain import chain, loss, pairs
from wse.execute.memoryx.shelf import Shelf
from wse.execute.memoryx.store import store

TOKEN = re.compile(r"-[0-9a-f]{16}\.bin$")


def net():
    return chain(4, 2, np.float32)


def samples(step: int = 0):
    return pairs(4, 6, step, np.float32)


def filed(folder, optimizer=None, **options):
    optimizer = optimizer or optax.sgd(0.1, momentum=0.9)
    return wse.CS2().executor(loss, net(), samples(), optimizer, folder=folder, **options)


def started(folder, optimizer=None):
    executor = filed(folder, optimizer)
    return executor.train_step(executor.init(net()), samples())[0]


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_files_of_others_are_left_alone(tmp_path):
    others = ("mydata.bin", "0-weight-0.bin.old", "7-notes-1.bin", "x-0-state-1.bin")
    for name in others:
        (tmp_path / name).write_text("precious")
    state = started(tmp_path)
    assert state.step == 1
    assert all((tmp_path / name).read_text() == "precious" for name in others)


def test_a_store_without_its_manifest_is_refused_and_kept(tmp_path):
    before = started(tmp_path).params
    manifest = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").unlink()
    held = names(tmp_path)
    with pytest.raises(ValueError, match=r"such as 1-state-0\S*\.bin, but no manifest\.json"):
        filed(tmp_path).init(net())
    assert names(tmp_path) == held
    (tmp_path / "manifest.json").write_text(manifest)
    same(filed(tmp_path).init(net()).params, before)


def test_a_start_that_was_cut_off_starts_again(tmp_path, monkeypatch):
    put = Shelf.put

    def crash(self, step, place, array):
        if place == 2:
            raise KeyboardInterrupt
        return put(self, step, place, array)

    monkeypatch.setattr(Shelf, "put", crash)
    with pytest.raises(KeyboardInterrupt):
        filed(tmp_path).init(net())
    monkeypatch.undo()
    assert any(name.startswith("0-weight-0") for name in names(tmp_path))
    assert filed(tmp_path).init(net()).step == 0


def test_the_same_step_taken_again_leaves_the_first_as_it_was(tmp_path):
    executor = filed(tmp_path)
    zero = executor.init(net())
    one, _ = executor.train_step(zero, samples())
    kept = jax.tree.map(np.array, one.params)
    again, _ = executor.train_step(zero, samples(1))
    same(one.params, kept)
    assert not np.array_equal(again.params[0]["w"], kept[0]["w"])
    same(executor.init(net()).params, again.params)


def test_a_crash_while_a_step_is_taken_again_leaves_the_complete_one(tmp_path, monkeypatch):
    executor = filed(tmp_path)
    zero = executor.init(net())
    one, _ = executor.train_step(zero, samples())
    kept = jax.tree.map(np.array, (one.params, one.optimizer_state))
    put = Shelf.put
    for moment in range(len(one.weights) + len(one.states) + 1):
        left = iter(range(moment))

        def crash(self, step, place, array, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return put(self, step, place, array)

        monkeypatch.setattr(Shelf, "put", crash)
        monkeypatch.setattr(Shelf, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            executor.train_step(zero, samples(1))
        monkeypatch.undo()
        found = filed(tmp_path).init(net())
        assert found.step == 1
        same((found.params, found.optimizer_state), kept)


def test_a_store_of_an_earlier_version_is_continued(tmp_path):
    """Files without a token, a manifest that says nothing of the optimizer."""
    before = jax.tree.map(np.array, started(tmp_path).params)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    old = {name: manifest[name] for name in ("step", "names", "arrays")}
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    for path in tmp_path.glob("*.bin"):
        path.rename(tmp_path / TOKEN.sub(".bin", path.name))
    assert "1-weight-0.bin" in names(tmp_path)
    executor = filed(tmp_path)
    state = executor.init(net())
    same(state.params, before)
    assert executor.train_step(state, samples())[0].step == 2
    assert executor.init(net()).step == 2
    assert len(names(tmp_path)) == len(state.weights) + len(state.states) + 1


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        (optax.rmsprop(1e-2), "'0: TraceState' instead of '0: ScaleByRmsState'"),
        (optax.adagrad(1e-2), "'0: TraceState' instead of '0: ScaleByRssState'"),
        (optax.sgd(0.1), "'0: TraceState' instead of '0: EmptyState'"),
    ],
    ids=["rmsprop", "adagrad", "sgd"],
)
def test_another_optimizer_is_told_by_its_states_names(tmp_path, optimizer, said):
    kept = jax.tree.map(np.array, started(tmp_path).params)
    with pytest.raises(ValueError, match=f"another model or optimizer: {said}"):
        filed(tmp_path, optimizer).init(net())
    same(filed(tmp_path, optax.sgd(0.5, momentum=0.1)).init(net()).params, kept)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"v": np.zeros((2, 3), "f4")}, r"'w: float32\[2, 3\]' instead of 'v: float32\[2, 3\]'"),
        ({"w": np.zeros((3, 2), "f4")}, r"'w: float32\[2, 3\]' instead of 'w: float32\[3, 2\]'"),
        ({"w": np.zeros((2, 3), "f2")}, r"'w: float32\[2, 3\]' instead of 'w: float16\[2, 3\]'"),
    ],
    ids=["name", "shape", "type"],
)
def test_another_model_is_told_by_its_first_difference(tmp_path, changed, said):
    store({"w": np.zeros((2, 3), "f4")}, optax.sgd(0.1), tmp_path)
    with pytest.raises(ValueError, match=said):
        store(changed, optax.sgd(0.1), tmp_path)


def test_files_that_were_changed_are_named(tmp_path):
    store({"w": np.zeros((2, 3), "f4")}, optax.sgd(0.1), tmp_path)
    (path,) = tmp_path.glob("*.bin")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    with pytest.raises(ValueError, match="has other bytes than were written"):
        store({"w": np.zeros((2, 3), "f4")}, optax.sgd(0.1), tmp_path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="has 25 bytes where 24 are right; the file was changed"):
        store({"w": np.zeros((2, 3), "f4")}, optax.sgd(0.1), tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="is missing; the file was removed"):
        store({"w": np.zeros((2, 3), "f4")}, optax.sgd(0.1), tmp_path)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that nobody may write")
def test_a_folder_that_cannot_be_made_is_one_clear_error():
    with pytest.raises(PermissionError, match="name a folder that you may write"):
        store({"w": np.zeros(3)}, optax.sgd(0.1), "/proc/self/nowhere")


def test_temporary_folders_of_killed_processes_are_removed_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = Shelf.temporary(1, ("w",))
    killed, named = tmp_path / "memoryx-killed", tmp_path / "memoryx-named-by-a-user"
    for folder in (killed, named):
        folder.mkdir()
        (folder / "0-weight-0.bin").write_text("numbers")
    (killed / ".temporary").touch()
    os.utime(killed)
    Shelf.temporary(1, ("w",))
    assert killed.exists()  # it may be of a process that begins
    for folder in (killed, named, mine.folder):
        os.utime(folder, (0, 0))
    Shelf.temporary(1, ("w",))
    assert not killed.exists()
    assert (named / "0-weight-0.bin").exists()
    assert mine.folder.exists()
