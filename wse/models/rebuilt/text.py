"""Models of words: GPT and its kin, BERT and its kin."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from wse.models.rebuilt.blocks import (
    between,
    block,
    dropped,
    following,
    norm_shapes,
    positions_bias,
    stack_shapes,
)
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm
from wse.models.shapes.transformer import Transformer
from wse.models.zoo import Traceable


def stack(shape: Transformer, batch: int) -> Traceable:
    """One stack of blocks with its heads: the sum of the mean cross entropies of these."""
    h, v = shape.hidden_size, shape.vocab_size
    params: Tree = {
        "words": leaf(v, h),
        **position_shapes(shape),
        **({"types": leaf(shape.token_types, h)} if shape.token_types else {}),
        **({"norm_in": norm_shapes(shape)} if shape.embedding_norm else {}),
        "blocks": stack_shapes(shape),
        **({"norm_out": norm_shapes(shape)} if shape.ends_normed else {}),
        **_head_shapes(shape),
    }

    def loss(params: Tree, tokens: Int[Array, "batch token"]) -> Any:
        total: Any = 0.0
        for name, logits in read(shape, params, tokens).items():
            wanted = {"pooled": tokens[:, 0] * 0, "tags": tokens * 0, "words": tokens}[name]
            total = total + crossed(logits, wanted)
        return total

    return Traceable(loss, params, words(batch, shape.max_sequence_length))


def read(
    shape: Transformer,
    params: Tree,
    tokens: Int[Array, "batch token"],
    segments: Any = None,
    keys: Any = None,
) -> dict[str, Array]:
    """The logits of every head that a stack has: "words", "pooled", "tags".

    Args:
        shape: of the model.
        params: its parameters.
        tokens: of a batch.
        segments: the second embedding's row of each token; None: the first everywhere.
        keys: of dropout, two words for each sample; None: nothing is left out.
    """
    said = shape.manner
    x = entered(shape, params, tokens)
    if shape.token_types:
        x = x + params["types"][jnp.zeros_like(tokens) if segments is None else segments]
    x = norm(params["norm_in"], x, said.norm_epsilon) if shape.embedding_norm else x
    x = x if said.embedding_scale == 1 else x * said.embedding_scale
    x = dropped(x, said.embedding_dropout, keys, 3)
    bias = positions_bias(shape, params, tokens.shape[1])
    for one in params["blocks"]:
        x = block(shape, one, x, bias, keys=keys)
        keys = following(keys)
    x = norm(params["norm_out"], x, said.norm_epsilon) if shape.ends_normed else x
    return _heads(shape, params, x)


def words(batch: int, tokens: int) -> jax.ShapeDtypeStruct:
    """The shape of a batch of tokens."""
    return jax.ShapeDtypeStruct((batch, tokens), jnp.int32)


def crossed(logits: Float[Array, "*batch v"], answers: Int[Array, "*batch"]) -> Any:
    """The mean cross entropy."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, answers))


def position_shapes(shape: Transformer) -> Tree:
    """Shapes of what positions have: rows, slopes or buckets."""
    kind, heads, extra = shape.position_embedding_type, shape.num_heads, shape.position_parameters
    if kind == "learned":
        return {"places": leaf(shape.positions, shape.hidden_size)}
    if kind == "alibi" and extra:
        return {"slopes": leaf(heads)}
    return {"buckets": leaf(extra // heads, heads)} if kind == "relative" else {}


def entered(shape: Transformer, params: Tree, tokens: Int[Array, "batch token"]) -> Array:
    """Words and where they stand, as features."""
    x = params["words"][tokens]
    if shape.position_embedding_type == "learned":
        x = x + params["places"][jnp.arange(tokens.shape[1])]
    elif shape.position_embedding_type == "fixed":
        x = x + waves(tokens.shape[1], x)
    return x


def waves(tokens: int, x: Float[Array, "b s h"]) -> Array:
    """Sines and cosines of the position, one beside the other; an odd feature has none.

    The longest turns 10^4 times as slowly as the first. Source: tensor2tensor, common_attention.
    """
    half, odd = divmod(x.shape[-1], 2)
    angles = jnp.arange(tokens)[:, None] * 10000.0 ** (-jnp.arange(half) / max(1, half - 1))
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return jnp.pad(pairs.reshape(tokens, -1), ((0, 0), (0, odd))).astype(x.dtype)


def _head_shapes(shape: Transformer) -> Tree:
    h, v, n = shape.hidden_size, shape.vocab_size, shape.pooled_outputs
    made: Tree = {}
    if shape.pooled:
        made |= {"pooler": linear_shapes(h, h), "pooled": linear_shapes(h, n)}
    if shape.head_transform:
        bias = shape.head_transform_bias
        made |= {"transform": linear_shapes(h, h, bias), "norm_transform": norm_shapes(shape)}
    if shape.token_outputs:
        made["tags"] = linear_shapes(h, shape.token_outputs)
    if shape.language_head and not shape.share_embedding_weights:
        made["head"] = leaf(h, v)
    if shape.language_head and shape.use_bias_in_output:
        made["head_bias"] = leaf(v)
    return made


def _heads(shape: Transformer, params: Tree, x: Float[Array, "b s h"]) -> dict[str, Array]:
    said, found = shape.manner, dict[str, Array]()
    if shape.pooled:
        first = between(said.pooler)(linear(params["pooler"], x[:, 0]))
        found["pooled"] = linear(params["pooled"], first)
    if shape.token_outputs:
        found["tags"] = linear(params["tags"], x)
    if shape.language_head:
        if shape.head_transform:
            x = between(said.transform)(linear(params["transform"], x))
            x = norm(params["norm_transform"], x, said.norm_epsilon)
        logits = x @ (params["words"].T if shape.share_embedding_weights else params["head"])
        logits = logits if said.logit_scale == 1 else logits * said.logit_scale
        found["words"] = logits + params["head_bias"] if "head_bias" in params else logits
    return found
