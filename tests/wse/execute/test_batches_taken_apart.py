"""Losses that take the batch apart: plain JAX's numbers on several devices, barriers elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from tests.wse.devices import run_on_8_devices

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.slow
def test_samples_taken_apart_are_right_on_several_devices():
    """12 or 20 samples on four devices are an odd number on each: XLA's partitioner errs there.

    Or it ends the process, where samples lie along another axis than the first.
    """
    printed = run_on_8_devices(
        """
        import jax, jax.numpy as jnp, numpy as np, wse
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_disable_most_optimizations", True)
        draw = np.random.default_rng(0)
        params = {"a": draw.normal(size=(6, 8)), "b": draw.normal(size=(8, 12))}
        zero = np.zeros(())

        def strided(x): return x[::2]
        def inside(x): return jax.lax.pad(x, zero, [(0, 0, 1), (0, 0, 0)])[1:]
        nested = jax.checkpoint(lambda x: jnp.tanh(x[1::3]))
        folded = lambda x: jnp.concatenate([x, -x])[::-2]

        def moved(x): return jnp.sort(x.T[:, :-3], axis=1).T
        def joined(x):
            rows = jnp.concatenate([x.T, x.T[:, :3]], axis=1)
            return jax.lax.scan(lambda c, row: (c + row[0], row[::-1] + c), 0.0, rows)[1].T
        def behind(x): return jnp.cumsum(jnp.stack([x, -x])[:, 1:], axis=1)[0]

        for kind in (strided, inside, nested, folded, moved, joined, behind):
            def loss(p, x):
                return jnp.mean((kind(jnp.tanh(x @ p["a"])) @ p["b"]) ** 2)
            for samples, keep in ((12, False), (20, True))[kind in (moved, behind) :]:
                batch = draw.normal(size=(samples, 6))
                plain = jax.value_and_grad(loss)(params, batch)
                executor = wse.CS2(systems=4).executor(loss, params, batch, keep_residuals=keep)
                found = executor.value_and_grad(params, batch)
                for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-10)
        print("equal")
        """
    )
    assert printed.split() == ["equal"]


def net(seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {"a": draw.normal(size=(6, 8)), "b": draw.normal(size=(8, 2))}


@pytest.mark.parametrize("error", [AssertionError, RuntimeError, IndexError])
def test_a_loss_that_knows_its_batch_runs_pipelined_in_one_piece(error, caplog):
    def loss(params, x):
        if x.shape != (12, 6):
            raise error
        return jnp.mean((jnp.tanh(x @ params["a"]) @ params["b"]) ** 2)

    params, batch = net(), np.random.default_rng(1).normal(size=(12, 6))
    executor = wse.CS2(mode="pipelined").executor(loss, params, batch, optax.sgd(0.1))
    value, gradients = executor.value_and_grad(params, batch)
    plain = jax.value_and_grad(loss)(params, batch)
    assert value == pytest.approx(float(plain[0]), rel=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradients, plain[1])
    assert f"one micro-batch: {error.__name__}" in caplog.text
    with pytest.raises(ValueError, match=r"pass micro_batches=1"):
        wse.CS2(mode="pipelined").executor(loss, params, batch, micro_batches=2).value_and_grad(
            params, batch
        )


def test_a_rule_that_refuses_some_arguments_is_a_barrier():
    @jax.custom_jvp
    def scaled(x, by):
        return x * by

    def rule(primals, tangents):
        if not isinstance(tangents[1], jax.custom_derivatives.SymbolicZero):
            raise RuntimeError("by cannot be moved")
        return scaled(*primals), tangents[0] * primals[1]

    scaled.defjvp(rule, symbolic_zeros=True)

    def loss(params, x):
        return jnp.mean((scaled(jnp.tanh(x @ params["a"]), 2 * np.ones(8)) @ params["b"]) ** 2)

    params, batch = net(), np.random.default_rng(1).normal(size=(12, 6))
    executor = wse.CS2(mode="pipelined").executor(loss, params, batch)
    _, gradients = executor.value_and_grad(params, batch)
    plain = jax.grad(loss)(params, batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradients, plain)


def test_a_rule_that_sees_what_moves_is_a_barrier():
    """As `equinox.filter_custom_vjp`, whose rule may differ from the one for all arguments.

    A trial of that rule raised, and JAX had forgotten the residuals of the real one afterwards.
    """

    @jax.custom_vjp
    def scaled(x, by):
        return jnp.tanh(x) * by.sum()

    def forward(x, by):
        if by.perturbed:
            raise RuntimeError("by cannot be moved")
        return scaled(x.value, by.value), (x.value, by.value)

    def backward(kept, cotangent):
        x, by = kept
        own = cotangent * (1 - jnp.tanh(x) ** 2) * by.sum()
        return own - own.mean(axis=0), jnp.zeros_like(by)  # coupled, for certain

    scaled.defvjp(forward, backward, symbolic_zeros=True)

    def loss(params, x):
        return jnp.mean((scaled(x @ params["a"], jnp.arange(3.0)) @ params["b"]) ** 2)

    params, batch = net(), np.random.default_rng(1).normal(size=(12, 6))
    executor = wse.CS2(mode="pipelined").executor(loss, params, batch)
    _, gradients = executor.value_and_grad(params, batch)
    plain = jax.grad(loss)(params, batch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), gradients, plain)
