"""What an executor is given: what belongs to another one is refused, in both modes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from tests.wse.chain import chain, loss, pairs
from wse.machine.cluster import MODES

both = pytest.mark.parametrize("mode", MODES)
pytestmark = pytest.mark.usefixtures("quick_compilation")
ADAM = optax.adam(1e-2)


def net(width: int = 4, depth: int = 2):
    return chain(width, depth, np.float32)


def samples(width: int = 4, count: int = 6):
    return pairs(width, count, dtype=np.float32)


def named(params, batch):
    return loss([params["a"], params["b"]], batch)


def executor(mode, optimizer=ADAM, params=None, batch=None, **cluster):
    function = named if isinstance(params, dict) else loss
    params = net() if params is None else params
    batch = samples() if batch is None else batch
    return wse.CS2(mode=mode, **cluster).executor(function, params, batch, optimizer)


OTHERS = {
    "wider": (
        lambda mode: executor(mode, params=net(5), batch=samples(5)).init(net(5)),
        r"its parameters have '0\.b: float32\[5\]' instead of '0\.b: float32\[4\]'",
    ),
    "larger": (
        lambda mode: executor(mode, params=net(4, 3)).init(net(4, 3)),
        r"its parameters have '2\.b: float32\[4\]' instead of nothing",
    ),
    "smaller": (
        lambda mode: executor(mode, params=net(4, 1)).init(net(4, 1)),
        r"its parameters have nothing instead of '1\.b: float32\[4\]'",
    ),
    "other names": (
        lambda mode: executor(mode, params=dict(zip("ab", net(), strict=True))).init(
            dict(zip("ab", net(), strict=True))
        ),
        r"its parameters have 'a\.b: float32\[4\]' instead of '0\.b: float32\[4\]'",
    ),
    "another tree": (
        lambda mode: executor(mode, params=tuple(net())).init(tuple(net())),
        "its parameters have the tree",
    ),
    "another optimizer": (
        lambda mode: executor(mode, optax.sgd(0.1)).init(net()),
        "its optimizer's arrays have '0: EmptyState' instead of '0: ScaleByAdamState'",
    ),
    "half precision": (
        lambda mode: executor(mode, precision="float16").init(net()),
        "its optimizer's arrays have 'ScaledState' instead of '0: ScaleByAdamState'",
    ),
    "parameters": (lambda _: net(), "state is of list; .* pass what init"),
    "nothing": (lambda _: None, "state is of NoneType; .* pass what init"),
}


@both
@pytest.mark.parametrize("name", OTHERS)
def test_a_state_of_another_executor_is_refused(mode, name, untyped):
    made, said = OTHERS[name]
    with pytest.raises(ValueError, match=said):
        executor(mode).train_step(made(mode), samples())


@both
def test_a_state_of_the_other_mode_is_refused(mode, untyped):
    (other,) = {*MODES} - {mode}
    with pytest.raises(ValueError, match=r"state is of (MemoryX|Loaded); .* must be of"):
        executor(mode).train_step(executor(other).init(net()), samples())


@both
def test_a_state_of_the_same_model_is_taken_and_trained_by_the_executors_optimizer(mode):
    """The state is data: how large a step is, the executor that takes it says."""
    other = executor(mode, optax.adam(0.5))
    state, _ = other.train_step(other.init(net()), samples())
    plain, held = state.params, state.optimizer_state
    ours, _ = executor(mode).train_step(state, samples())
    change, _ = ADAM.update(jax.grad(loss)(plain, samples()), held, plain)
    plain = optax.apply_updates(plain, change)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5, 1e-6), ours.params, plain)


@both
def test_a_state_is_looked_at_once(mode, monkeypatch):
    looked = []
    for module in ("wse.execute.streaming.executor", "wse.execute.resident.executor"):
        monkeypatch.setattr(f"{module}.check_state", lambda *_: looked.append(mode))
    one, other = executor(mode), executor(mode)
    state = other.init(net())
    for _ in range(3):
        state, _ = one.train_step(state, samples())
    assert looked == [mode]
    own = one.init(net())
    for _ in range(2):
        own, _ = one.train_step(own, samples())
    assert looked == [mode]


@both
def test_an_optimizers_state_of_another_is_refused_by_init(mode):
    with pytest.raises(ValueError, match="'0: EmptyState' instead of '0: ScaleByAdamState'"):
        executor(mode).init(net(), optax.sgd(0.1).init(net()))


@both
def test_a_batch_without_samples_is_refused(mode):
    trained = executor(mode)
    empty = samples(count=0)
    with pytest.raises(ValueError, match="the batch has 0 samples"):
        trained.train_step(trained.init(net()), empty)


@both
def test_what_is_no_array_is_named(mode):
    with pytest.raises(ValueError, match=r"parameter '0\.b' is 'abc' of type str"):
        executor(mode, params=[{"w": np.ones((4, 4)), "b": "abc"}])
    with pytest.raises(ValueError, match="batch entry '1' is 'y' of type str"):
        executor(mode, batch=(np.ones((6, 4), "f4"), "y"))


@both
def test_a_python_number_in_the_batch_is_a_number(mode):
    """It takes the type of what it meets; an array of float64 would draw all into it."""

    def scaled(params, batch):
        return batch["t"] * loss(params, (batch["x"], batch["y"]))

    x, y = samples()
    weak = jnp.full(x.shape, 2.0)
    assert weak.weak_type
    with jax.enable_x64(True):
        options = {"micro_batches": 2} if mode == "pipelined" else {}
        cluster = wse.CS2(mode=mode)
        made = cluster.executor(scaled, net(), {"t": 2.0, "x": x, "y": y}, ADAM, **options)
        for t, inputs in ((2.0, x), (np.float64(2.0), x), (3.0, x), (2.0, weak)):
            batch = {"t": t, "x": inputs, "y": y}
            value, gradients = made.value_and_grad(net(), batch)
            expected, ours = jax.value_and_grad(scaled)(net(), batch)
            assert value.dtype == expected.dtype
            assert float(value) == pytest.approx(float(expected), rel=1e-5)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-6), gradients, ours)


@both
def test_under_a_transformation_of_jax_it_says_that_it_runs_by_itself(mode):
    made, params, batch = executor(mode), net(), samples()
    state, stacked = made.init(params), jax.tree.map(lambda x: jnp.stack([x, x]), batch)
    for call in (
        lambda: jax.jit(made.value_and_grad)(params, batch),
        lambda: jax.grad(lambda p: made.value_and_grad(p, batch)[0])(params),
        lambda: jax.vmap(lambda b: made.value_and_grad(params, b)[0])(stacked),
        lambda: jax.jit(lambda b: made.train_step(state, b)[1])(batch),
    ):
        with pytest.raises(ValueError, match=r"under jax.jit, grad or vmap; .*call it outside"):
            call()
