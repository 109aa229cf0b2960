"""Streamed training is plain training: the same loss, gradients and weights on every model."""

from collections import Counter

import jax
import numpy as np
import optax

import wse


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
    graph, run = executor.graph, executor.run
    visits = [(layer, 1 + layer.demand.any) for layer in graph.layers]
    assert run.total_bytes("broadcast") == sum(n * x.work.weight_bytes for x, n in visits)
    counts = Counter(event.layer for event in run.events if event.kind == "broadcast")
    assert counts == {layer.name: n for layer, n in visits}
    pairs = [p for x in graph.layers for p in zip(x.weights, x.demand.weights, strict=True)]
    trained = {weight for weight, asked in pairs if asked}
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(case.params)]
    assert run.total_bytes("gradient") == sum(arrays[w.leaf][w.index].nbytes for w in trained)
    assert run.peak_weight_bytes <= 2 * max(layer.work.weight_bytes for layer in graph.layers)


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
