"""Sparse weights on the emulated machine: the numbers of plain JAX, and what was sent."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from tests.wse.chain import chain, loss, pairs
from wse.execute.memoryx.store import Receiving
from wse.sparsity import SET, Gradual, RigL, Rule, Static, masked, sparsified

ALL = Rule(keep_last=False)
METHODS = {
    "static": Static(0.9, rule=ALL),
    "gradual": Gradual(0.8, begin=1, end=4, every=1, rule=ALL),
    "set": SET(0.9, steps=6, every=2, rule=ALL),
    "rigl": RigL(0.9, steps=6, every=2, rule=ALL),
}
MOMENTUM = optax.sgd(0.1, momentum=0.9)
WIDTH, DEPTH, STEPS = 12, 2, 5


pytestmark = pytest.mark.usefixtures("quick_compilation")


def net():
    return chain(WIDTH, DEPTH)


def samples(step: int = 0):
    return pairs(WIDTH, step=step)


def plain(method, optimizer, steps=STEPS):
    params = jax.tree.map(jnp.asarray, sparsified(net(), method))
    optimizer = masked(optimizer, method)
    state = jax.jit(optimizer.init)(params)

    @jax.jit
    def step(params, state, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch)
        change, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, change), state, value

    for i in range(steps):
        params, state, _ = step(params, state, samples(i))
    return params, state


def trained(method, optimizer, steps=STEPS, mode="streaming", **options):
    cluster = wse.CS2(mode=mode, sparsity=method)
    executor = cluster.executor(loss, net(), samples(), optimizer, **options)
    state = executor.init(net())
    for i in range(steps):
        state, _ = executor.train_step(state, samples(i))
    return state


@cache
def plain_momentum(name):
    """What two executors are compared with."""
    return plain(METHODS[name], MOMENTUM)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_trained_weights_are_those_of_plain_jax_bit_for_bit(name):
    with jax.enable_x64(True):
        wanted, sparse = plain_momentum(name)
        state = trained(METHODS[name], MOMENTUM)
        jax.tree.map(np.testing.assert_array_equal, state.params, wanted)
        jax.tree.map(np.testing.assert_array_equal, state.optimizer_state, sparse)


@pytest.mark.slow
def test_masks_are_the_same_under_adam_too():
    """XLA fuses Adam of one parameter otherwise than of all: there the last bit may differ."""
    method, optimizer = METHODS["static"], optax.adam(1e-2)
    with jax.enable_x64(True):
        wanted, sparse = plain(method, optimizer)
        state = trained(method, optimizer)
        jax.tree.map(np.testing.assert_array_equal, state.optimizer_state.masks, sparse.masks)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15),
            state.params,
            wanted,
        )


@pytest.mark.parametrize("name", METHODS)
def test_a_resident_net_keeps_the_same_masks(name):
    """Parts of a batch add up in another order: the last bits of the weights may differ."""
    with jax.enable_x64(True):
        wanted, sparse = plain_momentum(name)
        state = trained(METHODS[name], MOMENTUM, mode="pipelined", micro_batches=4)
        jax.tree.map(np.testing.assert_array_equal, state.optimizer_state.masks, sparse.masks)
        outside = jax.tree.map(
            lambda mask, w: w[~np.broadcast_to(mask, w.shape)], sparse.masks, state.params
        )
        assert not any(np.any(x) for x in jax.tree.leaves(outside))
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14),
            state.params,
            wanted,
        )


def test_clipping_by_the_whole_norm_is_that_of_the_masked_gradient():
    method, optimizer = METHODS["static"], optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(1))
    with jax.enable_x64(True):
        wanted, _ = plain(method, optimizer, 2)
        state = trained(method, optimizer, 2)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), state.params, wanted
        )


@pytest.mark.parametrize("sparsity", [0.9, 0.3])
def test_bytes_are_values_and_indices_or_dense_if_that_is_less(sparsity):
    """In float32: 6 bytes a weight that is kept, at most 4 for each that there is."""
    method = Static(sparsity, rule=ALL)
    params = jax.tree.map(lambda leaf: leaf.astype("f4"), net())
    batch = tuple(x.astype("f4") for x in samples())
    executor = wse.CS2(sparsity=method).executor(loss, params, batch, optax.sgd(0.1))
    state = executor.init(params)
    sent = sum(np.count_nonzero(layer["w"]) for layer in state.params)
    executor.train_step(state, batch)
    kept, biases = DEPTH * round(WIDTH**2 * (1 - sparsity)), DEPTH * WIDTH
    assert sent == kept
    weights = min(6 * kept, 4 * DEPTH * WIDTH**2)
    assert executor.run.total_bytes("broadcast") == 2 * (weights + 4 * biases)
    assert executor.run.total_bytes("gradient") == weights + 4 * biases


def test_gradients_are_sent_whole_when_rigl_looks_at_them():
    method = METHODS["rigl"]
    executor = wse.CS2(sparsity=method).executor(loss, net(), samples(), optax.sgd(0.1))
    state, sent = executor.init(net()), []
    for i in range(STEPS):
        state, _ = executor.train_step(state, samples(i))
        sent.append(executor.run.total_bytes("gradient"))
    biases = DEPTH * WIDTH
    few = 6 * DEPTH * round(WIDTH**2 / 10) + 4 * biases
    whole = 4 * DEPTH * WIDTH**2 + 4 * biases
    assert sent == [few, whole, few, whole, few]  # after updates 2 and 4; 6 is past 75 %


def test_what_leaves_the_wafer_is_zero_outside_the_mask(monkeypatch):
    method, given = METHODS["static"], []
    receive = Receiving.give
    monkeypatch.setattr(Receiving, "give", lambda *a: (given.append(a[1:]), receive(*a))[1])
    executor = wse.CS2(sparsity=method).executor(loss, net(), samples(), optax.sgd(0.1))
    state = executor.init(net())
    masks = jax.tree.leaves(state.optimizer_state.masks)
    executor.train_step(state, samples())
    assert len(given) == 2 * DEPTH
    for weight, gradient in given:
        assert (
            np.asarray(gradient)[~np.broadcast_to(masks[weight.leaf], gradient.shape)] == 0
        ).all()


def test_a_store_in_files_goes_on_with_its_masks(tmp_path):
    method = METHODS["set"]
    made = lambda: wse.CS2(sparsity=method).executor(  # noqa: E731
        loss, net(), samples(), optax.sgd(0.1), folder=tmp_path
    )
    first = made()
    state = first.init(net())
    for i in range(3):
        state, _ = first.train_step(state, samples(i))
    again = made().init(net())
    assert again.step == 3
    for a, b in zip(jax.tree.leaves(again.params), jax.tree.leaves(state.params), strict=True):
        np.testing.assert_array_equal(a, b)
    assert int(again.optimizer_state.step) == 3


def test_a_stacked_parameter_is_sent_slice_by_slice_with_its_own_count():
    def scanned(params, x):
        turn = lambda x, w: (jnp.tanh(x @ w), None)  # noqa: E731
        return jnp.mean(jax.lax.scan(turn, x, params["w"])[0] ** 2)

    params = {"w": np.random.default_rng(0).normal(size=(4, 6, 6)).astype("f4")}
    batch = np.ones((2, 6), "f4")
    method = Static(0.8, rule=ALL)
    executor = wse.CS2(sparsity=method).executor(scanned, params, batch, optax.sgd(0.1))
    state = executor.init(params)
    executor.train_step(state, batch)
    kept = np.count_nonzero(state.params["w"], axis=(1, 2))
    assert kept.sum() == round(0.2 * 144)
    sizes = [e.bytes for e in executor.run.events if e.kind == "broadcast"][:4]
    assert sizes == (6 * kept).tolist()


@pytest.mark.usefixtures("untyped")
def test_something_else_than_a_method_is_refused():
    with pytest.raises(ValueError, match=r"sparsity is 0\.9; it must be a method"):
        wse.CS2(sparsity=0.9).executor(loss, net(), samples())
    with pytest.raises(ValueError, match=r"sparsity is 0\.9; it must be a method"):
        wse.CS2(mode="pipelined", sparsity=0.9).executor(loss, net(), samples())
