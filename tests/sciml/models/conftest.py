"""Nets with any weights, made without compiling; calls compiled for speed of compilation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

QUICK = {"xla_backend_optimization_level": 0}


@functools.cache
def structure(config, inputs, outputs, embed):
    method = config.embed if embed else config.build
    return nnx.split(nnx.eval_shape(lambda: method(inputs, outputs, rngs=nnx.Rngs(0))))


def drawn(leaf, rng, scale):
    fan_in = leaf.shape[-2] if leaf.ndim > 1 else 4
    return (scale * rng.normal(size=leaf.shape) / np.sqrt(fan_in)).astype(np.float32)


@pytest.fixture(scope="session")
def made():
    """`made(config, inputs, outputs, scale=1.0, embed=False)`: random weights, none zero."""

    def make(config, inputs, outputs, *, scale=1.0, embed=False):
        graph, state = structure(config, inputs, outputs, embed)
        rng = np.random.default_rng(0)
        return nnx.merge(graph, jax.tree.map(lambda leaf: drawn(leaf, rng, scale), state))

    return make


@pytest.fixture(scope="session")
def refining():
    """`refining(config)`: a net for wind with random weights, none zero."""

    def make(config):
        graph, state = nnx.split(nnx.eval_shape(lambda: config.build(nnx.Rngs(0))))
        rng = np.random.default_rng(0)
        return nnx.merge(
            graph, jax.tree.map(lambda leaf: jnp.asarray(drawn(leaf, rng, 0.5)), state)
        )

    return make


@pytest.fixture(scope="session")
def call():
    """`call(net, method, *arguments)`, compiled as one program; numbers are static."""

    def run(net, method, *arguments):
        graph, state = nnx.split(net)
        static = [a for a in arguments if isinstance(a, int)]
        arrays = [a for a in arguments if not isinstance(a, int)]

        def program(state, *arrays):
            return getattr(nnx.merge(graph, state), method)(*arrays, *static)

        return jax.jit(program, compiler_options=QUICK)(state, *arrays)

    return run


@pytest.fixture(scope="session")
def slope():
    """`slope(net, loss)`: the gradient of `loss(net)` with respect to the weights, as a net."""

    def run(net, loss):
        graph, state = nnx.split(net)
        program = jax.jit(jax.grad(lambda s: loss(nnx.merge(graph, s))), compiler_options=QUICK)
        return nnx.merge(graph, program(state))

    return run
