"""What a posterior head knows of the observation: an embedding's features, or all of it."""

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.linear import linear, zero_linear
from sciml.models.shared.presence import Inputs, Observed, flat, flat_size


class Context(nnx.Module):
    """observed ↦ `size` features: those of `embedding`, or the flattened observation."""

    def __init__(self, embedding: Any, inputs: Inputs, features: int, rngs, dot_general=None):
        """Draw the embedding's weights, if there is one."""
        self.size = flat_size(inputs, missing=False) if embedding is None else features
        self.net = embedding and embedding.embed(
            inputs, features, rngs=rngs, dot_general=dot_general
        )

    def __call__(self, observed: Observed) -> Float[Array, "batch feature"]:
        """Return the features."""
        return flat(observed, missing=False) if self.net is None else self.net(observed)


class Residual(nnx.Module):
    """A net of `depth` layers h ← h + swish(W h + b), whose last layer starts at zero."""

    def __init__(self, inputs: int, width: int, depth: int, outputs: int, rngs, dot_general=None):
        """Draw the weights."""
        self.first = linear(inputs, width, rngs, dot_general)
        self.layers = nnx.List(linear(width, width, rngs, dot_general) for _ in range(depth))
        self.last = zero_linear(width, outputs, rngs)

    def __call__(self, x: Float[Array, "*batch feature"]) -> Float[Array, "*batch output"]:
        """Return the outputs."""
        h = nnx.swish(self.first(x))
        for layer in self.layers:
            h = h + nnx.swish(layer(h))
        return self.last(h)


def standard_normal(z: Float[Array, "*batch param"]) -> Float[Array, "*batch"]:
    """Return log N(z; 0, 1)."""
    return -0.5 * (jnp.square(z) + jnp.log(2 * jnp.pi)).sum(axis=-1)


def missing_of(config: Any) -> bool:
    """Tell whether a configuration accepts NaN as missing: whether its embedding does."""
    return config.embedding is not None and config.embedding.missing


def check_embedding(config: Any) -> None:
    """Refuse an embedding that cannot be one.

    Raises:
        TypeError: it has no `embed`.
    """
    if config.embedding is not None and getattr(config.embedding, "embed", None) is None:
        raise TypeError(
            f"embedding is {config.embedding!r}; it must be None or a configuration that can end "
            "linear: pass embedding=Dense(width=128, depth=2), Convolutional() or Attention()"
        )
