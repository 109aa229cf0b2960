"""Linear layers by how they start."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Key

from sciml._random import flat


def glorot(
    key: Key[Array, ""], shape: tuple[int, ...], dtype: Any = jnp.float32, _: Any = None
) -> Array:
    """Return weights U(−a, a), a = √(6 / (inputs + outputs)), of a layer or a convolution.

    Source: Glorot and Bengio, AISTATS 2010. The numbers are those of JAX's `glorot_uniform`.
    """
    seen = math.prod(shape[:-2])
    scale = math.sqrt(6 / (seen * (shape[-2] + shape[-1])))
    return scale * flat(jax.random.uniform, key, shape, dtype, -1)


def linear(inputs: int, outputs: int, rngs: nnx.Rngs, dot_general=None) -> nnx.Linear:
    """Return a Glorot-uniform layer."""
    return nnx.Linear(
        inputs,
        outputs,
        kernel_init=glorot,
        rngs=rngs,
        dot_general=dot_general or jax.lax.dot_general,
    )


def zero_linear(inputs: int, outputs: int, rngs: nnx.Rngs) -> nnx.Linear:
    """Return a layer that starts at zero."""
    return nnx.Linear(inputs, outputs, kernel_init=jax.nn.initializers.zeros, rngs=rngs)
