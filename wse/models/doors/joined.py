"""CLIP, SigLIP, Qwen2-VL and 2.5-VL, and Whisper by the words of Hugging Face.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from typing import Any, cast

from wse._document import check_keys, mapping, short
from wse.models.doors import words
from wse.models.doors.bidirectional import sides
from wse.models.doors.causal import GATES, rotary
from wse.models.doors.decoders import (
    PLAIN,
    Count,
    Decoder,
    Stack,
    Whole,
    activation,
    beyond_windows,
    decoder,
    length,
)
from wse.models.doors.encoders import Picture, Read, picture
from wse.models.doors.told import COMMON, Said, Told
from wse.models.shapes import joined
from wse.models.shapes.joined import Captions, Pictured, contrastive, transcription
from wse.models.shapes.transformer import Transformer

TIED = "share_embedding_weights"
ELSEWHERE = ("model_type", "architectures", "torch_dtype", "dtype", "tie_word_embeddings")
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
    resized: bool = False


def captioned(name: str, said: Paired, _: str, entered: Mapping[str, Any]) -> Read:
    """An encoder of texts and one of pictures."""
    text = replace(
        decoder(name, said.text, "decoder", entered)[1], language_head=False, causal=not said.probed
    )
    shape, options = picture(name, said.picture)[1]
    # The class leaves its patches without a bias.
    plain = {k: v for k, v in options.items() if k != "classes"}
    made = Captions(text, shape, plain, said.width, said.probed, said.resized)
    doubts = [
        "of a batch every picture meets every text; the products of its own alone are counted"
    ]
    if said.resized:
        many = shape.max_sequence_length
        doubts.append(f"pictures are read in up to {many} patches: products of {many} are counted")
    return contrastive(name, made), made, (*doubts,)


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


@dataclass(frozen=True)
class Seen:
    """Words and a picture among them, each in the words of its family."""

    text: Decoder
    picture: Stack
    image_size: tuple[Count, Count]
    patch_size: Count
    num_channels: Count
    frames: Count
    merged: Count
    window: Whole = 0


def pictured(name: str, said: Seen, _: str, entered: Mapping[str, Any]) -> Read:
    """A decoder of words, and an encoder of a picture among them."""
    text = decoder(name, said.text, "decoder", entered)[1]
    unit, sides = said.patch_size * max(said.window, said.merged), said.image_size
    if said.window % said.merged or any(side % unit for side in sides):
        raise ValueError(
            f"image_size is {[*sides]}; pictures are counted whose sides are multiples of {unit}, "
            "so that whole windows and whole places tile them: write one in vision_config"
        )
    rows, columns = (side // said.patch_size for side in sides)
    shape: dict[str, Any] = {**said.picture.shape(), "position_embedding_type": "rotary"}
    seen = Transformer(**shape, vocab_size=1, max_sequence_length=rows * columns, causal=False)
    numbers = said.num_channels * said.frames * said.patch_size**2
    made = Pictured(text, seen, (rows, columns), numbers, said.merged, said.window)
    doubt = (
        f"a sample has one picture of {sides[0]} x {sides[1]}, {made.places} of its "
        f"{text.max_sequence_length} places, and words in the others: write image_size in "
        "vision_config for another"
    )
    return joined.pictured(name, made), made, (doubt, *beyond_windows(name, text))


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


def siglip(told: Told, whole: str = "SiglipModel", resized: bool = False) -> tuple[str, Said]:
    """SigLIP, both halves; tokens of its texts see each other.

    Args:
        told: what the file says.
        whole: the class of both halves.
        resized: pictures have any shape, and places are resized to it (SigLIP 2).
    """
    if (found := told.architecture) not in ("", whole):
        raise ValueError(
            f"{told.name} is {short(found)}, a half of SigLIP or one with another head, which is "
            f'not counted: write architectures: ["{whole}"] to have both halves'
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
    patch = sides(seen, "patch_size", 16)
    size = _grid(seen, patch) if resized else _filled(sides(seen, "image_size", 224), patch)
    halves: Said = {
        "text": {**sizes, "nonlinearity": text.word("hidden_act", "gelu_pytorch_tanh", PLAIN)},
        "picture": {
            **pictures,
            "nonlinearity": seen.word("hidden_act", "gelu_pytorch_tanh", PLAIN),
            "image_size": size,
            "patch_size": patch,
            "num_channels": seen.whole("num_channels", 3),
            "prepend_cls_token": False,
        },
        "width": h,
        "probed": True,
        "resized": resized,
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


def _grid(seen: Told, patch: list[Any]) -> list[int]:
    """Sides of a picture that has as many patches as there are places, which lie in a square."""
    many = seen.sure("num_patches", 256)
    side = isqrt(many)
    seen.asked.append("image_size")  # which the class passes over
    if side * side != many:
        raise ValueError(
            f"num_patches of {seen.name} is {many}; the class lays places in a square: write a "
            f"square number such as {side * side}"
        )
    if len({*map(str, patch)}) != 1:
        raise ValueError(
            f"patch_size of {seen.name} is {short(patch)}; the class takes square patches alone: "
            "write one number"
        )
    return [side * part if type(part) is int else part for part in patch]


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


def qwen_vl(told: Told, newer: bool = False) -> tuple[str, Said]:
    """Qwen2-VL and Qwen2.5-VL: pictures, of any size, among the words of Qwen 2.

    Args:
        told: what the file says.
        newer: Qwen2.5-VL, whose pictures have gated blocks, most of them with windows.
    """
    told.headed(("ConditionalGeneration",))
    seen = Told(mapping(told.said.get("vision_config", {}), "vision_config"), "vision_config")
    words_of = _words_of(told)
    told.asked += ("vision_config", "text_config")
    # The class passes over the second names of these.
    seen.asked += ("in_chans", "spatial_patch_size", "tokens_per_second")
    depth = seen.whole(seen.either("depth", "num_hidden_layers"), 32)
    heads = seen.whole(seen.either("num_heads", "num_attention_heads"), 16)
    patch, merged = seen.sure("patch_size", 14), seen.sure("spatial_merge_size", 2)
    picture, window = (_gated if newer else _plain)(seen, depth, patch, merged)
    key = "out_hidden_size" if newer else "hidden_size"
    if (leaves := seen.whole(key, 3584)) != (h := words_of["hidden_size"]):
        raise ValueError(
            f"{key} of vision_config of {told.name} is {leaves}, hidden_size of its words {h}; "
            "pictures stand among words: make them equal"
        )
    said: Said = {
        "text": words_of,
        "picture": {"num_hidden_layers": depth, "num_heads": heads, **picture},
        "image_size": sides(seen, "image_size", 448),
        "patch_size": patch,
        "num_channels": seen.whole("in_channels", 3),
        "frames": seen.whole("temporal_patch_size", 2),
        "merged": merged,
        "window": window,
    }
    check_keys(words.sifted(seen.said, words.CONFIG)[0], seen.asked, "vision_config")
    return "seen", said


def _plain(seen: Told, *_: int) -> tuple[Said, int]:
    """Blocks of Qwen2-VL: two products, norms that scale and shift, every patch meets all."""
    width, ratio = seen.sure("embed_dim", 1280), seen.sure("mlp_ratio", 4)
    act = seen.word("hidden_act", "quick_gelu", PLAIN)
    return {"hidden_size": width, "filter_size": width * ratio, "nonlinearity": act}, 0


def _gated(seen: Told, depth: int, patch: int, merged: int) -> tuple[Said, int]:
    """Blocks of Qwen2.5-VL: gated, norms that scale, and windows in most of them."""
    window = seen.sure("window_size", 112) // merged // patch * merged
    if not window:
        raise ValueError(
            f"window_size of {seen.name} is {seen.said['window_size']}; it must hold "
            f"{merged} x {merged} patches of {patch}: enlarge it"
        )
    key = "fullatt_block_indexes"
    seen.asked.append(key)
    found: Any = seen.said.get(key, [7, 15, 23, 31])
    if not isinstance(found, list) or any(type(i) is not int for i in cast("list[Any]", found)):
        raise ValueError(
            f"{key} of {seen.name} is {short(found)}; it must be a list of numbers of blocks: "
            "write one such as [7, 15, 23, 31]"
        )
    near = [window**2 * (i not in found) for i in range(depth)]
    return {
        "hidden_size": seen.sure("hidden_size", 3584),
        "filter_size": seen.sure("intermediate_size", 3420),
        "nonlinearity": GATES[seen.word("hidden_act", "silu", tuple(GATES))],
        "norm_type": "rmsnorm",
        "keys_met": near,
    }, window if any(near) else 0


def _words_of(told: Told) -> Said:
    """Words of Qwen 2, which stand in a part of their own or beside the picture's."""
    given: Said = {**mapping(told.said.get("text_config", {}), "text_config")}
    tied = told.flag("tie_word_embeddings", False)
    said = given or {**told.said}
    inner = Told({"max_window_layers": 80, **said, "model_type": "qwen2"}, told.name)
    inner.said["tie_word_embeddings"] = inner.flag("tie_word_embeddings", False) or tied
    found = rotary(inner, qkv_bias=True, groups=8, windowed=False)[1]
    told.asked, told.cautions = told.asked + inner.asked, told.cautions + inner.cautions
    told.names |= inner.names
    if not given:
        return found
    check_keys(words.sifted(given, words.CONFIG)[0], inner.asked, "text_config")
    told.said |= {key: given[key] for key in ("layer_types",) if key in given}
    for key in {*inner.asked} - {*ELSEWHERE}:
        if key in told.said and told.said[key] != given.get(key, told.said[key]):
            raise ValueError(
                f"{key} of {told.name} is {short(told.said[key])}, of its text_config "
                f"{short(given[key])}; both say one thing: leave one of them out"
            )
    return found


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
    "siglip2": partial(siglip, whole="Siglip2Model", resized=True),
    "qwen2_vl": qwen_vl,
    "qwen2_5_vl": partial(qwen_vl, newer=True),
    "whisper": whisper,
}
