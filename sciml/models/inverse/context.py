"""What posterior heads share: what they know of the observation, and how they are trained."""

from abc import abstractmethod
from typing import Any, ClassVar

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.shared.linear import linear, zero_linear
from sciml.models.shared.presence import Inputs, Observed, flat, flat_size
from sciml.models.shared.sizes import check_sizes
from sciml.train.recipe import Recipe

Targets = Float[Array, "batch param"]
Draws = Float[Array, "draw batch param"]


class Head:
    """A configuration of a posterior, with an `embedding` of the observation or None."""

    targets: ClassVar[str] = "unconstrained"
    least: ClassVar[dict[str, int]] = {"width": 1, "depth": 1}
    embedding: Any

    def __post_init__(self):
        """Refuse sizes that are too small, and an embedding that cannot be one."""
        check_sizes(self, **self.least)
        if self.embedding is not None and getattr(self.embedding, "embed", None) is None:
            raise TypeError(
                f"embedding is {self.embedding!r}; it must be None or a configuration that can end "
                "linear: pass embedding=Dense(width=128, depth=2), Convolutional() or Attention()"
            )

    @property
    def missing(self) -> bool:
        """Whether NaN is accepted as missing: whether the embedding does."""
        return self.embedding is not None and self.embedding.missing

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well."""
        return Recipe(batch=100, learning_rate=1e-3)


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


class MaximumLikelihood(nnx.Module):
    """A net with an exact log p(y | x), whose loss is −log p(y | x)."""

    @abstractmethod
    def log_prob(self, targets: Targets, observed: Observed) -> Float[Array, " batch"]:
        """Return log p(targets | observed)."""

    def loss(
        self, targets: Targets, observed: Observed, key: Key[Array, ""] | None = None
    ) -> Float[Array, " batch"]:
        """Return −log p(targets | observed); no draw is needed, so `key` is not used."""
        del key
        return -self.log_prob(targets, observed)
