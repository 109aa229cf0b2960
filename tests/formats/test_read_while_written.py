"""A reader finds the old or the new at any moment: it looks before each operation on a file."""

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import optax
import pytest

import sciml
import wse
from sciml.estimator import load_downscaling
from sciml.studies.store import read_json, write_json
from sciml.train.checkpoint import Store, digest
from tests.formats.test_written_before import FILES
from wse.execute.memoryx.shelf import Shelf
from wse.execute.memoryx.snapshot import snapshot
from wse.graph.outline import outline
from wse.graph.trace import paths

pytestmark = pytest.mark.usefixtures("quick_compilation")
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}
_looks: list[tuple[str, Callable[[], object]]] = []


def _heard(event: str, args: tuple[object, ...]) -> None:
    if event not in EVENTS or not _looks or not isinstance(args[0], str | os.PathLike):
        return
    folder, look = _looks[-1]
    if os.fspath(args[0]).startswith(folder):
        _looks.clear()  # what the reader itself opens is not looked at
        look()
        _looks.append((folder, look))


sys.addaudithook(_heard)  # stays; without somebody who looks it does nothing


@contextlib.contextmanager
def watched(folder: Path, look: Callable[[], object]) -> Generator[None]:
    """Look before each operation on files of a folder."""
    _looks.append((str(folder), look))
    try:
        yield
    finally:
        _looks.clear()


def fits(path: Path) -> tuple[Callable, Callable]:
    nets = [sciml.load(FILES / "fits" / name) for name in ("dense.fit", "gaussian.fit")]
    return lambda i: nets[i].save(path), lambda: digest(sciml.load(path).params)


def winds(path: Path) -> tuple[Callable, Callable]:
    nets = [load_downscaling(one) for one in sorted((FILES / "wind").iterdir())[:2]]
    return lambda i: nets[i].save(path), lambda: digest(load_downscaling(path).trained.params)


def checkpoints(path: Path) -> tuple[Callable, Callable]:
    kept = Store(path)

    def write(i: int) -> None:
        kept.write(State(np.full(1000, float(i))))

    return write, lambda: digest(vars(kept.read(State(np.full(1000, -1.0)))))


class State:
    """What a checkpoint holds."""

    def __init__(self, values: np.ndarray):
        self.values = values


def runs(path: Path) -> tuple[Callable, Callable]:
    return lambda i: write_json({"run": i}, path), lambda: json.dumps(read_json(path))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(fits, "a.fit"), (winds, "a.wind"), (checkpoints, "a.checkpoint"), (runs, "a.json")],
)
def test_a_file_that_is_replaced_is_the_old_or_the_new(kind, name, tmp_path):
    write, read = kind(tmp_path / name)
    write(0)
    before, seen = read(), []
    with watched(tmp_path, lambda: seen.append(read())):
        write(1)
    after = read()
    assert before != after
    assert len(seen) > 1
    assert [found for found, _ in itertools.groupby(seen)] in ([before], [before, after])


@pytest.mark.parametrize("every", [None, 1])
def test_a_store_that_is_trained_has_each_step_whole(tmp_path, every):
    """Also while the arrays of the next step are written and those of the last one removed."""
    folder = tmp_path / "store"
    params = {"a": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32)}
    batch = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)

    def loss(p, x):
        return ((x @ p["a"] + p["b"]) ** 2).mean()

    optimizer = optax.adam(1e-2)
    cluster = wse.CS2()
    executor = cluster.executor(
        loss, params, batch, optimizer, folder=folder, checkpoint_every=every
    )
    plain = cluster.executor(loss, params, batch, optimizer)
    state, whole = plain.init(params), []
    arrays, said = (*state.weights, *state.states), outline(state.optimizer_state)
    for _ in range(4):
        whole.append(digest((state.weights, state.states)))
        state, _ = plain.train_step(state, batch)
    seen: list[int] = []

    def look() -> None:
        with snapshot(folder) as copy:
            shelf = Shelf(copy, len(params), tuple(paths(params)), durable=False)
            if (step := shelf.begin(arrays, said)) is None:
                return
            found = [shelf.get(step, i, array) for i, array in enumerate(arrays)]
            assert digest((tuple(found[:2]), tuple(found[2:]))) == whole[step]
            seen.append(step)

    with watched(folder, look):
        state = executor.init(params)
        for _ in range(3):
            state, _ = executor.train_step(state, batch)
    assert seen == sorted(seen)
    assert {1, 2} <= set(seen)
    assert len(seen) > 20
