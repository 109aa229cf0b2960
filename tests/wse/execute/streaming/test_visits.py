"""Small neighbours share a visit: the same numbers, no more weights at a time, fewer programs."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from wse.execute.streaming.visits import visited
from wse.precision import CBFLOAT16, mixed

pytestmark = pytest.mark.usefixtures("quick_compilation")

SIZES = (6, 4, 5, 24, 20, 3, 4, 6)  # 20 x 24 is the largest; three before it and all after join


def net():
    draw = np.random.default_rng(0)
    return [{"w": draw.normal(size=s) / 2, "b": draw.normal(size=s[1])} for s in pairwise(SIZES)]


def loss(params, x):
    """A skip over several layers, a weight that is used twice, statistics of the batch."""
    kept, first = x, params[0]["w"]
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
        x = x - x.mean(0) / 2
    return jnp.mean((x + kept) ** 2) + jnp.mean(jnp.sin(kept @ first) ** 2)


def samples():
    return np.random.default_rng(1).normal(size=(8, SIZES[0]))


@pytest.mark.parametrize("keep", [False, True], ids=["recompute", "keep"])
def test_joined_layers_give_the_gradients_of_plain_jax(keep):
    with jax.enable_x64(True):
        value, wanted = jax.jit(jax.value_and_grad(loss))(net(), samples())
        executor = wse.CS2().executor(loss, net(), samples(), keep_residuals=keep)
        found, gradients = executor.value_and_grad(net(), samples())
        assert float(found) == pytest.approx(float(value), rel=1e-13)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14), gradients, wanted
        )
        graph = wse.trace(loss, net(), samples())
    assert len(executor.graph.layers) < len(graph.layers)
    largest = max(layer.work.weight_bytes for layer in graph.layers)
    assert executor.run.peak_weight_bytes <= 2 * largest
    assert executor.graph.forward_flops == graph.forward_flops
    assert executor.graph.backward_flops == graph.backward_flops


@pytest.mark.slow
def test_rounding_stays_at_the_borders_of_the_layers():
    with jax.enable_x64(True):
        run = mixed(loss, net(), samples(), CBFLOAT16)
        wanted = jax.jit(jax.grad(run))(net(), samples())
        executor = wse.CS2(precision="cbfloat16").executor(loss, net(), samples())
        _, gradients = executor.value_and_grad(net(), samples())
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), gradients, wanted)


def test_no_visit_is_larger_than_the_largest_layer_or_than_what_is_small():
    graph = wse.trace(loss, net(), samples())
    sizes = [layer.work.weight_bytes for layer in graph.layers]
    for most in (0, 300, 10**6):
        layers = visited(graph, most).layers
        joined = [x.work.weight_bytes for x in layers if " to " in x.name]
        assert all(size <= min(most, max(sizes)) for size in joined)
        assert sum(x.work.weight_bytes for x in layers) <= sum(sizes)
    assert visited(graph, 0) is graph


def test_equal_layers_are_visited_one_by_one():
    params = [{"w": np.eye(4)} for _ in range(5)]
    graph = wse.trace(loss_of_products, params, np.ones((2, 4)))
    assert visited(graph) is graph


def loss_of_products(params, x):
    for layer in params:
        x = x @ layer["w"]
    return jnp.sum(x)


def test_what_arrives_together_is_updated_together():
    executor = wse.CS2().executor(loss, net(), samples(), optax.adam(1e-2))
    state, _ = executor.train_step(executor.init(net()), samples())
    trained = [layer for layer in executor.graph.layers if layer.demand.any]
    updates = [event for event in executor.run.events if event.kind == "update"]
    assert len(updates) == len(trained)
    # A piece per visit, and one for the count of steps, which needs no gradient.
    assert len(state.update.pieces) == len(trained) + 1


def test_over_a_fabric_each_layer_is_visited_by_itself():
    executor = wse.CS2(fabric=(1, 2)).executor(loss, net(), samples())
    assert len(executor.graph.layers) == len(wse.trace(loss, net(), samples()).layers)


def stacked(params, x, turns):
    for i in turns:
        x = jnp.tanh(x @ params["w"][i] + params["b"][i])
    return jnp.mean(x**2)


def unstacked(params, x):
    for w, b in zip(params["w"], params["b"], strict=True):
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


STACKED = {
    "each": (lambda p, x: stacked(p, x, range(4)), ["w[0]", "w[1]", "w[2]", "w[3]"]),
    "unstacked": (unstacked, ["w[0]", "w[1]", "w[2]", "w[3]"]),
    "from the end": (lambda p, x: stacked(p, x, (-1, 0)), ["w[3]", "w[0]"]),
    "again": (lambda p, x: stacked(p, x, (2, 0, 2)), ["w[2]", "w[0]", "w[2]#2"]),
    "and all": (
        lambda p, x: stacked(p, x, range(2)) + jnp.sum(p["w"] ** 2),
        ["w[0]", "w[1]", "w"],
    ),
}


@pytest.mark.parametrize("name", [*STACKED])
def test_a_layer_of_a_stack_comes_alone(name):
    """`w[i]` at a fixed place was the whole stack, in one visit."""
    function, names = STACKED[name]
    draw = np.random.default_rng(2)
    params = {"w": draw.normal(size=(4, 5, 5)) / 2, "b": draw.normal(size=(4, 5))}
    x = draw.normal(size=(6, 5))
    assert [layer.name for layer in wse.trace(function, params, x).layers] == names
    with jax.enable_x64(True):
        wanted = jax.jit(jax.value_and_grad(function))(params, x)
        found = wse.CS2().executor(function, params, x).value_and_grad(params, x)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, wanted)
