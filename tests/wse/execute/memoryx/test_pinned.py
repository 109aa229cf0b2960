"""Weights that go to a card through pinned pages: the same numbers, and never old ones."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from wse.execute.memoryx import pinned
from wse.execute.memoryx.pinned import Pinned
from wse.execute.memoryx.store import Receiving
from wse.execute.streaming.passes import Step
from wse.execute.swarmx import SwarmX
from wse.graph.equations import Weight

BATCH = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)


@pytest.fixture
def card(monkeypatch):
    """Let the device be one that does not compute where the store does, and arrays large."""
    monkeypatch.setattr(SwarmX, "at_host", False)
    monkeypatch.setattr(pinned, "LEAST_BYTES", 60)


def loss(params, batch):
    def layer(x, weights):
        return jnp.tanh(x @ weights), None

    x, _ = jax.lax.scan(layer, batch @ params["first"], params["stack"])
    return jnp.mean((x @ params["first"].T - batch) ** 2)


def weights(seed=0):
    draw = np.random.default_rng(seed)
    shapes = {"first": (3, 5), "stack": (4, 5, 5)}
    return {k: draw.standard_normal(v, np.float32) for k, v in shapes.items()}


def trained(executor, state, steps=4):
    losses = []
    for _ in range(steps):
        state, value = executor.train_step(state, BATCH)
        losses.append(float(value))
    return losses, state


def executor(**how):
    return wse.CS2(**how).executor(loss, weights(), BATCH, optax.adam(1e-2))


@pytest.mark.parametrize("keep", [False, True])
def test_training_through_pinned_pages_is_the_same_to_the_bit(keep, monkeypatch, request):
    plain = wse.CS2().executor(loss, weights(), BATCH, optax.adam(1e-2), keep_residuals=keep)
    wanted, before = trained(plain, plain.init(weights()))
    request.getfixturevalue("card")
    sent = []
    of = Pinned.of
    monkeypatch.setattr(Pinned, "of", lambda *args: sent.append(of(*args)) or sent[-1])
    through = wse.CS2().executor(loss, weights(), BATCH, optax.adam(1e-2), keep_residuals=keep)
    found, after = trained(through, through.init(weights()))
    assert {x.sharding.memory_kind for x in sent} == {"pinned_host"}
    assert found == wanted
    jax.tree.map(np.testing.assert_array_equal, after.params, before.params)
    jax.tree.map(np.testing.assert_array_equal, after.optimizer_state, before.optimizer_state)


def test_two_states_of_one_executor_do_not_meet(card):
    through = executor()
    alone = [trained(executor(), through.init(weights(seed)))[0] for seed in range(2)]
    states, losses = [through.init(weights(seed)) for seed in range(2)], [[], []]
    for _ in range(4):
        for i in range(2):
            states[i], value = through.train_step(states[i], BATCH)
            losses[i].append(float(value))
    assert losses == alone


def test_an_old_state_can_be_taken_up_again(card):
    through = executor()
    start = through.init(weights())
    first, _ = trained(through, start)
    again, _ = trained(through, start)
    assert first == again


def test_a_step_that_was_broken_off_can_be_made_again(card, monkeypatch):
    whole = executor()
    wanted, _ = trained(whole, whole.init(weights()), steps=6)
    through = executor()
    first, state = trained(through, through.init(weights()), steps=3)
    with monkeypatch.context() as patched:
        finish, update, left = Step._send_out, Receiving._update, []

        def slow(*args):
            time.sleep(0.1)
            return update(*args)

        def broken(self, place, layer):
            finish(self, place, layer)
            left.append(self._receiving)
            if not place:
                raise KeyboardInterrupt

        patched.setattr(Receiving, "_update", slow)
        patched.setattr(Step, "_send_out", broken)
        with pytest.raises(KeyboardInterrupt):
            through.train_step(state, BATCH)
    assert all(piece.done() for piece in left[0]._running)
    rest, _ = trained(through, state, steps=3)
    assert first + rest == wanted


def test_weights_that_the_caller_writes_over_are_copied_anew(card):
    through, mine = executor(), weights()
    before, _ = through.value_and_grad(mine, BATCH)
    mine["first"] *= 2
    after, gradients = through.value_and_grad(mine, BATCH)
    wanted, plain = jax.value_and_grad(loss)(mine, BATCH)
    assert float(before) != float(after) == pytest.approx(float(wanted), rel=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradients, plain)


def test_no_room_for_copies_means_ordinary_memory(card, monkeypatch):
    def refuse(self, *_):
        raise AssertionError("copied beyond the budget")

    monkeypatch.setattr(Pinned, "ahead", refuse)
    size = sum(x.nbytes for x in jax.tree.leaves(weights()))
    tight = executor(host_budget_bytes=6 * size + 100)
    trained(tight, tight.init(weights()))


def test_a_device_without_pinned_memory_left_warns_and_goes_on(monkeypatch):
    def full(array, where):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no more of it")

    copies, held = Pinned(jax.devices()[0]), np.zeros((2, 2**17), np.float32)
    held[1] = 7
    monkeypatch.setattr(jax, "device_put", full)
    with pytest.warns(UserWarning, match="524,288 bytes of weights.*XLA_PJRT_GPU_HOST"):
        found = copies.of(Weight(0, (1,)), held)
    assert found.shape == (2**17,)
    assert set(found) == {7}


def test_small_arrays_are_sent_as_they_are(monkeypatch):
    monkeypatch.setattr(SwarmX, "at_host", False)
    monkeypatch.setattr(Pinned, "_copied", None)
    through = executor()
    losses, _ = trained(through, through.init(weights()))
    assert losses[-1] < losses[0]
