"""The store: any optimizer in pieces, files versioned by step, crashes survived."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from wse.execute.memoryx.shelf import Shelf
from wse.execute.memoryx.store import store
from wse.execute.updates import cut
from wse.graph.equations import Weight

pytestmark = pytest.mark.usefixtures("quick_compilation")
OPTIMIZERS = {
    "sgd": (optax.sgd(0.1), False),
    "adam": (optax.adam(1e-2), False),
    "adamw, schedule": (optax.adamw(optax.cosine_decay_schedule(1e-2, 10)), False),
    "clip by value": (optax.chain(optax.clip(0.1), optax.adam(1e-2)), False),
    "clip by norm": (optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2)), True),
    "lamb": (optax.lamb(1e-2), False),
    "by label": (
        optax.multi_transform(
            {"a": optax.adam(1e-2), "b": optax.set_to_zero()}, {"a": "a", "b": "b", "c": "a"}
        ),
        False,
    ),
    "every second": (optax.MultiSteps(optax.adam(1e-2), 2), True),
}


def params():
    draw = np.random.default_rng(0)
    return {name: draw.normal(size=(3, 2)).astype("f4") for name in "abc"}


def loss(p, x):
    return jnp.mean((jnp.tanh(x @ p["a"]) * (x @ p["b"]) + x @ p["c"]) ** 2)


X = np.random.default_rng(1).normal(size=(4, 3)).astype("f4")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_pieces_of_an_optimizer_are_the_optimizer(name):
    optimizer, joint = OPTIMIZERS[name]
    executor = wse.CS2().executor(loss, params(), X, optimizer)
    streamed = executor.init(params())
    assert streamed.update.waits == joint

    @jax.jit
    def step(p, state):
        updates, state = optimizer.update(jax.grad(loss)(p, X), state, p)
        return optax.apply_updates(p, updates), state

    plain, state = params(), optimizer.init(params())
    for _ in range(3):
        streamed, _ = executor.train_step(streamed, X)
        plain, state = step(plain, state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-5, 1e-6), streamed.params, plain)
    assert jax.tree.structure(streamed.optimizer_state) == jax.tree.structure(state)


def test_layers_are_updated_while_the_backward_pass_goes_on():
    def deep(p, x):
        for name in "abc":
            x = jnp.tanh(x @ p[name] @ p[name].T)
        return jnp.mean(x**2)

    executor = wse.CS2().executor(deep, params(), X, optax.adam(1e-2))
    executor.train_step(executor.init(params()), X)
    kinds = [event.kind for event in executor.run.events]
    assert kinds.index("update") < len(kinds) - 1 - kinds[::-1].index("backward")


def trained(executor, state, steps):
    for _ in range(steps):
        state, _ = executor.train_step(state, X)
    return state


def test_files_give_the_same_weights_and_are_continued(tmp_path):
    optimizer = optax.adam(1e-2)
    memory = wse.CS2().executor(loss, params(), X, optimizer)
    expected = trained(memory, memory.init(params()), 4)
    filed = wse.CS2().executor(loss, params(), X, optimizer, folder=tmp_path / "store")
    assert trained(filed, filed.init(params()), 2).step == 2
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params())
    again = filed.init(shapes)
    assert again.step == 2
    found = trained(filed, again, 2)
    assert all(isinstance(array, np.memmap) for array in found.weights)
    jax.tree.map(np.testing.assert_array_equal, found.params, expected.params)
    steps = {path.name.partition("-")[0] for path in (tmp_path / "store").glob("*.bin")}
    assert steps == {"4"}


def test_a_crash_at_any_moment_leaves_the_last_step(tmp_path, monkeypatch):
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2), folder=tmp_path / "a")
    state = trained(executor, executor.init(params()), 1)
    kept = jax.tree.map(np.array, state.params)
    put = Shelf.put
    for moment in range(len(state.weights) + len(state.states) + 1):
        done = iter(range(moment))

        def crash(self, step, place, array, done=done):
            if next(done, None) is None:
                raise KeyboardInterrupt
            return put(self, step, place, array)

        monkeypatch.setattr(Shelf, "put", crash)
        monkeypatch.setattr(
            Shelf, "commit", lambda self, step: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            executor.train_step(state, X)
        monkeypatch.undo()
        state = executor.init(params())
        assert state.step == 1
        jax.tree.map(np.testing.assert_array_equal, state.params, kept)


def test_a_full_disk_is_said_and_the_store_is_intact(tmp_path, monkeypatch):
    executor = wse.CS2().executor(loss, params(), X, optax.sgd(0.1), folder=tmp_path / "a")
    state = trained(executor, executor.init(params()), 1)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="the last complete step is intact"):
        executor.train_step(state, X)
    monkeypatch.undo()
    assert executor.init(params()).step == 1


LIMITED = """
import resource, signal, sys

import jax.numpy as jnp
import numpy as np
import optax

import wse

params = {"a": np.ones((300, 300), np.float32)}
executor = wse.CS2().executor(
    lambda p, x: jnp.mean((x @ p["a"]) ** 2), params, np.ones((4, 300), np.float32),
    optax.sgd(0.1), folder=sys.argv[1],
)
state, _ = executor.train_step(executor.init(params), np.ones((4, 300), np.float32))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # a weight has 360,000 bytes
try:
    executor.train_step(state, np.ones((4, 300), np.float32))
except OSError as error:
    print(error)
print(executor.init(params).step)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits a process as POSIX does")
def test_a_file_that_the_system_refuses_to_write_leaves_the_last_step(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "cannot be written (File too large); the last complete step is intact" in said[0]
    assert said[1:] == ["1"]
    sizes = {path.stat().st_size for path in tmp_path.glob("*.bin")}
    assert sizes == {360_000}


HOLDING = """
import sys

import numpy as np
import optax

from wse.execute.memoryx.store import store

state = store({"a": np.ones((2, 3), np.float32)}, optax.sgd(0.1), sys.argv[1])
print("made", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX does")
def test_two_processes_do_not_share_a_folder(tmp_path):
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    tree = {"a": np.ones((2, 3), np.float32)}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout.readline() == "made\n"
        with pytest.raises(
            BlockingIOError, match=f"in use by another process, {other.pid}, .* another"
        ):
            store(tree, optax.sgd(0.1), tmp_path)
        os.kill(other.pid, signal.SIGKILL)
    first = store(tree, optax.sgd(0.1), tmp_path)
    again = store(tree, optax.sgd(0.1), tmp_path)  # one process may open it more than once
    assert first.step == again.step == 0


def test_other_models_and_cut_files_are_refused(tmp_path):
    store(params(), optax.adam(1e-2), tmp_path / "a")
    with pytest.raises(ValueError, match="another model or optimizer"):
        store({"other": params()["a"]}, optax.adam(1e-2), tmp_path / "a")
    with pytest.raises(ValueError, match="another model or optimizer"):
        store(params(), optax.sgd(0.1), tmp_path / "a")
    path = next((tmp_path / "a").glob("0-weight-*.bin"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="has 23 of 24 bytes"):
        store(params(), optax.adam(1e-2), tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").write_text("")
    with pytest.raises(NotADirectoryError, match="name a folder, not a file"):
        store(params(), None, tmp_path / "a")


def test_a_damaged_manifest_is_one_clear_error(tmp_path):
    store(params(), optax.sgd(0.1), tmp_path)
    for damaged in ("", '{"step"', "[]", '{"names": []}', '{"step": null}', '{"step": 0}'):
        (tmp_path / "manifest.json").write_text(damaged)
        with pytest.raises(ValueError, match=r"manifest.json cannot be read .* name an empty"):
            store(params(), optax.sgd(0.1), tmp_path)


def test_a_store_in_memory_writes_every_so_many_steps_and_goes_on(tmp_path, monkeypatch):
    executor = wse.CS2().executor(
        loss, params(), X, optax.adam(1e-2), folder=tmp_path, checkpoint_every=3
    )
    state = trained(executor, executor.init(params()), 5)
    assert not any(isinstance(x, np.memmap) for x in (*state.weights, *state.states))
    assert {path.name.partition("-")[0] for path in tmp_path.glob("*.bin")} == {"3"}
    # A full disk stops the step that writes; what was written before is intact.
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="the last complete step is intact"):
        executor.train_step(state, X)
    monkeypatch.undo()
    again = executor.init(params())
    assert again.step == 3
    again = trained(executor, again, 2)
    jax.tree.map(np.testing.assert_array_equal, again.params, state.params)
    jax.tree.map(np.testing.assert_array_equal, again.optimizer_state, state.optimizer_state)


@pytest.mark.parametrize("every", [0, -1, 1.5, True])
def test_a_period_is_a_positive_number_of_steps(every, tmp_path, untyped):
    with pytest.raises(ValueError, match="pass checkpoint_every=100"):
        store(params(), optax.sgd(0.1), tmp_path, checkpoint_every=every)


def test_a_period_needs_a_folder():
    with pytest.raises(ValueError, match="there is no folder to write to"):
        store(params(), optax.sgd(0.1), checkpoint_every=1)


def test_beyond_its_budget_the_store_lies_in_files_that_leave_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    nbytes = store(params(), optax.adam(1e-2)).nbytes
    memory = wse.CS2(host_budget_bytes=2 * nbytes).executor(loss, params(), X, optax.adam(1e-2))
    expected = trained(memory, memory.init(params()), 3)
    assert not list(tmp_path.iterdir())
    tight = wse.CS2(host_budget_bytes=2 * nbytes - 1).executor(loss, params(), X, optax.adam(1e-2))
    found = trained(tight, tight.init(params()), 3)
    assert all(isinstance(array, np.memmap) for array in found.weights)
    assert len(list(tmp_path.glob("memoryx-*"))) == 1
    jax.tree.map(np.testing.assert_array_equal, found.params, expected.params)
    del found
    assert not list(tmp_path.iterdir())


def test_beyond_its_budget_the_store_lies_in_the_folder_given(tmp_path):
    cluster = wse.CS2(host_budget_bytes=1)
    executor = cluster.executor(
        loss, params(), X, optax.sgd(0.1), folder=tmp_path / "store", checkpoint_every=5
    )
    assert trained(executor, executor.init(params()), 2).shelf.folder == tmp_path / "store"
    assert executor.init(params()).step == 2


def places(state):
    return {array.ctypes.data for array in (*state.weights, *state.states) if array.nbytes > 16}


def test_the_memory_of_steps_that_nobody_refers_to_is_used_again():
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2))
    state = trained(executor, executor.init(params()), 1)
    first = places(state)
    assert places(trained(executor, state, 1)).isdisjoint(first)
    state = trained(executor, state, 1)
    state = trained(executor, state, 1)
    assert places(state) == first


def test_states_that_somebody_refers_to_stay_as_they_were():
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2))
    state, held, copies, views = executor.init(params()), [], [], []
    for step in range(6):
        state = trained(executor, state, 1)
        copies.append(jax.tree.map(np.copy, state.params))
        # The whole state, one of its trees, or a part of an array.
        held.append(state if step % 2 else state.params)
        views.append(state.weights[0][1:])
    for i, (one, copy) in enumerate(zip(held, copies, strict=True)):
        jax.tree.map(np.testing.assert_array_equal, one.params if i % 2 else one, copy)
        np.testing.assert_array_equal(views[i], copy["a"][1:])
    del held, one
    state = trained(executor, trained(executor, state, 1), 1)
    for view, copy in zip(views, copies, strict=True):
        np.testing.assert_array_equal(view, copy["a"][1:])


def test_a_state_that_hands_arrays_on_shares_none_with_the_next():
    def update(gradients, state, given):
        down = jax.tree.map(lambda x: -0.1 * x, gradients)
        return down, {"before": given, "still": state["still"]}

    optimizer = optax.GradientTransformation(lambda p: {"before": p, "still": p}, update)
    executor = wse.CS2().executor(loss, params(), X, optimizer)
    state, kept = executor.init(params()), []
    for step in range(6):
        state = trained(executor, state, 1)
        if step % 2:  # of every other one the memory may be used again
            kept.append((state, jax.tree.map(np.copy, (state.params, state.optimizer_state))))
    for one, copy in kept:
        jax.tree.map(np.testing.assert_array_equal, (one.params, one.optimizer_state), copy)
        assert trained(executor, one, 1).step == one.step + 1


def test_a_first_state_is_that_of_optax():
    for name, (optimizer, _) in OPTIMIZERS.items():
        found, expected = store(params(), optimizer).optimizer_state, optimizer.init(params())
        assert jax.tree.structure(found) == jax.tree.structure(expected), name
        jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_training_goes_on_from_weights_and_an_optimizers_state():
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2))
    half = trained(executor, executor.init(params()), 2)
    on = executor.init(half.params, half.optimizer_state)
    whole, found = trained(executor, half, 2), trained(executor, on, 2)
    jax.tree.map(np.testing.assert_array_equal, found.params, whole.params)
    with pytest.raises(ValueError, match="it must be that of this optimizer"):
        executor.init(params(), optax.sgd(0.1).init(params()))
    with pytest.raises(ValueError, match="it must be that of this optimizer"):
        executor.init(params(), optax.adam(0.1).init({n: np.ones(2, "f4") for n in "abc"}))


def test_shapes_alone_start_nothing():
    shape = {"a": jax.ShapeDtypeStruct((2, 2), jnp.float32)}
    with pytest.raises(ValueError, match="a new store needs numbers"):
        store(shape, optax.adam(1e-2))


def test_what_a_step_made_is_sent_without_a_copy():
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2))
    first = executor.init(params())
    second, _ = executor.train_step(first, X)
    weight = Weight(0)
    assert isinstance(first.sent(weight), np.ndarray)
    sent = second.sent(weight)
    assert np.asarray(sent).ctypes.data == second.read(weight).ctypes.data
    _, ours = executor.train_step(second, X)
    state = second
    for _ in range(3):  # the memory of the second step is offered to the fourth; its view keeps it
        state, _ = executor.train_step(state, X)
    np.testing.assert_array_equal(second.sent(weight), second.read(weight))
    _, again = executor.train_step(second, X)
    assert float(again) == float(ours)


def test_nothing_is_compiled_after_the_first_step(caplog):
    executor = wse.CS2().executor(loss, params(), X, optax.adam(1e-2))
    state = trained(executor, executor.init(params()), 1)
    with jax.log_compiles():
        trained(executor, state, 3)
        assert not [x for x in caplog.messages if "XLA compilation" in x]
        jax.jit(lambda x: x + 41)(1.0)  # it would be seen
        assert [x for x in caplog.messages if "XLA compilation" in x]


def test_what_was_streamed_is_never_written_to():
    state = store(params(), optax.adam(1e-2))
    for array in (*state.weights, *state.states):
        assert not array.flags.writeable


def test_an_optimizer_of_a_large_model_is_cut_from_shapes():
    shape = {"a": jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)}
    assert len(cut(optax.adam(1e-3), shape).pieces) == 2


@pytest.mark.slow
def test_a_store_shows_itself_in_a_line(tmp_path):
    params = {f"w{i}": np.zeros((30, 30), "f4") for i in range(20)}
    assert repr(store(params, optax.adam(1e-3))) == (
        "MemoryX(step 0: 20 weights, 41 states, 216,004 bytes, in memory)"
    )
    assert repr(store(params, optax.sgd(0.1), tmp_path)).endswith(f"72,000 bytes, in {tmp_path})")
