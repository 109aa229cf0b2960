"""How much longer kernels take inside a training step than alone, found on six small steps.

Alone, a kernel meets its operands in the cache and both threads ready. In a step the cache holds
what came before, and threads wait for each other between kernels. So a few small steps, none of
them a model of the catalogue, are run, and one factor for each kind of kernel is fitted to them.
"""

# JAX, optax and SciPy annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm.auto import tqdm

from wse.computer.measure import seconds
from wse.computer.rates import KINDS

Step = tuple[Callable[[Any, Any], Any], Any, Any]
RIDGE = 0.1  # assumed: weight of the prior belief that a factor is 1, beside a step's weight of 1
LEAST, MOST = 0.5, 4.0  # assumed: factors beyond are an accident of a busy computer
OPTIMIZER = optax.adam(1e-3)
SPEC = ("NHWC", "HWIO", "NHWC")


def in_step(by_kind: Callable[[Step, Any], Mapping[str, float]]) -> tuple[float, ...]:
    """Return the factors of `KINDS` that fit the steps best.

    With p the predicted seconds of each kind and t the measured ones of a step less the call's,

        minimise Σ_steps (Σ_kinds f p / t − 1)² + RIDGE² Σ_kinds (f − 1)²,  LEAST ≤ f ≤ MOST

    Args:
        by_kind: from a step and its optimizer to predicted seconds of each kind, and of the "call".
    """
    from scipy.optimize import lsq_linear

    rows: list[list[float]] = []
    for step in tqdm([*steps()], unit="step", leave=False, desc="small training steps"):
        predicted = by_kind(step, OPTIMIZER)
        left_s = max(clocked_s(step) - predicted["call"], 1e-9)
        rows.append([predicted[kind] / left_s for kind in KINDS])
    matrix = np.vstack([rows, RIDGE * np.eye(len(KINDS))])
    wanted = np.concatenate([np.ones(len(rows)), np.full(len(KINDS), RIDGE)])
    found: Any = lsq_linear(matrix, wanted, bounds=(LEAST, MOST))
    return tuple(float(x) for x in found.x)


def clocked_s(step: Step) -> float:
    """Least measured seconds of a step with its update, weights replaced in place."""
    loss, params, batch = step

    def whole(params: Any, state: Any, batch: Any) -> Any:
        change, state = OPTIMIZER.update(jax.grad(loss)(params, batch), state, params)
        return optax.apply_updates(params, change), state

    run: Any = jax.jit(whole, donate_argnums=(0, 1))
    carry: Any = jax.tree.map(jnp.array, (params, OPTIMIZER.init(params)))

    def once() -> Any:
        nonlocal carry
        carry = run(*carry, batch)
        return carry

    return seconds(once)


def steps() -> Iterator[Step]:
    """Yield small steps: perceptrons, convolutions, attention."""
    yield perceptron(width=192, depth=3, samples=384)
    yield perceptron(width=96, depth=5, samples=64)
    yield convolutions(channels=24, side=24, samples=8)
    yield convolutions(channels=12, side=40, samples=12)
    yield attention(width=96, tokens=64, samples=8)
    yield attention(width=48, tokens=32, samples=48)


def perceptron(width: int, depth: int, samples: int) -> Step:
    """Square layers with swish."""

    def loss(params: Any, x: Any) -> Any:
        for weight, bias in params:
            x = jax.nn.swish(x @ weight + bias)
        return jnp.mean(x**2)

    layer = (drawn(width, width), jnp.zeros(width))
    return loss, [layer] * depth, drawn(samples, width)


def convolutions(channels: int, side: int, samples: int, depth: int = 3) -> Step:
    """3 × 3 convolutions, each normalised over a sample and added to what entered."""

    def loss(params: Any, x: Any) -> Any:
        for kernel, scale in params:
            y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=SPEC)
            x = x + jax.nn.relu(normed(y, (1, 2, 3)) * scale)
        return jnp.mean(x**2)

    layer = (drawn(3, 3, channels, channels), jnp.ones(channels))
    return loss, [layer] * depth, drawn(samples, side, side, channels)


def attention(width: int, tokens: int, samples: int, heads: int = 4) -> Step:
    """One block: attention and a perceptron, both added to what entered."""

    def loss(params: Any, x: Any) -> Any:
        qkv = (normed(x, (-1,)) @ params["qkv"]).reshape(samples, tokens, 3, heads, -1)
        mixed = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2])
        x = x + mixed.reshape(samples, tokens, width) @ params["out"]
        x = x + jax.nn.gelu(normed(x, (-1,)) @ params["up"]) @ params["down"]
        return jnp.mean(x**2)

    shapes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}
    params = {name: drawn(n * width, m * width) for name, (n, m) in shapes.items()}
    return loss, params, drawn(samples, tokens, width)


def normed(x: Any, axes: tuple[int, ...]) -> Any:
    """Zero mean and unit variance over some axes."""
    x = x - x.mean(axes, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(axes, keepdims=True) + 1e-5)


def drawn(*shape: int) -> Any:
    """Normal numbers, small enough that sums of products stay near one."""
    draw = np.random.default_rng(0)
    return jnp.asarray(draw.normal(size=shape) / shape[0] ** 0.5, jnp.float32)
