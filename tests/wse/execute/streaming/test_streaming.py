"""The weight-streaming executor: signatures, residency, records, refusals."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from tests.wse.chain import chain, loss, pairs
from tests.wse.promises import moved
from wse.execute.streaming import passes
from wse.execute.timeline import KINDS, faults

pytestmark = pytest.mark.usefixtures("quick_compilation")

WIDTH, DEPTH = 32, 5


def net():
    return chain(WIDTH, DEPTH, np.float32, biased=False)


def samples(count: int = 8):
    return pairs(WIDTH, count, dtype=np.float32)


def test_training_goes_down_and_old_states_stay_readable():
    executor = wse.CS2().executor(loss, net(), samples(), optax.adam(1e-2))
    first = state = executor.init(net())
    values = []
    for _ in range(5):
        state, value = executor.train_step(state, samples())
        values.append(float(value))
    assert values == sorted(values, reverse=True)
    assert (first.step, state.step) == (0, 5)
    jax.tree.map(np.testing.assert_array_equal, first.params, net())


@pytest.mark.parametrize("keep", [False, True], ids=["recompute", "keep"])
def test_live_arrays_hold_at_most_two_layers_of_weights(monkeypatch, keep):
    """Counted among all arrays of the process, not by the executor's own books."""
    alive: list[int] = []
    before = {x.unsafe_buffer_pointer() for x in jax.live_arrays() if x.ndim == 2}
    count = passes.Step._count

    def spy(step):
        # On a CPU the store's memory is the device's: what lies in the store does not count.
        receiving = step._receiving
        stored = [*receiving.gradients.values(), *receiving._new.values(), *receiving.old.states]
        places = {np.asarray(array).ctypes.data for array in stored}
        squares = [x for x in jax.live_arrays() if x.shape == (WIDTH, WIDTH)]
        alive.append(len({x.unsafe_buffer_pointer() for x in squares} - places - before))
        count(step)

    monkeypatch.setattr(passes.Step, "_count", spy)
    executor = wse.CS2().executor(loss, net(), samples(), optax.adam(1e-2), keep_residuals=keep)
    executor.train_step(executor.init(net()), samples())
    assert max(alive) >= 2
    # Two layers' weights, and the gradient of one or two on their way out.
    assert max(alive) <= 4
    assert executor.run.peak_weight_bytes == 2 * 4 * (WIDTH * WIDTH + WIDTH)


def test_recomputing_holds_less_than_keeping():
    def held(keep):
        executor = wse.CS2().executor(loss, net(), samples(64), keep_residuals=keep)
        executor.value_and_grad(net(), samples(64))
        return executor.run.peak_bytes

    assert held(False) < held(True)


def test_a_large_gradient_leaves_before_the_next_program_starts(monkeypatch):
    size = 4 * (WIDTH * WIDTH + WIDTH)

    def gradients(keep):
        executor = wse.CS2().executor(loss, net(), samples(), keep_residuals=keep)
        executor.value_and_grad(net(), samples())
        return max(resident.gradients for resident in executor.run.resident)

    assert gradients(keep=False) == 2 * size
    monkeypatch.setattr(passes, "LARGE_BYTES", size - 1)
    assert gradients(keep=False) == size
    assert gradients(keep=True) == 2 * size  # who keeps residuals asks for speed


def test_another_batch_is_traced_anew():
    executor = wse.CS2().executor(loss, net(), samples())
    small, _ = executor.value_and_grad(net(), samples(3))
    assert small == pytest.approx(float(loss(net(), samples(3))), rel=1e-6)


def test_the_caller_may_change_his_arrays():
    params = net()
    executor = wse.CS2().executor(loss, params, samples(), optax.sgd(0.1))
    state = executor.init(params)
    params[0]["w"][:] = np.nan
    assert np.isfinite(executor.train_step(state, samples())[1])


def test_the_record_is_a_table_a_perfetto_file_and_a_figure(tmp_path):
    executor = wse.CS2(2).executor(loss, net(), samples(), optax.sgd(0.1))
    executor.train_step(executor.init(net()), samples())
    run = executor.run
    counts = {kind: sum(event.kind == kind for event in run.events) for kind in KINDS}
    assert counts["broadcast"] == 2 * DEPTH
    assert counts["forward"] == counts["backward"] == counts["gradient"] == DEPTH
    assert run.dataset.sizes["event"] == 2 * len(run.events)
    assert set(run.dataset.system.values) == {0, 1}
    document = json.loads(run.save(tmp_path / "step.json").read_text())
    assert faults(document) == []
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 2 * len(run.events)
    assert [label.get_text() for label in run.figure().get_yticklabels()] == list(KINDS)
    computed = [event for event in run.events if event.kind in ("forward", "backward")]
    ends = [event.start_s + event.seconds for event in computed]
    assert all(end <= after.start_s + 1e-9 for end, after in zip(ends, computed[1:], strict=False))


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ({"ph": "?"}, "no known phase"),
        ({"ph": "X", "name": "a", "pid": 0, "tid": 0, "ts": -1, "dur": 1}, "ts is -1"),
        ({"ph": "C", "pid": 0, "ts": 0, "name": "a"}, "no 'args'"),
    ],
)
def test_a_planted_fault_is_found_in_a_perfetto_file(event, fault):
    assert fault in faults({"traceEvents": [event]})[0]
    assert faults({}) == ["no list under 'traceEvents'"]


def test_refusals_are_clear():
    executor = wse.CS2().executor(loss, net(), samples())
    with pytest.raises(ValueError, match="nothing has run yet"):
        _ = executor.run
    with pytest.raises(ValueError, match="the executor has no optimizer"):
        executor.init(net())
    with pytest.raises(ValueError, match="the executor was made for"):
        executor.value_and_grad(net()[:-1], samples())
    wide = [*net()[:-1], {"w": np.zeros((WIDTH, 2), "f4"), "b": np.zeros(2, "f4")}]
    with pytest.raises(ValueError, match=r"parameter '4\.b' is float32"):
        executor.value_and_grad(wide, samples())
    with pytest.raises(ValueError, match="has 8 samples for 3 systems"):
        wse.CS2(3).executor(loss, net(), samples())
    with pytest.raises(ValueError, match="no event has a tick"):
        wse.Run((), ()).pipeline()


operations = st.sampled_from(["tanh", "product", "add", "norm", "times"])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(operations, st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=6),
    st.booleans(),
)
def test_random_nets_with_skips_and_shared_weights(program, keep):
    """Each operation reads the last value and any earlier one, and one of three weights."""
    params = {n: np.random.default_rng(i).normal(size=(3, 3)) for i, n in enumerate("abc")}
    x = np.random.default_rng(7).normal(size=(4, 3))

    def net(params, x):
        values = [x @ params["a"]]
        for what, place, name in program:
            last, other, w = values[-1], values[place % len(values)], params["abc"[name]]
            values.append(
                {
                    "tanh": lambda last=last: jnp.tanh(last),
                    "product": lambda last=last, w=w: last @ w,
                    "add": lambda last=last, other=other: last + other,
                    "norm": lambda last=last, w=w: last / (1 + jnp.sum(w**2)),
                    "times": lambda other=other, w=w: jnp.sin(other) @ w.T,
                }[what]()
            )
        return jnp.mean(values[-1] ** 2)

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.01, momentum=0.9))
    with jax.enable_x64(True):
        plain = jax.jit(jax.value_and_grad(net))
        value, gradients = plain(params, x)
        executor = wse.CS2().executor(net, params, x, optimizer, keep_residuals=keep)
        streamed, found = executor.value_and_grad(params, x)
        assert float(streamed) == pytest.approx(float(value), rel=1e-12)
        close(found, gradients)
        promised = moved(executor, params)
        assert promised["weights_in"] == promised["gradients_out"] == 1
        assert promised["layers_held"] <= 2
        state, stepped, kept = executor.init(params), params, optimizer.init(params)
        for _ in range(3):
            state, _ = executor.train_step(state, x)
            updates, kept = optimizer.update(plain(stepped, x)[1], kept)
            stepped = optax.apply_updates(stepped, updates)
        close(state.params, stepped)


def close(found, expected):
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
