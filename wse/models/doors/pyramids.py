"""Classifiers of images in stages by the words of Hugging Face: ConvNeXt 1 and 2, Swin 1 and 2.

Sources: the configurations and classes of these models in huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from wse._document import short
from wse.models.doors.bidirectional import sides
from wse.models.doors.decoders import PLAIN, Count
from wse.models.doors.encoders import Read
from wse.models.doors.told import Said, Told
from wse.models.shapes.stages import Stages, convnext
from wse.models.shapes.windowed import Windowed, swin


@dataclass(frozen=True)
class Staged:
    """Words of a ConvNeXt."""

    hidden_sizes: tuple[Count, ...]
    depths: tuple[Count, ...]
    image_size: tuple[Count, Count]
    patch_size: tuple[Count, Count]
    num_channels: Count
    num_labels: Count
    scaled: bool
    evened: bool
    hidden_act: str


def shrinking(name: str, said: Staged, *_: Any) -> Read:
    """A classifier of images by filters."""
    net = Stages(
        said.hidden_sizes,
        said.depths,
        said.image_size,
        said.num_channels,
        said.patch_size,
        said.num_labels,
        said.scaled,
        said.evened,
        said.hidden_act,
    )
    return convnext(name, net), net, ()


def convnext_v1(told: Told) -> tuple[str, Said]:
    """ConvNeXt, with a factor for what each block adds unless it begins at 0 or below."""
    key = "layer_scale_init_value"
    told.asked.append(key)
    scale: Any = told.said.get(key, 1e-6)
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise ValueError(f"{key} of {told.name} is {short(scale)}; it must be a number: correct it")
    return "convnext", {**_common(told), "scaled": scale > 0, "evened": False}


def convnext_v2(told: Told) -> tuple[str, Said]:
    """ConvNeXt V2, whose channels are weighed by their share of all."""
    return "convnext", {**_common(told), "scaled": False, "evened": True}


def _common(told: Told) -> Said:
    told.headed(("ImageClassification",))
    widths = _each(told, "hidden_sizes", [96, 192, 384, 768])
    depths = _each(told, "depths", [3, 3, 9, 3])
    stages = told.whole(told.either("num_stages", "num_hidden_layers"), 4)
    if not len(widths) == len(depths) == stages:
        raise ValueError(
            f"num_stages of {told.name} is {stages}, of hidden_sizes there are {len(widths)}, of "
            f"depths {len(depths)}; all must be one number: correct one of them"
        )
    return {
        "hidden_sizes": widths,
        "depths": depths,
        "image_size": sides(told, "image_size", 224),
        "patch_size": sides(told, "patch_size", 4),
        "num_channels": told.whole("num_channels", 3),
        "num_labels": told.labels(),
        "hidden_act": told.word("hidden_act", "gelu", PLAIN),
    }


def _each(told: Told, key: str, usual: list[int]) -> list[Any]:
    """A number of each stage."""
    told.asked.append(key)
    found: Any = told.said.get(key, usual)
    if not isinstance(found, list) or not found:
        raise ValueError(
            f"{key} of {told.name} is {short(found)}; it must be a list with a number for each "
            f"stage: write one such as {usual}"
        )
    return cast("list[Any]", found)


@dataclass(frozen=True)
class Shifted:
    """Words of a Swin transformer."""

    embed_dim: Count
    depths: tuple[Count, ...]
    num_heads: tuple[Count, ...]
    filters: tuple[Count, ...]
    image_size: tuple[Count, Count]
    patch_size: tuple[Count, Count]
    num_channels: Count
    window_size: Count
    num_labels: Count
    qkv_bias: bool
    use_absolute_embeddings: bool
    hidden_act: str
    cosines: bool = False


def shifted(name: str, said: Shifted, *_: Any) -> Read:
    """A classifier of images by attention within windows."""
    net = Windowed(
        said.embed_dim,
        said.depths,
        said.num_heads,
        said.filters,
        said.image_size,
        said.num_channels,
        said.patch_size,
        said.window_size,
        said.num_labels,
        said.qkv_bias,
        said.use_absolute_embeddings,
        said.hidden_act,
        said.cosines,
    )
    doubt = "what stands for places within windows is made once for a batch; here with every sample"
    return swin(name, net), net, (doubt,) * said.cosines


def swin_v1(told: Told) -> tuple[str, Said]:
    """Swin, whose sizes double from stage to stage."""
    told.headed(("ImageClassification",))
    depths = _each(told, "depths", [2, 2, 6, 2])
    heads, width = _each(told, "num_heads", [3, 6, 12, 24]), told.sure("embed_dim", 96)
    stages, last = told.whole("num_layers", len(depths)), width << (len(depths) - 1)
    wide = told.whole("hidden_size", last)
    if stages != len(depths) or wide != last:
        raise ValueError(
            f"num_layers of {told.name} is {stages}, hidden_size {wide}; "
            f"of depths there are {len(depths)}, and the last stage has {last} features: correct "
            "one of them"
        )
    told.asked.append("mlp_ratio")
    ratio: Any = told.said.get("mlp_ratio", 4.0)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 1e6:
        raise ValueError(
            f"mlp_ratio of {told.name} is {short(ratio)}; it must be a positive number: correct it"
        )
    return "swin", {
        "embed_dim": width,
        "depths": depths,
        "num_heads": heads,
        "filters": [int(ratio * (width << i)) for i in range(len(depths))],
        "image_size": sides(told, "image_size", 224),
        "patch_size": sides(told, "patch_size", 4),
        "num_channels": told.whole("num_channels", 3),
        "window_size": told.whole("window_size", 7),
        "num_labels": told.labels(),
        "qkv_bias": told.flag("qkv_bias", True),
        "use_absolute_embeddings": told.flag("use_absolute_embeddings", False),
        "hidden_act": told.word("hidden_act", "gelu", PLAIN),
    }


def swin_v2(told: Told) -> tuple[str, Said]:
    """Swin 2: scores are cosines, and a small net tells places within windows apart."""
    why = "the class adds one place more than there are patches, and so cannot run"
    told.only("use_absolute_embeddings", False, why)
    sizes = _each(told, "pretrained_window_sizes", [0, 0, 0, 0])
    family, said = swin_v1(told)
    stages = len(said["depths"])
    if len(sizes) < stages or any(type(n) is not int or n < 0 for n in sizes):
        raise ValueError(
            f"pretrained_window_sizes of {told.name} is {short(sizes)}; it must have a whole "
            f"number for each of {stages} stages, 0 where there was none: correct it"
        )
    return family, {**said, "cosines": True}


READERS: Mapping[str, Callable[[Told], tuple[str, Said]]] = {
    "convnext": convnext_v1,
    "convnextv2": convnext_v2,
    "swin": swin_v1,
    "swinv2": swin_v2,
}
