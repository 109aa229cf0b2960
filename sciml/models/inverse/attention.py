"""A small transformer over time, for long series and those with gaps."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float

from sciml.models.shared.linear import linear
from sciml.models.shared.presence import Inputs, Observed, series, shape
from sciml.models.shared.sizes import check_sizes
from sciml.train.recipe import Recipe

Tokens = Float[Array, "batch token unit"]


@dataclass(frozen=True)
class Attention:
    """Patches of the series are tokens; `depth` transformer layers; their mean; a sigmoid.

    The times are cut into at most `tokens` patches of equal length (1000 times and 50 tokens: 20
    times each), which keeps long series cheap. A token holds the values of all channels in its
    patch and sines and cosines of its place, which counts patches: times that differ from sample
    to sample are a mask (`missing`) on a grid that holds them all. Each layer is
    h ← h + attention(norm h), then h ← h + W swish(W′ norm h). With `missing`, NaN becomes 0 beside
    a channel of presence, and a patch of which nothing was observed takes part in nothing. With
    `ordered=False` the places are left out, so that any order of the patches gives the same: for
    repeated measurements (`tokens` is then their number).

    As an embedding (`embed`) it ends with the linear layer, without the sigmoid.

    Source: Vaswani et al., arXiv 1706.03762, with the norm inside the branches.

    Raises:
        ValueError: a size is not a positive whole number, or width is no multiple of heads.

    >>> Attention(missing=True)
    Attention(width=64, depth=2, heads=4, tokens=50, ordered=True, missing=True)
    """

    targets: ClassVar[str] = "unit"

    width: int = 64
    depth: int = 2
    heads: int = 4
    tokens: int = 50
    ordered: bool = True
    missing: bool = False

    def __post_init__(self):
        check_sizes(self, width=2, depth=1, heads=1, tokens=1)
        if self.width % self.heads or self.width % 2:
            raise ValueError(
                f"width is {self.width} with {self.heads} heads; it must be even and a multiple "
                f"of heads: pass Attention(width={2 * self.heads * 8}, heads={self.heads})"
            )

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None) -> "AttentionNet":
        """Make the module; `dot_general` replaces the products with matrices of weights."""
        return AttentionNet(self, inputs, outputs, rngs, dot_general)

    def embed(self, inputs: Inputs, features: int, *, rngs, dot_general=None) -> "AttentionNet":
        """Make the module that ends with a linear layer of `features` outputs."""
        return AttentionNet(self, inputs, features, rngs, dot_general, linear_end=True)

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well."""
        return Recipe(batch=100, learning_rate=1e-3, warmup=0.05)


class AttentionNet(nnx.Module):
    """See `Attention`."""

    def __init__(
        self,
        config: Attention,
        inputs: Inputs,
        outputs: int,
        rngs: nnx.Rngs,
        dot_general=None,
        *,
        linear_end: bool = False,
    ):
        time, channels = shape(inputs)
        self.missing, self.linear_end, self.ordered = config.missing, linear_end, config.ordered
        self.patch = math.ceil(time / config.tokens)
        seen = 2 * channels if config.missing else channels
        width = config.width
        self.entry = linear(self.patch * seen, width, rngs, dot_general)
        self.blocks = nnx.List(
            Block(width, config.heads, rngs, dot_general) for _ in range(config.depth)
        )
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.last = linear(width, outputs, rngs, dot_general)

    def __call__(self, x: Observed) -> Float[Array, "batch output"]:
        """Return the outputs, in (0, 1) unless the end is linear."""
        seen = jnp.isfinite(x) if self.missing else jnp.ones_like(x, bool)
        values = patches(series(x, self.missing), self.patch)
        present = patches(seen if seen.ndim == 3 else seen[..., None], self.patch).any(axis=2)
        h = self.entry(values)
        h = h + places(h.shape[1], h.shape[2]) if self.ordered else h
        for block in self.blocks:
            h = block(h, present)
        weights = present / jnp.maximum(present.sum(axis=1, keepdims=True), 1)
        y = self.last(jnp.einsum("bt,btu->bu", weights, self.norm(h)))
        return y if self.linear_end else nnx.sigmoid(y)


class Block(nnx.Module):
    """One layer: attention among the present tokens, then a net for each."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs, dot_general=None):
        self.heads = heads
        self.before, self.between = (nnx.LayerNorm(width, rngs=rngs) for _ in range(2))
        self.project = linear(width, 3 * width, rngs, dot_general)
        self.join = linear(width, width, rngs, dot_general)
        self.widen = linear(width, 2 * width, rngs, dot_general)
        self.narrow = linear(2 * width, width, rngs, dot_general)

    def __call__(self, h: Tokens, present: Bool[Array, "batch token"]) -> Tokens:
        """Return the tokens, changed."""
        q, k, v = jnp.split(self.project(self.before(h)), 3, axis=-1)
        split = (*h.shape[:2], self.heads, -1)
        mixed = jax.nn.dot_product_attention(
            q.reshape(split), k.reshape(split), v.reshape(split), mask=present[:, None, None, :]
        )
        h = h + self.join(mixed.reshape(h.shape))
        return h + self.narrow(nnx.swish(self.widen(self.between(h))))


def patches(x: Array, length: int) -> Array:
    """Return (batch, token, value): `length` times and all channels each, zeros at the end."""
    batch, time, channels = x.shape
    tokens = math.ceil(time / length)
    x = jnp.pad(x, ((0, 0), (0, tokens * length - time), (0, 0)))
    return x.reshape(batch, tokens, length * channels)


def places(tokens: int, width: int) -> Float[np.ndarray, "token unit"]:
    """Return sines and cosines of the place, of periods from 2π to 2π·tokens."""
    rates = (1.0 / max(tokens, 2)) ** np.linspace(0, 1, width // 2)
    angles = np.arange(tokens)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
