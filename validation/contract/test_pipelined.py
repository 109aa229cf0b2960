"""Pipelined training is plain training: the same loss and gradients on models of every kind."""

import jax
import numpy as np
import optax
import pytest

import wse


def size(tree) -> float:
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(x))) for x in jax.tree.leaves(tree))))


def apart(a, b) -> float:
    return size(jax.tree.map(lambda x, y: np.asarray(x, np.float64) - np.asarray(y), a, b))


def test_parts_of_a_batch_give_the_gradients_of_the_whole(piped_case, request):
    case, name = piped_case, request.node.callspec.params["piped_case"]
    value, gradients = case.plain
    executor = wse.CS2(mode="pipelined").executor(
        case.loss, case.params, case.batch, has_aux=case.has_aux, micro_batches=4
    )
    found, ours = executor.value_and_grad(case.params, case.batch)
    assert jax.tree.structure(found) == jax.tree.structure(value)
    assert apart(found, value) <= 1e-9 * (1 + size(value))
    # "plain" casts its weights to float32, and so their gradients, part by part.
    bound = 1e-7 if name == "plain" else 1e-9
    assert apart(ours, gradients) <= bound * size(gradients)
    assert executor.flow.parts == 4
    weights = sum(x.nbytes for x in jax.tree.leaves(case.params))
    assert executor.run.peak_weight_bytes <= weights


@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
def test_an_inverse_map_trains_on_a_pipeline():
    import sciml
    from sciml.train.recipe import Recipe

    system = sciml.ode.fitzhugh_nagumo()
    data = sciml.simulate(system, samples=32, seed=0)
    model, options = sciml.models.Dense(width=8, depth=2), {"epochs": 2, "recipe": Recipe(batch=8)}
    plain = sciml.fit(model, data, **options)
    ours = sciml.fit(model, data, **options, executor=wse.CS2(mode="pipelined"))
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_a_pipelined_update_is_that_of_optax():
    draw = np.random.default_rng(0)
    params = {"a": draw.normal(size=(3, 3)), "b": draw.normal(size=3)}
    x = draw.normal(size=(4, 3))

    def loss(p, x):
        return ((x @ p["a"] + p["b"]) ** 2).mean()

    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2))
    with jax.enable_x64(True):
        executor = wse.CS2(mode="pipelined").executor(loss, params, x, optimizer)
        ours, state, plain = executor.init(params), optimizer.init(params), params
        for _ in range(10):
            ours, _ = executor.train_step(ours, x)
            updates, state = optimizer.update(jax.grad(loss)(plain, x), state, plain)
            plain = optax.apply_updates(plain, updates)
        assert apart(ours.params, plain) <= 1e-12
        assert apart(ours.optimizer_state, state) <= 1e-12
