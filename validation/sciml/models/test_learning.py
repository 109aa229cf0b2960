"""Posterior heads learn what is known in closed form, and what has two modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.models import FlowMatching, Gaussian, SplineFlow
from sciml.train import Recipe, train

KEY = jax.random.key(0)


def kind(config):
    return type(config).__name__


def trained(config, y, x, epochs=30):
    make = lambda: nnx.state(config.build(x.shape[1], y.shape[1], rngs=nnx.Rngs(0)))  # noqa: E731
    graph = nnx.graphdef(
        nnx.eval_shape(lambda: config.build(x.shape[1], y.shape[1], rngs=nnx.Rngs(0)))
    )

    def loss(params, batch, key):
        return nnx.merge(graph, params).loss(*batch, key).mean()

    recipe = Recipe(batch=100, learning_rate=3e-3)
    found = train(loss, jax.jit(make)(), (y, x), recipe=recipe, epochs=epochs)
    return nnx.merge(graph, found.params)


def sampled(net, x, draws):
    graph, state = nnx.split(net)
    return jax.jit(lambda state, x: nnx.merge(graph, state).sample(KEY, x, draws))(state, x)


@pytest.mark.parametrize(
    "config",
    [Gaussian(width=16), SplineFlow(width=16, layers=2), FlowMatching(width=48, depth=2)],
    ids=kind,
)
def test_a_linear_gaussian_problem_is_learned(config):
    """y ~ N(0, 1), x = y + e, e ~ N(0, ½²): y | x ~ N(0.8 x, 0.2)."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(3000, 2)).astype(np.float32)
    x = (y + 0.5 * rng.normal(size=y.shape)).astype(np.float32)
    net = trained(config, jnp.asarray(y), jnp.asarray(x))
    seen = jnp.array([[1.0, -0.5]])
    draws = np.asarray(sampled(net, seen, 4000))[:, 0]
    np.testing.assert_allclose(draws.mean(axis=0), [0.8, -0.4], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), 0.2**0.5, atol=0.07)
    np.testing.assert_allclose(net.estimate(seen)[0], [0.8, -0.4], atol=0.12)


@pytest.mark.parametrize(
    "config", [SplineFlow(width=24), FlowMatching(width=64, depth=3)], ids=kind
)
def test_two_arcs_are_learned(config):
    """|x| is seen: x lies on one of two arcs, and nothing tells which."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(-1.2, 1.2, 4000)
    side = rng.choice([-1.0, 1.0], 4000)
    y = np.stack([side * (0.4 + np.cos(angle)), np.sin(angle)], axis=1).astype(np.float32)
    y += 0.05 * rng.normal(size=y.shape).astype(np.float32)
    x = np.zeros((4000, 1), np.float32)
    net = trained(config, jnp.asarray(y), jnp.asarray(x), epochs=40)
    draws = np.asarray(sampled(net, jnp.zeros((1, 1)), 3000))[:, 0]
    assert 0.4 < (draws[:, 0] > 0).mean() < 0.6
    radius = np.hypot(np.abs(draws[:, 0]) - 0.4, draws[:, 1])
    assert np.median(np.abs(radius - 1)) < 0.12
    middle = np.abs(draws[:, 0]) < 0.4
    assert middle.mean() < 0.1
