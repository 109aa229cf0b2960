"""CLIP, SigLIP and Whisper by the words of Hugging Face.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wse._document import check_keys, mapping, short
from wse.models.doors import words
from wse.models.doors.bidirectional import sides
from wse.models.doors.decoders import PLAIN, Count, Decoder, activation, decoder, length
from wse.models.doors.encoders import Picture, Read, picture
from wse.models.doors.told import COMMON, Said, Told
from wse.models.shapes.joined import Captions, contrastive, transcription
from wse.models.shapes.transformer import Transformer

TIED = "share_embedding_weights"
OF_TEXT = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12,
    "num_attention_heads": 8, "max_position_embeddings": 77, "vocab_size": 49408}  # fmt: skip
OF_SIGLIP = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 64, "vocab_size": 32000}  # fmt: skip
OF_PICTURE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12}  # fmt: skip


@dataclass(frozen=True)
class Paired:
    """A text and a picture, each in the words of its family, and by how many numbers they meet."""

    text: Decoder
    picture: Picture
    width: Count
    probed: bool = False


def captioned(name: str, said: Paired, _: str, entered: Mapping[str, Any]) -> Read:
    """An encoder of texts and one of pictures."""
    text = replace(
        decoder(name, said.text, "decoder", entered)[1], language_head=False, causal=not said.probed
    )
    shape, options = picture(name, said.picture)[1]
    # The class leaves its patches without a bias.
    plain = {k: v for k, v in options.items() if k != "classes"}
    made = Captions(text, shape, plain, said.width, said.probed)
    doubt = "of a batch every picture meets every text; the products of its own alone are counted"
    return contrastive(name, made), made, (doubt,)


@dataclass(frozen=True)
class Heard:
    """Sound, and the words of it."""

    d_model: Count
    encoder_layers: Count
    encoder_attention_heads: Count
    encoder_ffn_dim: Count
    decoder_layers: Count
    decoder_attention_heads: Count
    decoder_ffn_dim: Count
    vocab_size: Count
    num_mel_bins: Count
    max_source_positions: Count
    max_target_positions: Count
    nonlinearity: str = "gelu"
    share_embedding_weights: bool = True


def listened(name: str, said: Heard, _: str, entered: Mapping[str, Any]) -> Read:
    """An encoder of sound and a decoder of words."""
    common: dict[str, Any] = {
        **activation("nonlinearity", said.nonlinearity),
        "key_bias": False,
        "final_norm": True,
        "share_embedding_weights": said.share_embedding_weights,
    }
    tokens, longest = length(entered), said.max_target_positions
    if tokens and tokens > longest:
        raise ValueError(
            f"max_sequence_length is {tokens}; learned positions end at {longest}: raise "
            "max_target_positions too"
        )
    source = Transformer(
        said.d_model,
        said.encoder_layers,
        said.encoder_attention_heads,
        1,
        said.max_source_positions,
        said.encoder_ffn_dim,
        position_embedding_type="fixed",
        causal=False,
        **common,
    )
    target = Transformer(
        said.d_model,
        said.decoder_layers,
        said.decoder_attention_heads,
        said.vocab_size,
        tokens or longest,
        said.decoder_ffn_dim,
        max_position_embeddings=longest,
        causal=True,
        **common,
    )
    made = transcription(name, source, target, said.num_mel_bins)
    return made, (source, target, said.num_mel_bins), ()


def clip(told: Told) -> tuple[str, Said]:
    """CLIP, both halves."""
    if (found := told.architecture) not in ("", "CLIPModel"):
        raise ValueError(
            f"{told.name} is {short(found)}, a half of CLIP or one with another head, which is not "
            'counted: write architectures: ["CLIPModel"] to have both halves'
        )
    width = told.count("projection_dim", 512)
    text, seen = _half(told, "text"), _half(told, "vision")
    sizes = text.sizes(COMMON, **OF_TEXT)
    bounds = {key: COMMON[key] for key in OF_PICTURE}
    pictures = seen.sizes(bounds, **OF_PICTURE)
    halves: Said = {
        "text": {**sizes, "nonlinearity": text.word("hidden_act", "quick_gelu", PLAIN)},
        "picture": {
            **pictures,
            "nonlinearity": seen.word("hidden_act", "quick_gelu", PLAIN),
            "image_size": sides(seen, "image_size", 224),
            "patch_size": sides(seen, "patch_size", 32),
            "num_channels": seen.whole("num_channels", 3),
            "use_post_embed_layer_norm": True,
        },
        "width": width,
    }
    for side, half in (("text", text), ("vision", seen)):
        rest = words.sifted(half.said, words.CONFIG)[0]
        check_keys(rest, (*half.asked, "projection_dim"), f"{side}_config")
    return "captions", halves


def siglip(told: Told) -> tuple[str, Said]:
    """SigLIP, both halves; tokens of its texts see each other."""
    if (found := told.architecture) not in ("", "SiglipModel"):
        raise ValueError(
            f"{told.name} is {short(found)}, a half of SigLIP or one with another head, which is "
            'not counted: write architectures: ["SiglipModel"] to have both halves'
        )
    text, seen = _half(told, "text"), _half(told, "vision")
    sizes = text.sizes(COMMON, **OF_SIGLIP)
    pictures = seen.sizes({key: COMMON[key] for key in OF_PICTURE}, **OF_PICTURE)
    seen.only("vision_use_head", True, "pictures that no attention gathers cannot be compared")
    width = text.count("projection_size", sizes["hidden_size"])
    if (width or sizes["hidden_size"]) != (h := pictures["hidden_size"]):
        raise ValueError(
            f"projection_size of text_config of {told.name} is {width}, hidden_size of its "
            f"vision_config {h}; texts and pictures are compared number by number: make them equal"
        )
    size, patch = (sides(seen, f"{of}_size", n) for of, n in (("image", 224), ("patch", 16)))
    halves: Said = {
        "text": {**sizes, "nonlinearity": text.word("hidden_act", "gelu_pytorch_tanh", PLAIN)},
        "picture": {
            **pictures,
            "nonlinearity": seen.word("hidden_act", "gelu_pytorch_tanh", PLAIN),
            "image_size": _filled(size, patch),
            "patch_size": patch,
            "num_channels": seen.whole("num_channels", 3),
            "prepend_cls_token": False,
        },
        "width": h,
        "probed": True,
    }
    for side, half in (("text", text), ("vision", seen)):
        check_keys(words.sifted(half.said, words.CONFIG)[0], half.asked, f"{side}_config")
    return "captions", halves


def _filled(size: Any, patch: Any) -> Any:
    """Sides of an image without what fills no patch, which the class leaves out."""
    pairs = [*zip(size, patch, strict=False)]
    if any(type(x) is not int or x < 1 for pair in pairs for x in pair):
        return size  # which is refused with the other sizes
    return [max(n // part, 1) * part if n >= part else n for n, part in pairs]


def _half(told: Told, side: str) -> Told:
    """The configuration of one half; older files say some of it twice, and the second holds."""
    keys = (f"{side}_config", f"{side}_config_dict")
    told.asked += keys
    said: Said = {}
    for key in keys:
        said |= mapping(told.said.get(key, {}), key)
    half = Told(said, f"{side}_config of {told.name}")
    for key in ("tie_encoder_decoder", "add_cross_attention"):
        half.only(key, False, "an encoder of CLIP is counted without it")
    return half


def whisper(told: Told) -> tuple[str, Said]:
    """Whisper, which writes down what is said."""
    told.headed(("ConditionalGeneration",))
    told.only("tie_encoder_decoder", False, "weights that both halves share are not counted")
    fields = [one for one in Heard.__dataclass_fields__ if one not in ("nonlinearity", TIED)]
    said = told.sizes({key: key for key in fields}, max_source_positions=1500, num_mel_bins=80)
    rows = said["max_source_positions"] * said["d_model"]
    told.cautions.append(
        f"the encoder's positions, {rows:,} numbers of the file, are waves that no training "
        "changes; they are not counted"
    )
    told.either("encoder_layers", "num_hidden_layers")
    return "heard", {
        **said,
        "nonlinearity": told.word("activation_function", "gelu", PLAIN),
        TIED: told.flag("tie_word_embeddings", True),
    }


READERS: Mapping[str, Callable[[Told], tuple[str, Said]]] = {
    "clip": clip,
    "siglip": siglip,
    "whisper": whisper,
}
