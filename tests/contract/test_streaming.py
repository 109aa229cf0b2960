"""Streamed training is plain training: the same loss, gradients and weights on every model."""

import runpy
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import wse

MODELS = runpy.run_path(str(Path(__file__).with_name("models.py")))["MODELS"]


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """What is compared does not depend on how hard XLA tries."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(params=MODELS)
def case(request):
    with jax.enable_x64(True):
        yield MODELS[request.param]()


def size(tree) -> float:
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(x))) for x in jax.tree.leaves(tree))))


def apart(a, b) -> float:
    differences = jax.tree.map(lambda x, y: np.asarray(x, np.float64) - np.asarray(y), a, b)
    return size(differences)


def check_gradients(case, executor):
    value, gradients = jax.jit(jax.value_and_grad(case.loss, has_aux=case.has_aux))(
        case.params, case.batch
    )
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


def test_keeping_residuals_gives_the_gradients_of_plain_jax(case):
    executor = make(case, keep_residuals=True)
    check_gradients(case, executor)
    check_promises(case, executor)


def test_in_float32_it_rounds_no_worse_than_plain_jax(case):
    gradient = jax.jit(jax.grad(case.loss, has_aux=case.has_aux))
    exact = gradient(case.params, case.batch)
    exact = exact[0] if case.has_aux else exact
    with jax.enable_x64(False):
        params = jax.tree.map(lambda x: np.asarray(x, np.float32), case.params)
        gradients = gradient(params, case.batch)
        gradients = gradients[0] if case.has_aux else gradients
        executor = wse.CS2().executor(case.loss, params, case.batch, has_aux=case.has_aux)
        _, found = executor.value_and_grad(params, case.batch)
    assert apart(found, exact) <= 3 * apart(gradients, exact) + 1e-12


def test_recomputing_gives_the_gradients_and_the_weights_of_ten_steps(case):
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.05, momentum=0.9))
    executor = make(case, optimizer)
    check_gradients(case, executor)
    check_promises(case, executor)

    @jax.jit
    def step(params, state, batch):
        found = jax.grad(case.loss, has_aux=case.has_aux)(params, batch)
        updates, state = optimizer.update(found[0] if case.has_aux else found, state, params)
        return optax.apply_updates(params, updates), state

    params, state = case.params, optimizer.init(case.params)
    streamed = executor.init(params)
    for _ in range(10):
        params, state = step(params, state, case.batch)
        streamed, _ = executor.train_step(streamed, case.batch)
    assert streamed.step == 10
    assert apart(streamed.params, params) <= 1e-9 * size(params)
    assert apart(streamed.optimizer_state, state) <= 1e-9 * (1 + size(state))
