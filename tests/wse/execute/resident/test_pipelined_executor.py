"""The layer-pipelined executor: parts, barriers, the schedule, what waits, refusals."""

import json
import logging
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from tests.wse.chain import chain, loss, pairs
from wse.execute.timeline import faults
from wse.machine.machine import Sourced

WIDTH, DEPTH, SAMPLES = 16, 5, 8


pytestmark = pytest.mark.usefixtures("quick_compilation")


def net():
    return chain(WIDTH, DEPTH, np.float32, biased=False)


def samples(count: int = SAMPLES):
    return pairs(WIDTH, count, dtype=np.float32)


def pipelined(function=loss, params=None, batch=None, *optimizer, **options):
    params = net() if params is None else params
    batch = samples() if batch is None else batch
    return wse.CS2(mode="pipelined").executor(function, params, batch, *optimizer, **options)


def agree(function, params, batch, parts):
    """Loss and gradients of plain JAX, in float64; returns the executor."""
    with jax.enable_x64(True):
        params, batch = jax.tree.map(np.float64, (params, batch))
        value, gradients = jax.jit(jax.value_and_grad(function))(params, batch)
        executor = pipelined(function, params, batch, micro_batches=parts)
        found, ours = executor.value_and_grad(params, batch)
        assert float(found) == pytest.approx(float(value), rel=1e-12)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(gradients), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    return executor


def test_training_equals_streaming_and_old_states_stay_readable():
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2))
    streamed = wse.CS2().executor(loss, net(), samples(), optimizer)
    executor = pipelined(loss, net(), samples(), optimizer)
    first = state = executor.init(net())
    expected = streamed.init(net())
    for _ in range(3):
        state, value = executor.train_step(state, samples())
        expected, plain = streamed.train_step(expected, samples())
        assert float(value) == pytest.approx(float(plain), rel=1e-5)
    jax.tree.map(np.testing.assert_array_equal, first.params, net())
    assert (first.step, state.step) == (0, 3)
    for a, b in zip(jax.tree.leaves(state.params), jax.tree.leaves(expected.params), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_a_mean_is_no_barrier_and_the_schedule_is_1f1b():
    parts = 8
    executor = pipelined(micro_batches=parts)
    executor.value_and_grad(net(), samples())
    run = executor.run
    each = [x for x in executor.flow.segments if x.each]
    assert len(each) == DEPTH
    last = 1 + max(event.tick for event in run.events)
    assert last == 2 * (parts + DEPTH - 1)  # the known length of 1F1B with one tick per task
    for place, segment in enumerate(each):
        own = [e for e in run.events if e.layer == segment.layer and e.part is not None]
        waiting = np.cumsum([{"forward": 1, "backward": -1}.get(e.kind, 0) for e in own])
        assert waiting.max() <= DEPTH - place
        assert waiting[-1] == 0
    busy = [(e.layer, e.tick) for e in run.events if e.part is not None and e.kind != "batch"]
    assert len(busy) == len(set(busy)) == 2 * DEPTH * parts


def test_parts_hold_fewer_activations_and_all_weights_are_resident():
    def held(parts):
        executor = pipelined(loss, net(), samples(64), micro_batches=parts)
        executor.value_and_grad(net(), samples(64))
        return executor.run

    whole, cut = held(1), held(16)
    weights = 4 * DEPTH * (WIDTH**2 + WIDTH)
    assert whole.peak_weight_bytes == cut.peak_weight_bytes == weights
    # 1F1B keeps at most DEPTH parts of 16 waiting before any layer.
    assert max(x.activations for x in cut.resident) < max(x.activations for x in whole.resident) / 2


def batch_norm(params, batch):
    x, y = batch
    for layer in params:
        x = x @ layer["w"] + layer["b"]
        x = jnp.tanh((x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3))
    return jnp.mean((x - y) ** 2)


def no_mean(params, batch):
    """A softmax over the batch, a sort, a product of sums: nothing of it is a mean."""
    x, y = batch
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    weights = jax.nn.softmax(x[:, 0])
    order = jnp.sort(x[:, 1])
    return weights @ jnp.sum((x - y) ** 2, 1) + jnp.std(x) * jnp.mean(order * jnp.arange(len(x)))


def depends_on_the_count(params, batch):
    """Constants of the batch's own length, and numbers that scale with it."""
    x, y = batch
    place = np.arange(len(x))[:, None] / len(x)
    draw = jax.random.normal(jax.random.key(0), x.shape)
    for layer in params:
        x = jnp.tanh((x + place * draw) @ layer["w"] * len(x) / 7 + layer["b"])
    return jnp.sum((x - y) ** 2) / len(x)


@pytest.mark.parametrize(
    ("function", "parts"), [(batch_norm, 4), (no_mean, 2), (depends_on_the_count, 8)]
)
def test_what_sees_the_whole_batch_is_exact(function, parts):
    executor = agree(function, net()[:2], samples(), parts)
    assert executor.flow.parts == parts
    assert any(segment.each for segment in executor.flow.segments)
    assert any(not segment.each and segment.demand.any for segment in executor.flow.segments)


@jax.custom_vjp
def normalised(x):
    return x


normalised.defvjp(lambda x: (x, None), lambda _, g: (g / jnp.linalg.norm(g),))


def test_a_derivative_of_the_users_own_that_mixes_samples_is_a_barrier():
    def function(params, batch):
        x, y = batch
        x = normalised(jnp.tanh(x @ params["w"]))
        return jnp.mean((jnp.tanh(x @ params["v"]) - y) ** 2)

    draw = np.random.default_rng(0)
    params = {name: draw.normal(size=(WIDTH, WIDTH)) for name in "wv"}
    agree(function, params, samples(), 4)


@jax.custom_vjp
def bounded(w):
    return w


bounded.defvjp(lambda w: (w, None), lambda _, g: (jnp.clip(g, -1e-3, 1e-3),))


def test_a_derivative_of_the_users_own_sees_the_sum_of_all_parts():
    """What is clipped is the gradient of the weight, not what each part adds to it."""

    def function(params, batch):
        x, y = batch
        return jnp.mean((jnp.tanh(x @ bounded(params["w"])) - y) ** 2)

    params = {"w": np.random.default_rng(0).normal(size=(WIDTH, WIDTH))}
    agree(function, params, samples(), 4)


def test_a_derivative_of_the_users_own_for_each_sample_is_no_barrier():
    def function(params, batch):
        x, y = batch
        return jnp.mean((bounded(x @ params["w"]) - y) ** 2)

    params = {"w": np.random.default_rng(0).normal(size=(WIDTH, WIDTH))}
    executor = agree(function, params, samples(), 4)
    assert all(segment.each for segment in executor.flow.segments if segment.weights)


def test_a_table_as_long_as_the_batch_is_not_taken_for_samples():
    def function(params, batch):
        x, statistics = batch
        return jnp.mean(jnp.tanh(x @ params["w"] - statistics) ** 2)

    params = {"w": np.random.default_rng(0).normal(size=(SAMPLES, SAMPLES))}
    x = np.random.default_rng(1).normal(size=(SAMPLES, SAMPLES))
    agree(function, params, (x, np.arange(float(SAMPLES))), 4)


operations = st.sampled_from(["tanh", "product", "centre", "norm", "roll", "sum"])


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    st.lists(st.tuples(operations, st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=6),
    st.sampled_from([2, 4]),
)
def test_random_nets_with_skips_shared_weights_and_barriers(program, parts):
    params = {n: np.random.default_rng(i).normal(size=(3, 3)) for i, n in enumerate("abc")}
    x = np.random.default_rng(7).normal(size=(4, 3))

    def function(params, x):
        values = [x @ params["a"]]
        for what, place, name in program:
            last, other, w = values[-1], values[place % len(values)], params["abc"[name]]
            values.append(
                {
                    "tanh": lambda last=last: jnp.tanh(last),
                    "product": lambda other=other, w=w: jnp.sin(other) @ w.T,
                    "centre": lambda last=last, other=other: last - other.mean(0),
                    "norm": lambda last=last, w=w: last / (1 + jnp.sum(w**2)),
                    "roll": lambda last=last, other=other: last + jnp.roll(other, 1, 0),
                    "sum": lambda last=last, w=w: last * jnp.tanh(jnp.sum(last)) + w[0],
                }[what]()
            )
        return jnp.mean(values[-1] ** 2)

    agree(function, params, x, parts)


def test_the_record_knows_layers_parts_and_ticks(tmp_path):
    executor = pipelined(loss, net(), samples(), optax.sgd(0.1), micro_batches=4)
    executor.train_step(executor.init(net()), samples())
    run = executor.run
    forward = run.dataset.where(run.dataset.kind == "forward", drop=True)
    assert set(forward.part.values[forward.part.values >= 0]) == set(range(4))
    *others, update = run.events
    assert (update.kind, update.layer) == ("update", f"0.b and {2 * DEPTH - 1} more")
    assert update.bytes == 4 * DEPTH * (WIDTH * WIDTH + WIDTH)
    assert all(event.kind != "update" for event in others)
    assert update.start_s >= max(event.start_s + event.seconds for event in others)
    assert int(run.dataset.tick.max()) == 2 * (4 + DEPTH - 1) - 1
    document = json.loads(run.save(tmp_path / "step.json").read_text())
    assert faults(document) == []
    assert any(event.get("args", {}).get("part") == 3 for event in document["traceEvents"])
    ax = run.pipeline()
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(i) for i in range(DEPTH)]


def test_refusals_and_cautions_are_clear(caplog):
    with pytest.raises(ValueError, match="micro_batches is 3 for 8 samples of a system"):
        pipelined(micro_batches=3)
    with pytest.raises(ValueError, match="micro_batches is 0"):
        pipelined(micro_batches=0)
    with pytest.raises(ValueError, match="nothing has run yet"):
        _ = pipelined().run
    with pytest.raises(ValueError, match="the executor has no optimizer"):
        pipelined().init(net())
    with pytest.raises(ValueError, match="has 8 samples for 3 systems"):
        wse.CS2(3, "pipelined").executor(loss, net(), samples())
    with pytest.raises(ValueError, match="host_budget_bytes is 9"):
        wse.CS2(mode="pipelined", host_budget_bytes=9).executor(loss, net(), samples())

    def counts(params, batch):
        x, y = batch
        layers = params if len(x) == SAMPLES else params[1:]
        return loss(layers, (x, y))

    with pytest.raises(ValueError, match="another program for 2 samples than for 8: it has 5 lay"):
        pipelined(counts, micro_batches=4)
    with caplog.at_level(logging.WARNING):
        assert pipelined(counts).flow.parts == 1
    assert "one micro-batch: it has 5 layers" in caplog.text


def test_weights_beyond_the_wafer_are_a_caution():
    cluster = wse.CS2(mode="pipelined")
    small = Sourced(1000, "B", "assumed", "a test's own")
    machine = replace(cluster.machine, name="small", sram_bytes=small)
    executor = replace(cluster, machine=machine).executor(loss, net(), samples())
    assert "and a small holds 1,000" in executor.cautions[0]
    assert pipelined().cautions == ()


def test_a_count_of_a_loop_over_samples_is_made_once():
    """What `diffrax.diffeqsolve` returns beside its solution, too."""
    weight, x = np.eye(3, dtype="f4") / 2, np.arange(12.0, dtype="f4").reshape(4, 3)

    def counted(params, batch):
        def turn(carry, _):
            return (carry[0] + 1, jnp.tanh(carry[1] @ params)), None

        (turns, y), _ = jax.lax.scan(turn, (0, batch), length=3)
        return jnp.mean(jnp.sort(y, axis=0)[1:] ** 2) * turns

    executor = wse.CS2(mode="pipelined").executor(counted, weight, x)
    found, plain = executor.value_and_grad(weight, x), jax.value_and_grad(counted)(weight, x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, plain)


@pytest.mark.slow
def test_an_option_of_another_mode_is_refused_in_a_line():
    with pytest.raises(TypeError, match=r"micro_batches=2 is no option of Executor.*'pipelined'"):
        wse.CS2().executor(loss, net(), samples(), micro_batches=2)
