"""Models of images: vision transformers, diffusion transformers, U-Nets."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wse.models.rebuilt.blocks import (
    attention,
    attention_shapes,
    between,
    block,
    block_shapes,
    dropped,
    feedforward,
    feedforward_shapes,
    following,
    norm_shapes,
)
from wse.models.rebuilt.filters import Norms, convolved, filter_shapes, pooled, through
from wse.models.rebuilt.parts import Tree, leaf, linear, linear_shapes, norm
from wse.models.rebuilt.text import crossed, waves
from wse.models.shapes.segmentation import Segmentation
from wse.models.shapes.transformer import Transformer
from wse.models.shapes.vision import Latent, patches
from wse.models.zoo import Traceable

Sides = tuple[int, ...]


def picture(given: tuple[Transformer, dict[str, Any]], batch: int) -> Traceable:
    """A classifier of images; without classes, the mean square of its features."""
    shape, options = given
    size, patch, channels = options["image_size"], options["patch_size"], options["channels"]
    h, tokens, classes = shape.hidden_size, patches(size, patch), options["classes"]
    own = shape.max_sequence_length - tokens  # tokens for the class, and of a teacher
    params: Tree = {
        "patches": linear_shapes(channels * prod(patch), h),
        **({"class": leaf(1, own, h)} if own else {}),
        **({"places": leaf(shape.positions, h)} if shape.positions else {}),
        **({"norm_in": norm_shapes(shape)} if shape.embedding_norm else {}),
        "blocks": [block_shapes(shape)] * shape.num_hidden_layers,
        **({"norm_out": norm_shapes(shape)} if shape.ends_normed else {}),
        **({"pooler": linear_shapes(h, h)} if shape.pooled else {}),
        **({"head": linear_shapes(h, classes)} if classes else {}),
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, labels = batch
        found = seen(given, params, images)
        return crossed(found, labels) if classes else jnp.mean(found * found)

    images = jax.ShapeDtypeStruct((batch, *size, channels), jnp.float32)
    return Traceable(loss, params, (images, jax.ShapeDtypeStruct((batch,), jnp.int32)))


def seen(
    given: tuple[Transformer, dict[str, Any]], params: Tree, images: Array, keys: Any = None
) -> Array:
    """The logits of a classifier of images; without classes, its features.

    Args:
        given: shape and options.
        params: its parameters.
        images: of a batch.
        keys: of dropout, two words for each sample; None: nothing is left out.
    """
    shape, options = given
    x = every(given, params, images, keys)
    pooled = x[:, 0]
    if shape.pooled:
        pooled = between(shape.manner.pooler)(linear(params["pooler"], pooled))
    return linear(params["head"], pooled) if options["classes"] else pooled


def every(
    given: tuple[Transformer, dict[str, Any]], params: Tree, images: Array, keys: Any = None
) -> Array:
    """The features of every patch; arguments as for `seen`."""
    shape, options = given
    said = shape.manner
    x = linear(params["patches"], cut(images, options["patch_size"]))
    if "class" in params:
        first = jnp.broadcast_to(params["class"], (x.shape[0], *params["class"].shape[1:]))
        x = jnp.concatenate([first, x], axis=1)
    if shape.positions:
        x = x + params["places"]
    elif shape.position_embedding_type == "fixed":
        x = x + waves(x.shape[1], x)
    x = norm(params["norm_in"], x, said.norm_epsilon) if shape.embedding_norm else x
    x = dropped(x, said.embedding_dropout, keys, 3)
    for one in params["blocks"]:
        x = block(shape, one, x, keys=keys)
        keys = following(keys)
    return norm(params["norm_out"], x, said.norm_epsilon) if shape.ends_normed else x


def cut(images: Float[Array, "b y x c"], patch: Sides) -> Array:
    """Images in patches, one after another."""
    b, y, x, c = images.shape
    parts = images.reshape(b, y // patch[0], patch[0], x // patch[1], patch[1], c)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(b, -1, prod(patch) * c)


def diffused(given: tuple[Transformer, Latent], batch: int) -> Traceable:
    """The mean squared error of the noise in latent images."""
    shape, latent = given
    h, s, f = shape.hidden_size, shape.max_sequence_length, latent.frequencies
    patch = latent.channels * prod(latent.patch)
    one = {
        "modulation": linear_shapes(h, 6 * h),
        "attention": attention_shapes(shape),
        "feedforward": feedforward_shapes(shape),
    }
    params: Tree = {
        "patches": linear_shapes(patch, h),
        **({"places": leaf(shape.positions, h)} if shape.positions else {}),
        "time_1": linear_shapes(f, h),
        "time_2": linear_shapes(h, h),
        "classes": leaf(latent.classes + 1, h),
        "blocks": [one] * shape.num_hidden_layers,
        "modulation": linear_shapes(h, 2 * h),
        "head": linear_shapes(h, latent.leaving * patch),
    }

    def loss(params: Tree, batch: Any) -> Any:
        images, times, labels, noise = batch
        x = linear(params["patches"], images)
        x = x + (params["places"] if shape.positions else waves(s, x))
        told = linear(params["time_2"], jax.nn.silu(linear(params["time_1"], times)))
        told = jax.nn.silu(told + params["classes"][labels])[:, None]
        for p in params["blocks"]:
            a, b, c, d, e, g = jnp.split(linear(p["modulation"], told), 6, axis=-1)
            y = norm({}, x) * (1 + a) + b
            x = x + c * attention(shape, p["attention"], y, y)
            x = x + g * feedforward(shape, p["feedforward"], norm({}, x) * (1 + d) + e)
        a, b = jnp.split(linear(params["modulation"], told), 2, axis=-1)
        said = linear(params["head"], norm({}, x) * (1 + a) + b)
        return jnp.mean((said[..., : noise.shape[-1]] - noise) ** 2)

    latents = jax.ShapeDtypeStruct((batch, s, patch), jnp.float32)
    times = jax.ShapeDtypeStruct((batch, f), jnp.float32)
    return Traceable(
        loss, params, (latents, times, jax.ShapeDtypeStruct((batch,), jnp.int32), latents)
    )


def segmented(net: Segmentation, batch: int) -> Traceable:
    """The mean squared error of a U-Net's outputs; norms are over the batch, as in training."""
    params: Tree = {"down": [], "up": [], "double": []}
    plain: dict[str, Any] = {"axes": len(net.size), "bias": net.enable_bias}
    c = net.input_channels
    if net.initial_conv_filters:
        params["first"] = filter_shapes(3, c, net.initial_conv_filters, **plain)
        c = net.initial_conv_filters
    for filters in net.encoder_filters:
        made, c = _block_shapes(net, c, filters)
        params["down"].append(made)
    for i, filters in enumerate(net.decoder_filters):
        params["double"].append(filter_shapes(2, c, filters, **plain))
        beside = net.encoder_filters[-i - 2] if net.skip_connect else 0
        made, c = _block_shapes(net, filters + beside, filters)
        params["up"].append(made)
    params["head"] = linear_shapes(c, net.outputs)

    def loss(params: Tree, batch: Any) -> Any:
        x, wanted = batch
        return jnp.mean((outlined(net, params, x, Norms()) - wanted) ** 2)

    shapes = [
        jax.ShapeDtypeStruct((batch, *net.size, n), jnp.float32)
        for n in (net.input_channels, net.outputs)
    ]
    return Traceable(loss, params, tuple(shapes))


def outlined(net: Segmentation, params: Tree, x: Array, norms: Norms) -> Array:
    """What a U-Net says of every place of images: as many numbers as it has outputs.

    Args:
        net: its shape.
        params: its parameters.
        x: images of a batch, channels last.
        norms: means and variances, of this batch or of a trained model.
    """
    x = jax.nn.relu(convolved(params["first"], x)) if "first" in params else x
    kept: list[Any] = []
    for level, one in enumerate(params["down"]):
        x = pooled(x) if level else x
        x = through(one, x, norms)
        kept.append(x)
    for i, (double, one) in enumerate(zip(params["double"], params["up"], strict=True)):
        x = _doubled(double, x)
        x = jnp.concatenate([x, kept[-i - 2]], axis=-1) if net.skip_connect else x
        x = through(one, x, norms)
    return linear(params["head"], x)


def _block_shapes(net: Segmentation, c: int, filters: int) -> tuple[list[Tree], int]:
    made: list[Tree] = []
    common: dict[str, Any] = {"axes": len(net.size), "bias": net.enable_bias, "normed": net.norm}
    for kind in net.convs_per_block:
        alone = kind == "3x3_dw_conv"
        k = c if alone else filters
        made.append(filter_shapes(1 if kind == "1x1_conv" else 3, 1 if alone else c, k, **common))
        c = k
    return made, c


def _doubled(p: Tree, x: Float[Array, "b *sides c"]) -> Array:
    sides = "DHW"[-(x.ndim - 2) :]
    numbers = (f"N{sides}C", f"{sides}IO", f"N{sides}C")
    two = (2,) * len(sides)
    y = jax.lax.conv_transpose(x, p["kernel"], two, "VALID", dimension_numbers=numbers)
    return y + p["bias"] if "bias" in p else y
