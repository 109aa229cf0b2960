"""Models that answer a text: T5 and the first transformer."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from wse.models.rebuilt.blocks import (
    block,
    block_shapes,
    dropped,
    following,
    norm_shapes,
    positions_bias,
)
from wse.models.rebuilt.parts import Tree, leaf, norm
from wse.models.rebuilt.text import crossed, entered, position_shapes, words
from wse.models.shapes.transformer import Transformer
from wse.models.zoo import Traceable

Halves = tuple[Transformer, Transformer, bool]
Text = Int[Array, "b token"]
Answer = Int[Array, "b answer"]
Logits = Float[Array, "b answer v"]
START = 0  # stands before every answer; sourced: Raffel et al., T5: the word that fills up


def translation(halves: Halves, batch: int) -> Traceable:
    """An encoder, and a decoder that reads it."""
    source, target, shared = halves
    h = source.hidden_size
    params: Tree = {
        "source": {"words": leaf(source.vocab_size, h), **position_shapes(source)},
        "target": {**position_shapes(target)},
        "encoder": [block_shapes(source)] * source.num_hidden_layers,
        "decoder": [block_shapes(target, cross=True)] * target.num_hidden_layers,
        "norm_source": norm_shapes(source),
        "norm_target": norm_shapes(target),
    }
    if not shared:
        params["target"]["words"] = leaf(target.vocab_size, h)
    if not target.share_embedding_weights:
        params["head"] = leaf(h, target.vocab_size)
    if target.use_bias_in_output:
        params["head_bias"] = leaf(target.vocab_size)

    def loss(params: Tree, batch: Any) -> Any:
        tokens, answers = batch
        return crossed(answered(halves, params, tokens, answers), answers)

    lengths = (source.max_sequence_length, target.max_sequence_length)
    return Traceable(loss, params, (words(batch, lengths[0]), words(batch, lengths[1])))


def answered(
    halves: Halves, params: Tree, tokens: Text, answers: Answer, keys: Any = None
) -> Logits:
    """The logits of every word of an answer, each by the text and the words before it.

    Args:
        halves: encoder, decoder, and whether both have the same words.
        params: their parameters.
        tokens: of the text.
        answers: what stands before each word of the answer.
        keys: of dropout, two words for each sample; None: nothing is left out.
    """
    source, _, _ = halves
    x = _stacked(source, params["source"], params["encoder"], tokens, None, keys)
    x = _ended(source, params["norm_source"], x, keys)
    for _ in params["encoder"]:
        keys = following(keys)
    return told(halves, params, x, answers, keys)


def answer(halves: Halves, params: Tree, tokens: Text) -> Logits:
    """The logits of answers of the likeliest words, one after another."""
    source, target, _ = halves
    x = _stacked(source, params["source"], params["encoder"], tokens, None, None)
    x = _ended(source, params["norm_source"], x, None)
    long = target.max_sequence_length

    def one(place: Any, known: Array) -> Array:
        found = jnp.argmax(told(halves, params, x, known, None), axis=-1)
        return known.at[:, place + 1].set(found[:, place])

    first = jnp.full((tokens.shape[0], long), START, jnp.int32)
    return told(halves, params, x, jax.lax.fori_loop(0, long - 1, one, first), None)


def before(answers: Answer) -> Answer:
    """What stands before each word: a beginning, and the words but the last."""
    return jnp.pad(jnp.maximum(answers, START), ((0, 0), (1, 0)), constant_values=START)[:, :-1]


def told(halves: Halves, params: Tree, read: Array, answers: Answer, keys: Any) -> Logits:
    """The logits of the decoder, which reads what the encoder gave."""
    _, target, _ = halves
    tables = {**params["source"], **params["target"]}
    y = _stacked(target, tables, params["decoder"], answers, read, keys)
    y = _ended(target, params["norm_target"], y, keys)
    y = y if target.manner.logit_scale == 1 else y * target.manner.logit_scale
    logits = y @ (tables["words"].T if target.share_embedding_weights else params["head"])
    return logits + params["head_bias"] if "head_bias" in params else logits


def _stacked(
    shape: Transformer, tables: Tree, blocks: list[Tree], tokens: Text, read: Any, keys: Any
) -> Array:
    x = dropped(entered(shape, tables, tokens), shape.manner.embedding_dropout, keys, 3)
    bias = positions_bias(shape, tables, tokens.shape[1])
    for one in blocks:
        x = block(shape, one, x, bias, read, keys)
        keys = following(keys)
    return x


def _ended(shape: Transformer, p: Tree, x: Array, keys: Any) -> Array:
    return dropped(norm(p, x, shape.manner.norm_epsilon), shape.manner.last_dropout, keys, 7)
