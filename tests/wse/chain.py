"""The net on which executors are tried: a chain of dense layers, as wide as its samples."""

import jax.numpy as jnp
import numpy as np


def loss(params, batch):
    """Mean square of what comes out less what was asked for."""
    x, y = batch
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x - y) ** 2)


def chain(width: int, depth: int, dtype: type = np.float64, biased: bool = True):
    """Draw the layers: products that keep the size of what enters, biases or none."""
    draw = np.random.default_rng(0)
    scale = np.sqrt(width)
    layers = [
        {"w": draw.normal(size=(width, width)) / scale, "b": draw.normal(size=width) / scale}
        for _ in range(depth)
    ]
    return [{"w": x["w"].astype(dtype), "b": (biased * x["b"]).astype(dtype)} for x in layers]


def pairs(width: int, count: int = 8, step: int = 0, dtype: type = np.float64):
    """Draw inputs and targets of a step."""
    draw = np.random.default_rng(step + 1)
    return tuple(draw.normal(size=(count, width)).astype(dtype) for _ in range(2))
