"""Models of two encoders, of pictures or sound and words, in closed form: CLIP, Qwen-VL, Whisper.

CLIP compares a picture with a text by d numbers of each; so does SigLIP, whose picture is told by
one more attention, of a trained query, and a block's products behind it. Whisper's encoder reads
two convolutions of a spectrum in place of words; its decoder answers as T5's does. In Qwen2-VL
what an encoder of patches gives, m x m of them in one, stands among the words of a decoder.
"""

from dataclasses import dataclass, replace
from typing import Any

from wse.models.shapes.convolution import convolution
from wse.models.shapes.transformer import Transformer, blocks, lookup, norms, transformer
from wse.models.shapes.translation import translation
from wse.models.shapes.vision import vit
from wse.models.shapes.workload import Layer, Workload


@dataclass(frozen=True)
class Captions:
    """Pictures and their texts.

    Attributes:
        text: of the words; the last of them stands for the text.
        picture: of the patches, one more for the picture.
        options: of the picture: `image_size`, `patch_size`, `channels`.
        width: d, numbers by which both are compared.
        probed: a trained query reads the patches, and each pair is judged by itself (SigLIP).
        resized: places are resized to the shape of each picture, n^2 h products of n patches
            (SigLIP 2).
    """

    text: Transformer
    picture: Transformer
    options: dict[str, Any]
    width: int
    probed: bool = False
    resized: bool = False


def contrastive(name: str, said: Captions) -> Workload:
    """An encoder of pictures, one of texts, and the product of what both give.

    Of a batch every picture is compared with every text, d products each; here with its own alone.
    """
    text, seen = said.text, vit("", said.picture, **said.options, classes=0)
    common: dict[str, Any] = {"sparsifiable": False}

    def out(side: str, h: int) -> Layer:
        own: dict[str, Any] = {"features": h, "kept": h, "multiplies": h * said.width, **common}
        return Layer(f"{side}_out", h, said.width, (h + said.probed) * said.width, **own)

    first = seen.layers[0]  # CLIP's without its bias
    bias = said.picture.hidden_size * (not said.probed)
    n, h = said.picture.max_sequence_length, said.picture.hidden_size
    more = n * n * h * said.resized
    products = first.forward_flops // 2 + more
    patches = replace(first, parameters=first.parameters - bias, multiplies=products)
    pictures = [replace(x, name=f"picture_{x.name}") for x in (patches, *seen.layers[1:])]
    pictures = [replace(x, block=x.block and f"picture_{x.block}") for x in pictures]
    rows = (text.vocab_size + text.positions) * text.hidden_size
    layers = [
        *pictures,
        *(_probe(said.picture) if said.probed else [out("picture", said.picture.hidden_size)]),
        lookup("text_embedding", text, rows),
        *(layer for i in range(text.num_hidden_layers) for layer in blocks(text, i, "text")),
        *norms("text_norm", text, text.norm_parameters),
        out("text", text.hidden_size),
        Layer(
            "compared",
            2 * said.width,
            1,
            1 + said.probed,
            multiplies=said.width,
            features=1,
            **common,
        ),
    ]
    enters = seen.inputs + text.max_sequence_length
    origin = "captions", said
    many = seen.tokens + text.max_sequence_length
    return Workload(name, tuple(layers), enters, 1, many, origin, comes_in=enters)


def _probe(shape: Transformer) -> list[Layer]:
    """What one trained query reads of all patches, and the products behind it."""
    s, h, f = shape.max_sequence_length, shape.hidden_size, shape.filters
    common: dict[str, Any] = {"features": h, "sparsifiable": False}
    # The query itself, its product and the one behind attention, a norm, two products with biases.
    count = h + 2 * (h * h + h) + 2 * h + 2 * h * f + f + h
    products = 2 * h * h + 2 * s * h + 2 * h * f
    return [
        Layer(
            "picture_read", s * h, 2 * s * h, 2 * (h * h + h), multiplies=2 * s * h * h, **common
        ),
        Layer("picture_probe", 2 * s * h, h, count, multiplies=products, **common),
    ]


def transcription(name: str, encoder: Transformer, decoder: Transformer, bands: int) -> Workload:
    """Sound in two convolutions, the second of which halves its length, an encoder and a decoder.

    Args:
        name: what tables call it.
        encoder: of half as many tokens as the spectrum has moments; `vocab_size` means nothing.
        decoder: of the words.
        bands: of the spectrum.
    """
    made = translation(name, encoder, decoder, one_embedding=False)
    s, h = encoder.max_sequence_length, encoder.hidden_size
    stem = (
        convolution("stem_1", (bands, h), (2 * s,), taps=3, extra=h),
        convolution("stem_2", (h, h), (s,), taps=3, before=(2 * s,), extra=h),
    )
    enters = 2 * s * bands + decoder.max_sequence_length
    return replace(
        made,
        layers=(*stem, *made.layers[1:]),
        inputs=enters,
        comes_in=enters + decoder.max_sequence_length,
        origin=("heard", (encoder, decoder, bands)),
    )


@dataclass(frozen=True)
class Pictured:
    """Words, and a picture among them.

    Attributes:
        text: of the words, those that stand for the picture counted too.
        picture: of the patches; `windows` says how many of them a patch meets.
        size: sides of the picture, in patches.
        numbers: of a patch, over its colours and frames.
        merged: patches along each side that become one place among the words.
        window: patches along each side of a window of the blocks that have one.

    Raises:
        ValueError: no word beside the picture.
    """

    text: Transformer
    picture: Transformer
    size: tuple[int, int]
    numbers: int
    merged: int
    window: int = 0

    def __post_init__(self) -> None:
        if self.places >= self.text.max_sequence_length:
            raise ValueError(
                f"max_sequence_length is {self.text.max_sequence_length}; the picture stands for "
                f"{self.places} of them, and words must be left: make it longer, or write a "
                "smaller image_size in vision_config"
            )

    @property
    def places(self) -> int:
        """Places among the words that the picture has."""
        return self.picture.max_sequence_length // self.merged**2


def pictured(name: str, said: Pictured) -> Workload:
    """An encoder of patches, products that join them, and a decoder of words."""
    shape, text = said.picture, transformer("", said.text)
    n, e, m, h = shape.max_sequence_length, shape.hidden_size, said.places, said.text.hidden_size
    wide, enters = said.merged**2 * e, n * said.numbers
    common: dict[str, Any] = {"sparsifiable": False}

    def joined(name: str, leaves: int, enters: int) -> Layer:
        own: dict[str, Any] = {"features": wide, "kept": enters, **common}
        count, products = wide * leaves + leaves, m * wide * leaves
        return Layer(name, enters, m * leaves, count, multiplies=products, **own)

    first: dict[str, Any] = {"multiplies": enters * e, "features": e, **common}
    layers = [
        Layer("picture_patches", enters, n * e, said.numbers * e, **first),
        *(layer for i in range(shape.num_hidden_layers) for layer in blocks(shape, i, "picture")),
        *norms("picture_norm", shape, shape.norm_parameters),
        joined("picture_merged", wide, n * e),
        joined("picture_out", h, m * wide),
        *text.layers,
    ]
    s = text.tokens
    return Workload(name, tuple(layers), enters + s, s, tokens=s, origin=("seen", said))
