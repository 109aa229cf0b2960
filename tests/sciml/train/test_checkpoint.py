"""A checkpoint: nothing is lost before the result is on disk, and no other run is gone on with."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sciml
from sciml.models import Dense
from sciml.ode import Gaussian
from sciml.train import Checkpoint, Recipe, Validation, loop, train
from sciml.train.checkpoint import Store, digest

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning"),
]
RECIPE = Recipe(batch=8, learning_rate=0.05)
SMALL = Dense(4, 1)


def problem(seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    return {"w": jnp.zeros(3)}, (jnp.asarray(x), jnp.asarray(x @ [1.0, -2.0, 0.5], jnp.float32))


def loss(params, batch, key):
    del key
    x, y = batch
    return jnp.mean(jnp.square(x @ params["w"] - y))


def score(held, every: int = 4) -> Validation:
    return Validation(lambda params: loss(params, held, None), every, held=held)


@pytest.fixture(scope="module")
def data():
    return sciml.simulate(sciml.ode.lotka_volterra(), samples=40, seed=0)


class Again(Exception):
    """An epoch was trained that had been trained before."""


def test_a_training_that_has_ended_is_there_until_its_result_is_saved(data, tmp_path, monkeypatch):
    file, options = tmp_path / "fit.checkpoint", {"epochs": 2, "recipe": RECIPE}
    first = sciml.fit(SMALL, data, 0.2, **options, checkpoint=file)
    with monkeypatch.context() as patch:  # as after a kill between training and `save`
        patch.setattr(loop, "advance", lambda *_: (_ for _ in ()).throw(Again))
        second = sciml.fit(SMALL, data, 0.2, **options, checkpoint=file)
    jax.tree.map(np.testing.assert_array_equal, second.params, first.params)
    full = tmp_path / "file"
    full.write_text("")
    with pytest.raises(NotADirectoryError):
        second.save(full / "net.fit")
    assert file.exists()
    second.save(tmp_path / "net.fit")
    assert not file.exists()


def test_saving_leaves_the_checkpoint_of_another_fit_alone(data, tmp_path):
    file, options = tmp_path / "fit.checkpoint", {"epochs": 1, "recipe": RECIPE}
    first = sciml.fit(SMALL, data, **options, checkpoint=file)
    sciml.fit(SMALL, data, **options, seed=1, checkpoint=file)
    first.save(tmp_path / "first.fit")
    assert file.exists()


CHANGES = {
    "model": {"model": Dense(5, 1)},
    "epochs": {"epochs": 3},
    "seed": {"seed": 1},
    "recipe": {"recipe": dataclasses.replace(RECIPE, batch=10)},
    "noise": {"noise": Gaussian(0.2)},
    "data": {"samples": 1},
    "validation": {"held": 1},
    "no validation": {"held": None},
}


GIVEN = {"model": SMALL, "samples": 0, "held": 0, "epochs": 2, "seed": 0, "recipe": RECIPE}


@pytest.fixture(scope="module")
def sets(data):
    """One set to train on, two others."""
    others = [sciml.simulate(sciml.ode.lotka_volterra(), samples=40, seed=i) for i in (1, 2)]
    return [data, *others]


def fitted(sets, checkpoint, *, model, samples, held, **options):
    validation = None if held is None else sets[1 + held]
    options = {"noise": Gaussian(0.1), **options}
    return sciml.fit(model, sets[samples], validation, **options, checkpoint=checkpoint)


@pytest.fixture(scope="module")
def ended(sets, tmp_path_factory, quick_compilation):
    """The checkpoint of a fit that has ended."""
    file = tmp_path_factory.mktemp("ended") / "fit.checkpoint"
    fitted(sets, file, **GIVEN)
    return file


@pytest.mark.parametrize("name", CHANGES)
def test_each_argument_that_changes_the_numbers_is_told_apart(name, sets, ended, tmp_path, caplog):
    file = Path(shutil.copy(ended, tmp_path))
    changed = fitted(sets, file, **GIVEN | CHANGES[name])
    assert "it belongs to another run" in caplog.text
    alone = fitted(sets, None, **GIVEN | CHANGES[name])
    jax.tree.map(np.testing.assert_array_equal, changed.params, alone.params)


def test_start_weights_and_validation_of_a_plain_training_are_told_apart(tmp_path):
    (params, data), (_, held) = problem(), problem(1)
    run = {"recipe": RECIPE, "epochs": 4, "seed": 0}
    file = tmp_path / "run.checkpoint"
    moved = {"w": params["w"] + 1}
    given = [
        (file, params, data, score(data), run),
        (file, moved, data, score(data), run),
        (file, params, data, score(held), run),
        (file, params, data, score(data, every=2), run),
        (file, params, data, None, run),
        (Checkpoint(file, {"noise": 0.1}), params, data, None, run),
        (Checkpoint(file, {"noise": 0.2}), params, data, None, run),
    ]
    assert len({loop.store_of(*arguments).identity for arguments in given}) == len(given)


def test_arrays_are_told_by_type_shape_and_numbers():
    key = jax.random.key(0)
    trees = [np.zeros(4), np.zeros((2, 2)), np.zeros(4, int), np.eye(2), key, 0.0, [0.0, 1.0]]
    assert len({digest(tree) for tree in trees}) == len(trees)
    assert digest({"a": np.eye(2)[:, ::-1]}) == digest({"a": np.eye(2)[:, ::-1].copy()})


@pytest.mark.parametrize("damage", ["another run", "cut", "empty", "flipped"])
def test_a_checkpoint_that_is_of_no_use_is_put_aside(tmp_path, caplog, damage):
    params, data = problem()
    file = tmp_path / "run.checkpoint"
    Store(file, {"recipe": "another"}).write(loop.Progress(loop.Carry(params, ()), params))
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 255
    changed = {"cut": whole[:100], "empty": b"", "flipped": bytes(whole)}
    if damage in changed:
        file.write_bytes(changed[damage])
    trained = train(loss, params, data, recipe=RECIPE, epochs=2, checkpoint=file)
    assert len(trained.loss) == 2
    assert "starting anew" in caplog.text
    aside = file.with_name("run.checkpoint.damaged")
    assert aside.exists() == (damage in changed)


def test_a_checkpoint_that_another_process_has_just_removed_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda _: True)
    checkpoint, start = Store(tmp_path / "gone.checkpoint"), object()
    assert checkpoint.read(start) is start
    checkpoint.remove()


def test_a_full_disk_does_not_end_a_training(tmp_path, monkeypatch, caplog):
    params, data = problem()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    file = tmp_path / "run.checkpoint"
    trained = train(loss, params, data, recipe=RECIPE, epochs=2, checkpoint=file)
    assert len(trained.loss) == 2
    assert f"checkpoint {file} cannot be written ([Errno 28] No space left" in caplog.text
    assert not list(tmp_path.iterdir())


def test_without_validation_a_checkpoint_holds_the_weights_once(tmp_path):
    params, data = problem()
    file = tmp_path / "run.checkpoint"
    store = loop.store_of(file, params, data, None, {"recipe": RECIPE})
    store.write(loop.Progress(loop.Carry(params, ())))
    with np.load(file) as stored:
        assert sum(stored[name].shape == params["w"].shape for name in stored.files) == 1


ENDLESS = """
    import signal
    import sys
    import jax.numpy as jnp
    from sciml.train import Recipe, loop

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    loop.CALL_S = 0.01
    shown = loop.advance

    def advance(*arguments):
        made = shown(*arguments)
        print(len(made.loss), flush=True)
        return made

    loop.advance = advance
    loop.train(
        lambda params, batch, key: jnp.mean((batch @ params["w"]) ** 2),
        {"w": jnp.ones(3)},
        jnp.ones((40, 3)),
        recipe=Recipe(batch=8),
        epochs=10**7,
        checkpoint=sys.argv[1],
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_a_signal_to_end_saves_what_is_done(tmp_path, number, code):
    file = tmp_path / "fit.checkpoint"
    command = [sys.executable, "-c", textwrap.dedent(ENDLESS), str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    ) as run:
        assert run.stdout is not None
        try:
            while int(run.stdout.readline()) < 20:
                assert not file.exists()  # the next one is due after 20 s
            run.send_signal(number)
            printed = run.communicate(timeout=60)[0].split()
        finally:
            run.kill()  # it never ends by itself
    assert run.returncode == code
    with np.load(file) as stored:
        assert len(stored["loss/0"]) >= int(printed[-1]) - 1 if printed else 20
    assert not list(Path(tmp_path).glob(".fit.*"))
