"""Streamed training is plain training: the same loss, gradients and weights on every model."""

from collections import Counter

import jax
import numpy as np
import optax

import wse
from tests.wse.promises import moved


def size(tree) -> float:
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(x))) for x in jax.tree.leaves(tree))))


def apart(a, b) -> float:
    differences = jax.tree.map(lambda x, y: np.asarray(x, np.float64) - np.asarray(y), a, b)
    return size(differences)


def check_gradients(case, executor):
    value, gradients = case.plain
    streamed, found = executor.value_and_grad(case.params, case.batch)
    assert jax.tree.structure(streamed) == jax.tree.structure(value)
    assert apart(streamed, value) <= 1e-9 * (1 + size(value))
    assert jax.tree.structure(found) == jax.tree.structure(gradients)
    assert apart(found, gradients) <= 1e-9 * size(gradients)


def check_promises(case, executor):
    """Weights come in once per visit, gradients go out once, two layers' weights at a time."""
    found = moved(executor, case.params)
    assert found["weights_in"] == found["gradients_out"] == 1
    assert found["layers_held"] <= 2
    counts = Counter(event.layer for event in executor.run.events if event.kind == "broadcast")
    assert counts == {layer.name: 1 + layer.demand.any for layer in executor.graph.layers}


def make(case, *optimizer, **options):
    return wse.CS2().executor(
        case.loss, case.params, case.batch, *optimizer, has_aux=case.has_aux, **options
    )


def test_keeping_residuals_gives_the_gradients_of_plain_jax(kept_case):
    executor = make(kept_case, keep_residuals=True)
    check_gradients(kept_case, executor)
    check_promises(kept_case, executor)


def test_in_float32_it_rounds_no_worse_than_plain_jax(rounding_case):
    case, (_, exact) = rounding_case, rounding_case.plain
    with jax.enable_x64(False):
        params = jax.tree.map(lambda x: np.asarray(x, np.float32), case.params)
        _, gradients = case.program(params, case.batch)
        executor = wse.CS2().executor(case.loss, params, case.batch, has_aux=case.has_aux)
        _, found = executor.value_and_grad(params, case.batch)
    assert apart(found, exact) <= 3 * apart(gradients, exact) + 1e-12


def test_recomputing_gives_the_gradients_and_the_weights_of_ten_steps(case):
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.05, momentum=0.9))
    executor = make(case, optimizer)
    check_gradients(case, executor)
    check_promises(case, executor)

    @jax.jit
    def step(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    params, state = case.params, optimizer.init(case.params)
    streamed = executor.init(params)
    for _ in range(10):
        params, state = step(params, state, case.program(params, case.batch)[1])
        streamed, _ = executor.train_step(streamed, case.batch)
    assert streamed.step == 10
    assert apart(streamed.params, params) <= 1e-9 * size(params)
    assert apart(streamed.optimizer_state, state) <= 1e-9 * (1 + size(state))
