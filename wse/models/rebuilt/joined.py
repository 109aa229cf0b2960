"""Models of pictures with words, and of sound: CLIP, SigLIP and Whisper."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from wse.models.rebuilt.blocks import (
    FUNCTIONS,
    attention,
    attention_shapes,
    block,
    feedforward,
    feedforward_shapes,
    norm_shapes,
    stack_shapes,
)
from wse.models.rebuilt.filters import convolved, filter_shapes
from wse.models.rebuilt.images import every, picture, seen
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm
from wse.models.rebuilt.text import crossed, entered, position_shapes, waves, words
from wse.models.rebuilt.translation import told, translation
from wse.models.shapes.joined import Captions
from wse.models.shapes.transformer import Transformer
from wse.models.zoo import Traceable


def captions(said: Captions, batch: int) -> Traceable:
    """The cross entropies of each picture among the texts, and of each text among the pictures.

    Of SigLIP that of every pair by itself, which belongs together or does not.
    """
    text, options = said.text, dict[str, Any]({**said.options, "classes": 0})
    given = said.picture, options
    images = picture(given, batch)
    wide, h = said.picture.hidden_size, text.hidden_size
    numbers = options["channels"] * prod(options["patch_size"])
    params: Tree = {
        "picture": {**images.params, "patches": linear_shapes(numbers, wide, said.probed)},
        **(
            {"probe": _probe_shapes(said.picture), "shift": leaf()}
            if said.probed
            else {"picture_out": linear_shapes(wide, said.width, False)}
        ),
        "text": {
            "words": leaf(text.vocab_size, h),
            **position_shapes(text),
            "blocks": stack_shapes(text),
            "norm_out": norm_shapes(text),
        },
        "text_out": linear_shapes(h, said.width, said.probed),
        "scale": leaf(),
    }

    def loss(params: Tree, batch: Any) -> Any:
        pictures, tokens = batch
        own = params["text"]
        y = entered(text, own, tokens)
        for one in own["blocks"]:
            y = block(text, one, y)
        y = norm(own["norm_out"], y, text.manner.norm_epsilon)[:, -1]
        if said.probed:
            x = _probed(said.picture, params["probe"], every(given, params["picture"], pictures))
        else:
            x = linear(params["picture_out"], seen(given, params["picture"], pictures))
        y = linear(params["text_out"], y)
        x, y = (z * jax.lax.rsqrt(jnp.sum(z * z, axis=-1, keepdims=True)) for z in (x, y))
        met = jnp.exp(params["scale"]) * (x @ y.T)
        if said.probed:
            own_or_not = 2 * jnp.eye(met.shape[0]) - 1
            return -jnp.mean(jnp.sum(jax.nn.log_sigmoid(own_or_not * (met + params["shift"])), -1))
        right = jnp.arange(met.shape[0])
        return (crossed(met, right) + crossed(met.T, right)) / 2

    return Traceable(loss, params, (images.batch[0], words(batch, text.max_sequence_length)))


def _probe_shapes(shape: Transformer) -> Tree:
    return {
        "query": leaf(1, 1, shape.hidden_size),
        "attention": attention_shapes(shape),
        "norm": norm_shapes(shape),
        "feedforward": feedforward_shapes(shape),
    }


def _probed(shape: Transformer, p: Tree, x: Array) -> Array:
    """What a trained query reads of all patches."""
    query = jnp.broadcast_to(p["query"], (x.shape[0], 1, shape.hidden_size))
    y = attention(shape, p["attention"], query, x)
    z = norm(p["norm"], y, shape.manner.norm_epsilon)
    return (y + feedforward(shape, p["feedforward"], z))[:, 0]


def heard(given: tuple[Transformer, Transformer, int], batch: int) -> Traceable:
    """The mean cross entropy of the words of a spectrum."""
    source, target, bands = given
    made = translation((source, target, False), batch)
    h, s = source.hidden_size, source.max_sequence_length
    plain: dict[str, Any] = {"axes": 1, "bias": True}
    filters = {"1": filter_shapes(3, bands, h, **plain), "2": filter_shapes(3, h, h, **plain)}

    def loss(params: Tree, batch: Any) -> Any:
        sounds, answers = batch
        x = FUNCTIONS["gelu"](convolved(params["source"]["1"], sounds))
        x = FUNCTIONS["gelu"](convolved(params["source"]["2"], x, stride=2))
        x = x + waves(s, x)
        for one in params["encoder"]:
            x = block(source, one, x)
        x = norm(params["norm_source"], x, source.manner.norm_epsilon)
        return crossed(told((source, target, False), params, x, answers, None), answers)

    sounds = jax.ShapeDtypeStruct((batch, 2 * s, bands), jnp.float32)
    return Traceable(loss, {**made.params, "source": filters}, (sounds, made.batch[1]))
