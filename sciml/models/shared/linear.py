"""Linear layers by how they start."""

import jax
from flax import nnx


def linear(inputs: int, outputs: int, rngs: nnx.Rngs, dot_general=None) -> nnx.Linear:
    """Return a Glorot-uniform layer."""
    return nnx.Linear(
        inputs,
        outputs,
        kernel_init=jax.nn.initializers.glorot_uniform(),
        rngs=rngs,
        dot_general=dot_general or jax.lax.dot_general,
    )


def zero_linear(inputs: int, outputs: int, rngs: nnx.Rngs) -> nnx.Linear:
    """Return a layer that starts at zero."""
    return nnx.Linear(inputs, outputs, kernel_init=jax.nn.initializers.zeros, rngs=rngs)
