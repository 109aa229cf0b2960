"""What the outputs of a model are compared with, and how."""

# optax annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int


def worded(logits: Float[Array, "b s v"], labels: Int[Array, "b s"], weight: float = 0.0) -> Any:
    """The cross entropy of words; a label below 0 is not compared.

    Args:
        logits: of every token.
        labels: the word that should stand there.
        weight: of the sum over a sample's tokens; 0: the mean over all that are compared.
    """
    counted = labels >= 0
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels, 0))
    total = jnp.sum(jnp.where(counted, losses, 0.0))
    if weight:
        return total * weight / len(labels)
    return total / jnp.maximum(1, jnp.sum(counted))


def placed(said: Float[Array, "b *sides n"], labels: Array) -> Any:
    """The mean cross entropy of places; of one output, of the chance that it is there."""
    if said.shape[-1] > 1:
        return classed(said, labels)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(said[..., 0], labels))


def classed(logits: Float[Array, "*b c"], labels: Array) -> Any:
    """The mean cross entropy of classes."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))
