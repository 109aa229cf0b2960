"""Models of pictures with words, and of sound: CLIP, SigLIP, Qwen-VL and Whisper."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import isqrt, prod
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
from wse.models.rebuilt.text import crossed, entered, position_shapes, stack, waves, words
from wse.models.rebuilt.translation import told, translation
from wse.models.shapes.joined import Captions, Pictured
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
        pictures, tokens, *grids = batch
        own, eyes = params["text"], params["picture"]
        if grids:
            eyes = {**eyes, "places": _resized(eyes["places"], grids[0])}
        y = entered(text, own, tokens)
        for one in own["blocks"]:
            y = block(text, one, y)
        y = norm(own["norm_out"], y, text.manner.norm_epsilon)[:, -1]
        if said.probed:
            x = _probed(said.picture, params["probe"], every(given, eyes, pictures))
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

    grids = [jax.ShapeDtypeStruct((batch, 2), jnp.int32)] * said.resized
    given_to = (images.batch[0], words(batch, text.max_sequence_length), *grids)
    return Traceable(loss, params, given_to)


def _resized(places: Array, grids: Array) -> Array:
    """Places of a square, weighed for the rows and columns that each picture has.

    Each is the mean of those around it, by weights that fall off linearly, as in `image.resize`.
    """
    many = places.shape[0]
    side = isqrt(many)
    sizes = grids[:, None].astype(jnp.float32)
    at = jnp.arange(many, dtype=jnp.float32)[None, :, None]
    row = jnp.floor(at / sizes[..., 1:])
    here = jnp.concatenate([row, at - row * sizes[..., 1:]], axis=-1)
    scale = side / sizes
    center = (here + 0.5) * scale - 0.5
    away = jnp.abs(jnp.arange(side) - center[..., None]) / jnp.maximum(scale, 1)[..., None]
    weights = jnp.maximum(1 - away, 0)
    weights = weights / jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
    both = weights[..., 0, :, None] * weights[..., 1, None, :]
    return both.reshape(*both.shape[:2], many) @ places


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


def pictured(said: Pictured, batch: int) -> Traceable:
    """The mean cross entropy of words, among which a picture stands."""
    shape, text, n = said.picture, said.text, said.picture.max_sequence_length
    wide, e = said.merged**2 * shape.hidden_size, shape.hidden_size
    made = stack(text, batch)
    params: Tree = {
        "text": made.params,
        "patches": linear_shapes(said.numbers, e, False),
        "blocks": stack_shapes(shape),
        "norm": norm_shapes(shape),
        "merged": linear_shapes(wide, wide),
        "out": linear_shapes(wide, text.hidden_size),
    }

    def loss(params: Tree, batch: Any) -> Any:
        patches, tokens = batch
        own = params["text"]
        x = _put(own["words"][tokens], tokens == 0, _patched(said, params, patches))
        for one in own["blocks"]:
            x = block(text, one, x)
        x = norm(own["norm_out"], x, text.manner.norm_epsilon)
        return crossed(
            x @ (own["words"].T if text.share_embedding_weights else own["head"]), tokens
        )

    patches = jax.ShapeDtypeStruct((batch, n, said.numbers), jnp.float32)
    return Traceable(loss, params, (patches, made.batch))


def _patched(said: Pictured, p: Tree, patches: Array) -> Array:
    """What stands for a picture among words; blocks with windows read patches in their order."""
    shape, count = said.picture, patches.shape[0]
    x = linear(p["patches"], patches)
    order = _order(said) if said.window else None
    x = x if order is None else x[:, order]
    for i, one in enumerate(p["blocks"]):
        met = shape.met(i)
        parts = x.reshape(-1, met, x.shape[-1])
        x = block(shape, one, parts).reshape(count, -1, x.shape[-1])
    x = norm(p["norm"], x, shape.manner.norm_epsilon).reshape(count, said.places, -1)
    x = linear(p["out"], FUNCTIONS["gelu"](linear(p["merged"], x)))
    return x if order is None else x[:, jnp.argsort(order[:: said.merged**2])]


def _order(said: Pictured) -> Array:
    """Which patch stands where, window after window; those that are merged stay together."""
    w, m = said.window // said.merged, said.merged**2
    rows, columns = (side // said.merged for side in said.size)
    at = jnp.arange(rows * columns).reshape(rows // w, w, columns // w, w).transpose(0, 2, 1, 3)
    return (at.reshape(-1, 1) * m + jnp.arange(m)).reshape(-1)


def _put(x: Array, marked: Array, seen: Array) -> Array:
    """Words, and in the marked places the picture's, one after another."""
    at = jnp.maximum(jnp.cumsum(marked, axis=1) - 1, 0)
    return jnp.where(marked[..., None], jnp.take_along_axis(seen, at[..., None], axis=1), x)
