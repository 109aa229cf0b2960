import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax import lax

from sciml.train import Recipe, train
from sciml.train.epoch import Carry, epochs_program
from sciml.train.optimizer import clip_by_norm, optimizer, squared_norm, whole_gradient
from sciml.train.precision import dot_general, mixed_product


def random(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def error(found, exact) -> float:
    return float(np.abs(np.asarray(found, np.float64) - exact).max() / np.abs(exact).max())


def test_float32_is_the_plain_product():
    assert dot_general("float32") is lax.dot_general


@pytest.mark.parametrize("shape", [(100, 64, 48), (1, 7, 3), (33, 1000, 2)])
def test_mixed_product_and_gradients_against_float64(shape):
    rows, channels, units = shape
    x, w, g = random(0, rows, channels), random(1, channels, units), random(2, rows, units)
    y, pull = jax.vjp(mixed_product, x, w)
    dx, dw = pull(g)
    x64, w64, g64 = (np.asarray(a, np.float64) for a in (x, w, g))
    assert y.dtype == dx.dtype == dw.dtype == jnp.float32
    for found, exact in [(y, x64 @ w64), (dx, g64 @ w64.T), (dw, x64.T @ g64)]:
        assert error(found, exact) < 2**-7


def test_mixed_product_sums_in_float32():
    ones = jnp.ones((1, 4096))
    assert mixed_product(ones, ones.T) == 4096  # sums in bfloat16 would stop at 256


def test_a_layer_takes_the_mixed_product():
    plain = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    mixed = nnx.Linear(16, 8, rngs=nnx.Rngs(0), dot_general=dot_general("bfloat16"))
    for x in (random(0, 5, 16), random(1, 16), random(2, 3, 5, 16)):
        assert error(mixed(x), np.asarray(plain(x), np.float64)) < 2**-7


def test_the_mixed_product_batches():
    x, w = random(0, 4, 5, 16), random(1, 16, 8)
    each = jax.vmap(mixed_product, (0, None))(x, w)
    np.testing.assert_allclose(each[2], mixed_product(x[2], w), rtol=1e-6)


def test_other_products_are_refused():
    with pytest.raises(ValueError, match="precision is 'float16'"):
        dot_general("float16")
    x, w = random(0, 3, 4), random(1, 3, 4)
    with pytest.raises(ValueError, match="contracts the last axis"):
        dot_general("bfloat16")(x, w, (((0,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="takes none"):
        dot_general("bfloat16")(x, w.T, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int8)


def tree(seed: int, size: float = 1.0):
    shapes = {"w": (30, 20), "b": (20,), "kernel": (3, 3, 4, 5), "scalar": ()}
    return {name: size * random(seed + i, *s) for i, (name, s) in enumerate(shapes.items())}


def assert_close(found, expected, rtol: float):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol), found, expected)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_clipping_is_that_of_optax(size):
    gradient = tree(0, size)
    ours, theirs = clip_by_norm(1.0), optax.clip_by_global_norm(1.0)
    found, _ = ours.update(gradient, ours.init(gradient))
    expected, _ = theirs.update(gradient, theirs.init(gradient))
    assert_close(found, expected, rtol=1e-5)


def test_clipping_a_zero_gradient_keeps_it():
    found, _ = clip_by_norm(1.0).update({"w": jnp.zeros((2, 2))}, optax.EmptyState())
    assert (found["w"] == 0).all()


def test_clipping_spreads_nan():
    found, _ = clip_by_norm(1.0).update({"w": jnp.array([[jnp.nan, 1.0]])}, optax.EmptyState())
    assert jnp.isnan(found["w"]).all()


def test_squared_norm_counts_every_number_once():
    expected = sum(np.square(np.asarray(leaf, np.float64)).sum() for leaf in tree(3).values())
    assert float(squared_norm(tree(3))) == pytest.approx(expected, rel=1e-5)


def test_waiting_changes_no_large_gradient():
    gradient = {"w": random(0, 1024, 1024), "b": random(1, 1024), "none": jnp.zeros((0, 3))}
    found, _ = jax.jit(whole_gradient().update)(gradient, optax.EmptyState())
    jax.tree.map(np.testing.assert_array_equal, found, gradient)


def test_a_large_net_is_updated_in_place():
    def loss(params, batch, key):
        return jnp.mean((jnp.tanh(batch @ params["a"]) @ params["b"]) ** 2)

    params = {name: random(0, 1024, 1024) for name in "ab"}
    transform = optimizer(Recipe(batch=8, clip=None), 2)
    carry, one = Carry(params, transform.init(params)), jnp.int32(1)
    data = random(1, 16, 1024)
    run = epochs_program(loss, transform, 8).lower(carry, data, jax.random.key(0), one, one)
    assert not re.search(r"= f32\[1024,1024\]\S* copy\(", run.compile().as_text())


@pytest.mark.parametrize("clip", [None, 0.5])
def test_updates_are_those_of_plain_optax_adam(clip):
    recipe = Recipe(learning_rate=1e-2, schedule="constant", clip=clip)
    plain = optax.adam(1e-2)
    if clip is not None:
        plain = optax.chain(optax.clip_by_global_norm(clip), plain)
    ours = optimizer(recipe, 20)
    found, expected = (tree(0), ours.init(tree(0))), (tree(0), plain.init(tree(0)))
    for step in range(20):
        found, expected = (
            (optax.apply_updates(params, change), state)
            for (params, (change, state)) in (
                (found[0], ours.update(tree(step), found[1])),
                (expected[0], plain.update(tree(step), expected[1])),
            )
        )
    assert_close(found[0], expected[0], rtol=1e-4)


def line(params, batch, key):
    x, y = batch
    return jnp.mean((x @ params["w"] - y) ** 2)


def plain_training(params, data, epochs: int, rate: float):
    """Gradients by plain JAX, updates by plain optax, one call each."""
    adam = optax.adam(rate)
    state = adam.init(params)
    for _ in range(epochs):
        change, state = adam.update(jax.grad(line)(params, data, None), state)
        params = optax.apply_updates(params, change)
    return params


@pytest.mark.parametrize("samples", [1, 64])
def test_a_batch_of_all_samples_trains_as_plain_jax_does(samples):
    data, params = (random(0, samples, 5), random(1, samples)), {"w": random(2, 5)}
    recipe = Recipe(batch=samples, learning_rate=0.1, schedule="constant", clip=None)
    trained = train(line, params, data, recipe=recipe, epochs=30)
    assert_close(trained.params, plain_training(params, data, 30, 0.1), rtol=1e-3)


def test_batches_visit_every_sample_once_an_epoch():
    def only_bias(params, batch, key):
        return params["b"] * 0 + batch.mean()

    data = jnp.arange(60.0)
    recipe = Recipe(batch=20, schedule="constant")
    trained = train(only_bias, {"b": jnp.zeros(())}, data, recipe=recipe, epochs=3)
    np.testing.assert_allclose(trained.loss, 29.5, rtol=1e-6)


@pytest.mark.parametrize("batch", [20, 64])
def test_grouping_of_epochs_into_calls_changes_no_number(batch):
    data, transform = (random(0, 64, 5), random(1, 64)), optimizer(Recipe(batch=batch), 10)
    run, key = epochs_program(line, transform, batch), jax.random.key(0)

    def trained(*counts: int):
        params = {"w": random(2, 5)}
        carry, done = Carry(params, transform.init(params)), 0
        for count in counts:
            carry, _ = run(carry, data, key, jnp.int32(done), jnp.int32(count))
            done += count
        return carry.params["w"]

    np.testing.assert_array_equal(trained(7), trained(1, 4, 2))
