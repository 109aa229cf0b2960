"""The store: any optimizer in pieces, files versioned by step, crashes survived."""

import errno
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from wse.memoryx import store
from wse.shelf import Shelf
from wse.updates import cut

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
    with pytest.raises(NotADirectoryError, match="the store needs a folder"):
        store(params(), None, tmp_path / "a")


def test_shapes_alone_start_nothing():
    shape = {"a": jax.ShapeDtypeStruct((2, 2), jnp.float32)}
    with pytest.raises(ValueError, match="a new store needs numbers"):
        store(shape, optax.adam(1e-2))


def test_what_was_streamed_is_never_written_to():
    state = store(params(), optax.adam(1e-2))
    for array in (*state.weights, *state.states):
        assert not array.flags.writeable


def test_an_optimizer_of_a_large_model_is_cut_from_shapes():
    shape = {"a": jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)}
    assert len(cut(optax.adam(1e-3), shape).pieces) == 2
