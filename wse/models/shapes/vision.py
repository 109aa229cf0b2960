"""Transformers of images in closed form: classifiers of patches, and diffusion models.

Of an image of so many patches of p numbers, hidden size h: a product p h + h, and then the blocks
of `wse.models.shapes.transformer` without a mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from wse._numbers import positive
from wse.models.shapes.stack import CORRECT, Transformer
from wse.models.shapes.transformer import blocks, norms
from wse.models.shapes.workload import Layer, Part, Workload

HEADS = {384: 6, 768: 12}  # of DiT-S and -B; L and XL have 16. sourced: arXiv 2212.09748, table 1


def vit(
    name: str,
    shape: Transformer,
    *,
    image_size: Sequence[int] = (224, 224),
    patch_size: Sequence[int] = (16, 16),
    channels: int = 3,
    classes: int = 1000,
) -> Workload:
    """A vision transformer: patches and a token of its own, blocks, a norm, and classes.

    Args:
        name: what tables call it.
        shape: of the blocks. Its sequence is of the patches and one more where there is a token
            for the class, two where there is one of a teacher (DeiT); its `pooled` says whether a
            dense layer stands on that of the class; its positions are learned or without
            parameters. `vocab_size` means nothing here.
        image_size: sides of the image.
        patch_size: sides of a patch, which divide the image's.
        channels: of the image.
        classes: that the images may be of; 0: there is no classifier.

    Raises:
        ValueError: patches that do not tile the image, or another number of them than the sequence
            has.

    >>> shape = Transformer(768, 12, 12, 1, 197, embedding_norm=False)
    >>> vit("ViT-B/16", shape).parameters
    86567656
    """
    tokens = patches(image_size, patch_size)
    s, h = shape.max_sequence_length, shape.hidden_size
    if s not in (tokens, tokens + 1, tokens + 2):
        raise ValueError(
            f"max_sequence_length is {s}; the image has {tokens} patches: pass one of "
            f"{tokens}, {tokens + 1}, {tokens + 2}"
        )
    patch = channels * prod(patch_size)
    common: dict[str, Any] = {"features": h, "sparsifiable": False}
    norm = shape.norm_parameters
    count = patch * h + h + h * (s - tokens) + h * shape.positions + norm * shape.embedding_norm
    layers = [
        Layer("patches", tokens * patch, s * h, count, multiplies=tokens * patch * h, **common),
        *(layer for i in range(shape.num_hidden_layers) for layer in blocks(shape, i)),
    ]
    layers += norms("norm", shape, norm * shape.ends_normed)
    if shape.pooled:
        layers.append(Layer("pooler", h, h, h * h + h, kept=h, **common))
    if classes:
        layers.append(Layer("head", h, classes, h * classes + classes, kept=h, **common))
    options = {"image_size": image_size, "patch_size": patch_size, "channels": channels}
    origin = "picture", (shape, {**options, "classes": classes})
    leaves = classes or s * h
    return Workload(name, tuple(layers), tokens * patch, leaves, tokens=s, origin=origin)


def patches(image_size: Sequence[int], patch_size: Sequence[int]) -> int:
    """How many patches tile an image.

    Raises:
        ValueError: sides that are not positive, or do not divide the image's.
    """
    for side in (*image_size, *patch_size):
        positive("a side of image_size or patch_size", side, CORRECT)
    pairs = [*zip(image_size, patch_size, strict=False)]
    if len(image_size) != len(patch_size) or any(side % part for side, part in pairs):
        raise ValueError(
            f"patch_size is {[*patch_size]}; it must divide image_size {[*image_size]} side by "
            "side: change one"
        )
    return prod(side // part for side, part in pairs)


@dataclass(frozen=True)
class Latent:
    """The pictures of a diffusion model, as it sees them.

    Attributes:
        size: sides of the latent image; an eighth of the picture's.
        patch: sides of a patch.
        channels: of the latent image.
        classes: that the pictures may be of; one more stands for "any".
        frequencies: waves in which the time is told.
        leaving: images that leave: the noise, and its variance where that is learned.
    """

    size: tuple[int, ...] = (32, 32)
    patch: tuple[int, ...] = (2, 2)
    channels: int = 4
    classes: int = 1000
    frequencies: int = 256
    leaving: int = 2


def dit(
    name: str = "DiT-XL/2",
    *,
    hidden_size: int = 1152,
    num_hidden_layers: int = 28,
    latent_size: int = 32,
    patch_size: int = 2,
    classes: int = 1000,
) -> Workload:
    """A diffusion transformer: patches of a latent image, each block modulated by time and class.

    Args:
        name: what tables call it.
        hidden_size: h.
        num_hidden_layers: blocks.
        latent_size: side of the latent image of four channels; an eighth of the picture's.
        patch_size: side of a patch.
        classes: that the pictures may be of.

    Raises:
        ValueError: a size that is not positive, or patches that do not tile the image.

    >>> round(dit().parameters / 1e6)
    675
    """
    positive("patch_size", patch_size, CORRECT)
    if latent_size < patch_size or latent_size % patch_size:
        raise ValueError(
            f"patch_size is {patch_size}; it must divide latent_size {latent_size}: change one"
        )
    latent = Latent((latent_size,) * 2, (patch_size,) * 2, classes=classes)
    tokens = patches(latent.size, latent.patch)
    heads = gcd(HEADS.get(hidden_size, 16), hidden_size)  # which divide the features
    plain = Transformer(
        hidden_size, num_hidden_layers, heads, 1, tokens, position_embedding_type="none"
    )
    return diffusion(name, plain, latent)


def diffusion(name: str, shape: Transformer, latent: Latent) -> Workload:
    """A diffusion transformer of any blocks; their norms have no parameters, modulation has.

    Args:
        name: what tables call it.
        shape: of the blocks; `vocab_size` means nothing here, and its sequence is the patches.
        latent: the pictures.

    Raises:
        ValueError: as `dit`.
    """
    s, h = patches(latent.size, latent.patch), shape.hidden_size
    patch = latent.channels * prod(latent.patch)
    common: dict[str, Any] = {"sparsifiable": False, "features": h}
    products = latent.frequencies * h + h * h
    # sourced: facebookresearch/DiT
    condition = products + 2 * h + (latent.classes + 1) * h
    enters = latent.frequencies + 1
    table = shape.positions * h
    layers = [
        Layer(
            "patches", s * patch, s * h, patch * h + h + table, multiplies=s * patch * h, **common
        ),
        Layer("condition", enters, h, condition, multiplies=products, **common),
    ]
    for i in range(shape.num_hidden_layers):
        block = f"block_{i}"
        count = 6 * h * h + 6 * h
        # The patches enter the block beside what modulates them.
        enters = Part(block, h + s * h, h, 7 * h)
        modulation = Layer(
            *(f"{block}.modulation", h, 6 * h, count),
            block=block, kept=h, features=h, parts=(enters,),
        )  # fmt: skip
        layers += [modulation, *(_without_norm(x, shape) for x in blocks(shape, i))]
    out = latent.leaving * patch
    layers += [
        Layer("last_modulation", h, 2 * h, 2 * h * h + 2 * h, **common),
        Layer("unpatch", s * h, s * out, h * out + out, multiplies=s * h * out, **common),
    ]
    origin = "diffused", (shape, latent)
    return Workload(name, tuple(layers), s * patch, s * out, tokens=s, origin=origin)


def _without_norm(layer: Layer, shape: Transformer) -> Layer:
    own = layer.name.endswith((".qkv", ".up"))
    return replace(layer, parameters=layer.parameters - shape.norm_parameters * own)
