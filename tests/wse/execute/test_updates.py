"""Optimizers that an executor cannot run are refused, before anything is written."""

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


def net():
    return chain(4, 2, np.float32)


BATCH = pairs(4, 6, dtype=np.float32)


def executor(mode, optimizer, **options):
    return wse.CS2(mode=mode).executor(loss, net(), BATCH, optimizer, **options)


def grown(update, state, params=None):
    del params
    return jax.tree.map(lambda x: jnp.ones((3, *x.shape)) * x, update), state


def doubled(update, state, params=None):
    del params
    return update, jnp.concatenate([state, state])


def halved(update, state, params=None):
    del params
    return update, state.astype(jnp.float16)


CHANGING = {
    "parameters": (grown, r"makes parameters with '0\.b: float32\[3, 4\]' instead of '0\.b: flo"),
    "state": (doubled, r"makes state with 'float32\[4\]' instead of 'float32\[2\]'"),
    "type": (halved, r"makes state with 'float16\[2\]' instead of 'float32\[2\]'"),
}


@both
@pytest.mark.parametrize("name", CHANGING)
def test_a_step_that_changes_shapes_or_types_is_refused(mode, name):
    update, said = CHANGING[name]
    optimizer = optax.GradientTransformation(lambda _: jnp.zeros(2), update)
    with pytest.raises(ValueError, match=said):
        executor(mode, optimizer).init(net())


def test_a_step_that_changes_shapes_leaves_the_store_as_it_was(tmp_path):
    good = executor("streaming", optax.identity(), folder=tmp_path)
    state, _ = good.train_step(good.init(net()), BATCH)
    kept = jax.tree.map(np.array, state.params)
    bad = optax.GradientTransformation(optax.identity().init, grown)
    with pytest.raises(ValueError, match="must keep type and shape"):
        executor("streaming", bad, folder=tmp_path).init(net())
    with pytest.raises(ValueError, match="must keep type and shape"):
        executor("streaming", bad, folder=tmp_path).train_step(state, BATCH)
    found = good.init(net())
    assert found.step == 1
    jax.tree.map(np.testing.assert_array_equal, found.params, kept)


@both
@pytest.mark.parametrize(
    "optimizer",
    [
        optax.polyak_sgd(),
        optax.lbfgs(),
        optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau()),
    ],
    ids=["polyak", "lbfgs", "plateau"],
)
def test_what_asks_for_more_than_gradients_is_refused(mode, optimizer):
    with pytest.raises(ValueError, match=r"asks for more than gradients.*'value'.*optax\.adam"):
        executor(mode, optimizer).init(net())


def test_a_typed_random_key_needs_the_mode_without_a_store():
    optimizer = optax.chain(optax.add_noise(0.1, 0.5, 0), optax.sgd(0.1))
    with pytest.raises(ValueError, match=r"'0\.rng_key' .* typed random key.*mode='pipelined'"):
        executor("streaming", optimizer).init(net())
    resident = executor("pipelined", optimizer)
    state, _ = resident.train_step(resident.init(net()), BATCH)
    plain, held = net(), optimizer.init(net())
    change, _ = optimizer.update(jax.grad(loss)(plain, BATCH), held, plain)
    plain = optax.apply_updates(plain, change)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5, 1e-6), state.params, plain)


@both
@pytest.mark.parametrize("optimizer", ["adam", 0.1, optax.adam], ids=["name", "number", "maker"])
def test_what_is_no_optimizer_is_refused(mode, optimizer):
    with pytest.raises(ValueError, match=r"it must have init and update.*pass optax\.adam\(1e-3\)"):
        executor(mode, optimizer)


def test_a_type_error_of_the_optimizers_own_stays_what_it_is():
    def broken(update, state, params=None):
        raise TypeError("its own")

    with pytest.raises(TypeError, match="its own"):
        executor("streaming", optax.GradientTransformation(lambda _: (), broken)).init(net())


def still(params, batch):
    """A stack and layers, of which some pass no gradient on."""
    x, y = batch
    stop = jax.lax.stop_gradient
    for i, w in enumerate(params["layers"]):
        x = jnp.tanh(x @ (w if i == 1 else stop(w)))
    for i in range(2):
        x = jnp.tanh(x @ (params["stack"][i] if i else stop(params["stack"][i])))
    return jnp.mean((x @ params["last"] - y) ** 2)


@both
def test_parameters_without_gradient_stand_still_and_send_none(mode):
    rng = np.random.default_rng(0)
    sizes = {"layers": [(6, 6)] * 3, "stack": (2, 6, 6), "last": (6, 2)}
    params = jax.tree.map(lambda n: rng.normal(size=n), sizes, is_leaf=lambda x: type(x) is tuple)
    batch = rng.normal(size=(4, 6)), rng.normal(size=(4, 2))
    params, batch = jax.tree.map(np.float32, (params, batch))
    runs = wse.CS2(mode=mode).executor(still, params, batch, optax.adamw(0.1))
    state, _ = runs.train_step(runs.init(params), batch)
    updates, _ = optax.adamw(0.1).update(
        jax.grad(still)(params, batch), optax.adamw(0.1).init(params), params
    )
    known = optax.apply_updates(params, updates)
    for one, other in zip(jax.tree.leaves(state.params), jax.tree.leaves(known), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    if mode == "streaming":  # the pipelined mode's stay on the wafer
        assert runs.run.total_bytes("gradient") == 4 * (6 * 6 + 6 * 6 + 6 * 2)
