"""The loop: the same numbers however it is cut, and the optimizer that the recipe names."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sciml.studies.inverse.plain import PlainJax
from sciml.train import (
    InParts,
    Online,
    Recipe,
    Validation,
    loop,
    paper,
    train,
    width_scaled,
)
from sciml.train.executed import train_on
from sciml.train.optimizer import optimizer, step_size
from sciml.train.parts import in_parts

pytestmark = pytest.mark.usefixtures("quick_compilation")
RECIPE = Recipe(batch=8, learning_rate=0.05)


def problem(samples: int = 40):
    """A linear regression whose answer is known."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, 3)).astype(np.float32)
    weights = np.array([1.0, -2.0, 0.5], np.float32)
    return {"w": jnp.zeros(3)}, (jnp.asarray(x), jnp.asarray(x @ weights)), weights


def loss(params, batch, key):
    del key
    x, y = batch
    return jnp.mean(jnp.square(x @ params["w"] - y))


def noisy_loss(params, batch, key):
    x, y = batch
    return loss(params, (x + 0.1 * jax.random.normal(key, x.shape), y), key)


def cut(loss, parts):
    return loss if parts == 1 else InParts(loss, parts)


def test_finds_the_answer():
    params, data, weights = problem()
    trained = train(loss, params, data, recipe=RECIPE, epochs=300)
    np.testing.assert_allclose(trained.params["w"], weights, atol=1e-3)
    assert len(trained.loss) == 300
    assert trained.loss[-1] < 1e-6 < trained.loss[0]
    assert trained.train_s > 0
    np.testing.assert_array_equal(params["w"], 0)  # the caller's weights are untouched


@pytest.mark.parametrize("parts", [1, 4])
def test_equals_a_plain_loop(parts):
    params, data, _ = problem()
    trained = train(cut(loss, parts), params, data, recipe=RECIPE, epochs=3, seed=9)
    transform = optimizer(RECIPE, 3 * 5)
    state, expected = transform.init(params), []
    for epoch in range(3):
        shuffle, _ = jax.random.split(jax.random.fold_in(jax.random.key(9), epoch))
        rows = jax.random.permutation(shuffle, 40).reshape(5, 8)
        for step in rows:
            batch = jax.tree.map(lambda leaf, step=step: leaf[step], data)
            value, gradient = jax.value_and_grad(loss)(params, batch, None)
            change, state = transform.update(gradient, state, params)
            params = optax.apply_updates(params, change)
            expected.append(value)
    np.testing.assert_allclose(trained.params["w"], params["w"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trained.loss, np.reshape(expected, (3, 5)).mean(1), rtol=1e-5)


@pytest.mark.parametrize("parts", [1, 4])
def test_same_seed_same_bytes_however_calls_are_cut(monkeypatch, parts):
    params, data, _ = problem()
    options = {"recipe": RECIPE, "epochs": 20}
    whole = train(cut(noisy_loss, parts), params, data, seed=1, **options)
    monkeypatch.setattr(loop, "CALL_S", 0.0)  # one epoch a call
    monkeypatch.setattr("sciml._session.usable_cores", lambda: 1)
    single = train(cut(noisy_loss, parts), params, data, seed=1, **options)
    other = train(cut(noisy_loss, parts), params, data, seed=2, **options)
    np.testing.assert_array_equal(whole.params["w"], single.params["w"])
    np.testing.assert_array_equal(whole.loss, single.loss)
    assert not np.array_equal(whole.params["w"], other.params["w"])


class Killed(Exception):
    pass


@pytest.mark.parametrize("parts", [1, 2])
def test_an_interrupted_run_goes_on_to_the_same_end(tmp_path, monkeypatch, parts):
    params, data, _ = problem()
    score = Validation(lambda p: loss(p, data, None), every=4)
    arguments = {"recipe": RECIPE, "epochs": 20, "seed": 1, "validate": score}
    noisy = cut(noisy_loss, parts)
    whole = train(noisy, params, data, **arguments)
    monkeypatch.setattr(loop, "CALL_S", 0.0)
    monkeypatch.setattr(loop, "CHECKPOINT_S", 0.0)
    file = tmp_path / "run.checkpoint"
    saved = loop.saved

    def dies(progress, *options):
        progress = saved(progress, *options)
        if len(progress.loss) == 11:
            raise Killed
        return progress

    monkeypatch.setattr(loop, "saved", dies)
    with pytest.raises(Killed):
        train(noisy, params, data, **arguments, checkpoint=file)
    assert file.exists()
    monkeypatch.setattr(loop, "saved", saved)
    resumed = train(noisy, params, data, **arguments, checkpoint=file)
    np.testing.assert_array_equal(resumed.params["w"], whole.params["w"])
    np.testing.assert_array_equal(resumed.loss, whole.loss)
    np.testing.assert_array_equal(resumed.validation, whole.validation)


def test_the_best_weights_are_kept():
    params, data, _ = problem()
    scores = iter([3.0, 1.0, 2.0, 5.0])
    seen = []

    def score(current):
        seen.append(np.asarray(current["w"]).copy())
        return next(scores)

    trained = train(
        loss, params, data, recipe=RECIPE, epochs=20, validate=Validation(score, every=5)
    )
    np.testing.assert_array_equal(trained.params["w"], seen[1])
    assert trained.validated.tolist() == [5, 10, 15, 20]
    assert trained.validation.tolist() == [3.0, 1.0, 2.0, 5.0]


def test_step_sizes():
    recipe = Recipe(learning_rate=1.0, warmup=0.1, final=0.01)
    steps = np.array([step_size(recipe, 100)(i) for i in range(100)])
    assert steps[10] == pytest.approx(1.0)
    assert np.all(np.diff(steps[:11]) > 0)
    assert np.all(np.diff(steps[10:]) < 0)
    assert steps[-1] == pytest.approx(0.01, abs=1e-3)
    assert float(step_size(paper(), 100)(50)) == pytest.approx(0.002)


def test_step_size_falls_with_width():
    rates = [width_scaled(width).learning_rate for width in (32, 128, 512, 2048)]
    assert rates[0] == pytest.approx(2e-3)
    assert rates[2] == pytest.approx(3e-4, rel=0.05)
    assert rates == sorted(rates, reverse=True)


def test_clipping_bounds_the_gradient():
    params, data, _ = problem()
    steep = lambda p, b, k: 1e6 * loss(p, b, k)  # noqa: E731
    recipe = RECIPE.replace(clip=1e-3, schedule="constant")
    trained = train(steep, params, data, recipe=recipe, epochs=1)
    # Adam's step is about the step size whatever the gradient; clipped or not it stays finite.
    assert np.abs(trained.params["w"]).max() < 5 * 0.05 * 1.5


def test_a_loss_that_explodes_is_an_error():
    params, data, _ = problem()
    bad = lambda p, b, k: loss(p, b, k) / 0.0  # noqa: E731
    with pytest.raises(FloatingPointError, match="epoch 0; it must stay finite"):
        train(bad, params, data, recipe=RECIPE, epochs=3)


@pytest.mark.parametrize(
    ("change", "epochs", "error"),
    [
        ({"batch": 41}, 1, "40 samples"),
        ({}, 0, "at least 1"),
    ],
)
def test_bad_sizes_are_refused(change, epochs, error):
    params, data, _ = problem()
    with pytest.raises(ValueError, match=error):
        train(loss, params, data, recipe=RECIPE.replace(**change), epochs=epochs)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    "change",
    [
        {"batch": 0},
        {"learning_rate": -1.0},
        {"schedule": "linear"},
        {"warmup": 1.0},
        {"final": 2.0},
        {"clip": 0.0},
        {"precision": "float16"},
    ],
)
def test_bad_recipes_are_refused(change):
    with pytest.raises(ValueError, match=f"Recipe.{next(iter(change))} is"):
        dataclasses.replace(RECIPE, **change)


def test_parts_that_do_not_divide_the_batch_are_refused():
    params, data, _ = problem()
    with pytest.raises(ValueError, match=r"parts is 3; it must divide the batch of 8: .*batch=6"):
        train(InParts(loss, 3), params, data, recipe=RECIPE, epochs=1)
    with pytest.raises(ValueError, match="at least 1"):
        InParts(loss, 0)


def test_unequal_lengths_are_refused():
    params, (x, y), _ = problem()
    with pytest.raises(ValueError, match="must be equal"):
        train(loss, params, (x, y[:-1]), recipe=RECIPE, epochs=1)


def test_online_data_are_drawn_anew_for_every_epoch():
    truth = jnp.array([[2.0], [-1.0]])

    def draw(key):
        x = jax.random.normal(key, (64, 2))
        return x, x @ truth

    seen = lambda params, batch, key: jnp.mean((batch[0] @ params["w"] - batch[1]) ** 2)  # noqa: E731
    recipe = Recipe(batch=16, learning_rate=0.05)
    start = {"w": jnp.zeros((2, 1))}
    trained = train(seen, start, Online(64, draw), recipe=recipe, epochs=60)
    np.testing.assert_allclose(trained.params["w"], truth, atol=1e-2)
    still = Recipe(batch=16, learning_rate=1e-12)
    losses = train(seen, start, Online(64, draw), recipe=still, epochs=4).loss
    assert len(np.unique(losses)) == 4


@pytest.mark.parametrize("parts", [1, 5])
def test_samples_taken_in_parts_have_noise_of_their_own(parts):
    params, data, _ = problem()
    recipe = Recipe(batch=40, learning_rate=0.05)
    trained = train(InParts(noisy_loss, parts), params, data, recipe=recipe, epochs=1)
    key = jax.random.split(jax.random.split(jax.random.fold_in(jax.random.key(0), 0))[1], 1)[0]
    values = [
        noisy_loss(params, tuple(x[i : i + 1] for x in data), jax.random.fold_in(key, i))
        for i in range(40)
    ]
    np.testing.assert_allclose(trained.loss, np.mean(values), rtol=1e-6)


def test_only_large_updates_of_nets_that_are_not_large_are_cut(monkeypatch):
    def flops(params, batch, key):
        return jnp.sum(jnp.tanh(batch @ params["w"]))

    def chosen(width, rows, batch=12):
        samples = jax.ShapeDtypeStruct((100, rows, width), jnp.float32)
        found = in_parts(flops, {"w": jnp.zeros((width, width))}, samples, batch)
        return found.parts if isinstance(found, InParts) else 0

    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert chosen(500, 400) == 4  # 3.6 GFLOP forward and for the weights' gradient
    assert chosen(500, 400, batch=18) == 3
    assert chosen(500, 400, batch=17) == 1
    assert chosen(500, 100) == 0
    assert chosen(2500, 400) == 0  # six million weights
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert chosen(500, 400) == 0


def test_online_data_in_parts_are_those_of_one_program():
    data = Online(64, lambda key: (jax.random.normal(key, (64, 3)), jnp.zeros(64)))
    params, recipe = {"w": jnp.ones(3)}, Recipe(batch=16, learning_rate=0.05)
    whole, parted = (
        train(cut(loss, n), params, data, recipe=recipe, epochs=4).loss for n in (1, 4)
    )
    np.testing.assert_allclose(whole, parted, rtol=1e-5)


def test_what_online_data_are_drawn_from_is_an_argument_on_every_loop():
    def draw(key, truth):
        inputs = jax.random.normal(key, (64, 2))
        return inputs, inputs @ truth

    data = Online(64, draw, (jnp.array([[2.0], [-1.0]]),))
    start = {"w": jnp.zeros((2, 1))}
    error = lambda params, batch: jnp.mean((batch[0] @ params["w"] - batch[1]) ** 2)  # noqa: E731
    options = {"recipe": Recipe(batch=16, learning_rate=0.05), "epochs": 3}
    fused = train(lambda p, batch, _: error(p, batch), start, data, **options)
    stepped = train_on(PlainJax(), error, start, data, lambda batch, _: batch, **options)
    np.testing.assert_allclose(fused.params["w"], stepped.params["w"], rtol=1e-5)
    np.testing.assert_allclose(fused.loss, stepped.loss, rtol=1e-5)


def test_patience_ends_a_training_that_only_gets_worse():
    params, data, _ = problem()
    start = np.asarray(params["w"])
    away = Validation(lambda p: jnp.abs(p["w"] - start).sum(), every=2, patience=3)
    trained = train(loss, params, data, recipe=RECIPE, epochs=100, validate=away)
    assert list(trained.validated) == [2, 4, 6, 8]
    assert len(trained.loss) == 8
    with pytest.raises(ValueError, match=r"Validation\.patience is 0"):
        Validation(away.score, patience=0)


def test_online_needs_samples():
    with pytest.raises(ValueError, match=r"Online\.samples is 0"):
        Online(0, lambda key: key)


def test_weight_decay_shrinks_matrices_alone():
    params = {"kernel": jnp.ones((3, 2)), "bias": jnp.ones(2), "stacked_bias": jnp.ones((4, 2))}
    transform = optimizer(Recipe(learning_rate=0.1, schedule="constant", weight_decay=0.5), 10)
    nothing = jax.tree.map(jnp.zeros_like, params)
    change, _ = transform.update(nothing, transform.init(params), params)
    np.testing.assert_allclose(change["kernel"], -0.05, rtol=1e-6)
    np.testing.assert_allclose(change["bias"], 0.0)
    np.testing.assert_allclose(change["stacked_bias"], 0.0)
