"""Models of the catalogue as Flax modules on shapes alone, to be traced and checked.

No weight is ever made: `nnx.eval_shape` gives the parameters' shapes, so a model of any size costs
only the time to trace it.
"""

# JAX and Flax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from wse.models.shapes import Transformer, entry


@dataclass(frozen=True)
class Traceable:
    """What `wse.trace`, `wse.check` and `wse.estimate` take: a loss, and shapes.

    Attributes:
        loss: `loss(params, batch)`.
        params: shapes of the parameters.
        batch: shapes of the batch.
    """

    loss: Callable[[Any, Any], Any]
    params: Any
    batch: Any


class Block(nnx.Module):
    """One block: attention, then two products, or three where gated; both added to what entered."""

    def __init__(self, shape: Transformer, rngs: nnx.Rngs) -> None:
        h, f, kv = shape.hidden_size, shape.filters, shape.keys
        qkv, out = shape.use_projection_bias_in_attention, shape.use_ffn_bias_in_attention
        ffn = shape.use_ffn_bias
        self.shape = nnx.static(shape)
        self.first = _norm(shape, rngs)
        self.qkv = nnx.Linear(h, h + 2 * kv, use_bias=qkv, rngs=rngs)
        self.attended = nnx.Linear(h, h, use_bias=out, rngs=rngs)
        if not shape.parallel:
            self.second = _norm(shape, rngs)
        self.up = nnx.Linear(h, f * (2 if shape.gated else 1), use_bias=ffn, rngs=rngs)
        self.down = nnx.Linear(f, h, use_bias=ffn, rngs=rngs)

    def __call__(self, x: Float[Array, "batch token feature"]) -> Array:
        """Both branches added to x, side by side where parallel."""
        shape = self.shape
        normed = self.first(x)
        attended = self.attended(self._attention(self.qkv(normed)))
        middle = x if shape.parallel else x + attended
        up = self.up(normed if shape.parallel else self.second(middle))
        if shape.gated:
            value, gate = jnp.split(up, 2, axis=-1)
            up = value * nnx.silu(gate)
        else:
            up = nnx.gelu(up)
        return middle + self.down(up) + (attended if shape.parallel else 0)

    def _attention(self, qkv: Float[Array, "batch token feature"]) -> Array:
        shape = self.shape
        width = shape.hidden_size // shape.num_heads
        parts = jnp.split(qkv, [shape.hidden_size, shape.hidden_size + shape.keys], axis=-1)
        q, k, v = (part.reshape(*part.shape[:2], -1, width) for part in parts)
        causal = not shape.pooled  # models with a pooled token look both ways
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal).reshape(
            *qkv.shape[:2], shape.hidden_size
        )


class Ends(nnx.Module):
    """What stands around the blocks: embedding, norm, and a head of its own or the embedding."""

    def __init__(self, shape: Transformer, rngs: nnx.Rngs) -> None:
        h, v = shape.hidden_size, shape.vocab_size
        self.embedding = nnx.Embed(v, h, rngs=rngs)
        self.positions = nnx.Embed(shape.positions, h, rngs=rngs) if shape.positions else None
        self.norm = _norm(shape, rngs)
        head = nnx.Linear(h, v, use_bias=shape.use_bias_in_output, rngs=rngs)
        self.head = None if shape.share_embedding_weights else head

    def enter(self, tokens: Int[Array, "batch token"]) -> Array:
        """Tokens to features."""
        x = self.embedding(tokens)
        return x + self.positions(jnp.arange(tokens.shape[1])) if self.positions else x

    def leave(self, x: Float[Array, "batch token feature"]) -> Array:
        """Features to logits."""
        x = self.norm(x)
        return self.head(x) if self.head else self.embedding.attend(x)


def traceable(name: str, batch: int = 1, **changes: Any) -> Traceable:
    """A model by name or file as a loss and shapes.

    Args:
        name: as of `wse.workloads.get`, or a file as of `wse.workloads.read`: a transformer
            without a head's transform or token types, or a perceptron.
        batch: samples of the batch.
        **changes: of its shape.

    Raises:
        ValueError: an unknown name, or a family that is not built here.

    >>> sum(leaf.size for leaf in jax.tree.leaves(traceable("GPT-2-small").params))
    124439808
    """
    found = entry(name)
    shape = {**found.shape, **changes}
    if found.family == "perceptron":
        return chain([*shape["sizes"]], batch)
    kind = Transformer(**shape) if found.family == "transformer" else None
    if kind is None or kind.head_transform or kind.token_types or kind.embedding_norm:
        raise ValueError(
            f"{found.name} is a {found.family} that is known by its shapes only; Flax models are "
            "GPTs and perceptrons: pass your own loss to wse.check or wse.trace"
        )
    return language(kind, batch)


def language(shape: Transformer, batch: int = 1) -> Traceable:
    """A transformer with the mean cross entropy of its tokens as loss."""
    ends, outside = _shapes(lambda: Ends(shape, nnx.Rngs(0)))
    block, inside = _shapes(lambda: Block(shape, nnx.Rngs(0)))
    # Blocks are alike: the shapes of one are those of all.
    params = {"ends": outside, "blocks": [inside] * shape.num_hidden_layers}

    def loss(params: Any, tokens: Int[Array, "batch token"]) -> Any:
        around: Any = nnx.merge(ends, params["ends"])
        x = around.enter(tokens)
        for weights in params["blocks"]:
            one: Any = nnx.merge(block, weights)
            x = one(x)
        words = optax.softmax_cross_entropy_with_integer_labels(around.leave(x), tokens)
        return jnp.mean(words)

    tokens = jax.ShapeDtypeStruct((batch, shape.max_sequence_length), jnp.int32)
    return Traceable(loss, params, tokens)


def _shapes(make: Callable[[], nnx.Module]) -> tuple[Any, Any]:
    structure, params = nnx.split(nnx.eval_shape(make), nnx.Param)
    return structure, params


def chain(sizes: list[int], batch: int) -> Traceable:
    """A perceptron with its mean squared error as loss."""
    structure, params = _shapes(lambda: _stack(sizes, nnx.Rngs(0)))

    def loss(params: Any, samples: tuple[Array, Array]) -> Any:
        x, y = samples
        layers: Any = nnx.merge(structure, params)
        *hidden, last = layers
        for layer in hidden:
            x = nnx.relu(layer(x))
        return jnp.mean((last(x) - y) ** 2)

    samples = (
        jax.ShapeDtypeStruct((batch, sizes[0]), jnp.float32),
        jax.ShapeDtypeStruct((batch, sizes[-1]), jnp.float32),
    )
    return Traceable(loss, params, samples)


def _stack(sizes: list[int], rngs: nnx.Rngs) -> nnx.Module:
    return nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))


def _norm(shape: Transformer, rngs: nnx.Rngs) -> nnx.Module:
    kind = nnx.RMSNorm if shape.norm == "rms" else nnx.LayerNorm
    return kind(shape.hidden_size, rngs=rngs)
