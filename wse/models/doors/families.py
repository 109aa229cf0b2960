"""Which family of the Model Zoo a `model` section is of, and what each makes of its words."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from wse._document import short, typed
from wse.models.doors import words
from wse.models.doors.chains import FullyConnected, Unet, fully_connected, unet
from wse.models.doors.decoders import PARALLEL, Decoder, Experts, Groups, decoder
from wse.models.doors.encoders import (
    Diffused,
    Encoder,
    Pair,
    Picture,
    diffused,
    encoder,
    pair,
    picture,
)
from wse.models.doors.joined import Heard, Paired, Seen, captioned, listened, pictured
from wse.models.doors.mixtures import Spaced, spaced
from wse.models.doors.pyramids import Shifted, Staged, shifted, shrinking
from wse.models.shapes.workload import Workload

DECODERS = """
gpt2 gpt3 gpt llama llama2 llama3 mistral mixtral bloom btlm jais gemma2 gemma santacoder starcoder
octocoder wizardcoder sqlcoder mpt opt GPT2LMHeadModel
"""
NAMES = {  # what `model.name` says, and the family
    **dict.fromkeys(DECODERS.split(), "decoder"),
    **dict.fromkeys(PARALLEL, "parallel"),
    **dict.fromkeys(["bert", "roberta", "esm2"], "masked"),
    "bert/classifier": "classes",
    "bert/token_classifier": "tags",
    "bert/qa": "spans",
    "bert/extractive_summarization": "sentences",
    "esm2/classification": "classes",
    **dict.fromkeys(["t5", "transformer"], "pair"),
    **dict.fromkeys(("vision_transformer", "vit", "ViTClassificationModel"), "picture"),
    **dict.fromkeys(("dit", "dit_model"), "diffused"),
    **dict.fromkeys(("unet", "unet_model"), "unet"),
    "fc_mnist": "fc_mnist",
}
OTHERS = {  # known, and why they are not answered
    "dino": "it trains a teacher, a student and their heads, which are not counted",
    "dpo": "it runs two copies of a model, which are not counted",
    "dpr": "it trains two encoders side by side, which are not counted",
    "llava": "it joins an image encoder and a language model, which are not counted",
    "multimodal_simple": "it joins several encoders, which are not counted",
    "generic_image_encoders": "it joins several encoders, which are not counted",
    "linformer": "attention with few keys is not counted",
    "rl": "it runs several copies of a model, which are not counted",
}
TELLING = {  # words that one family alone has, and the family
    "encoder_filters": "unet",
    **dict.fromkeys(("vae", "frequency_embedding_size"), "diffused"),
    "patch_size": "picture",
    **dict.fromkeys(("src_vocab_size", "d_kv"), "pair"),
}
PROCESSORS = {  # heads on BERT that older files tell by their data alone
    "TokenClassifier": "tags",
    "BertQA": "spans",
    "BertSum": "sentences",
    "MNLI": "classes",
    "SST2": "classes",
    "Classifier": "classes",
}
Reader = Callable[[str, Any, str, Mapping[str, Any]], Any]
Made = tuple[str, Workload, Any, tuple[str, ...], tuple[str, ...]]


def family_of(model: Mapping[str, Any], processor: str = "") -> str:
    """The family of a `model` section; empty where nothing tells.

    Older files name none, so that words which one family alone has tell it.

    Raises:
        ValueError: a name that is not known, or of a model that is not answered.
    """
    said = model.get("name")
    if said is not None:
        return _named(said)
    if told := [family for word, family in TELLING.items() if word in model]:
        return told[0]
    if "encoder_nonlinearity" in model or "mlm_loss_weight" in model:
        kinds = [kind for word, kind in PROCESSORS.items() if word in processor]
        labels = "classes" if "num_labels" in model else "masked"
        return kinds[0] if kinds else labels
    if "num_hidden_layers" in model and "num_heads" in model:
        parallel = "residual_dropout_rate" in model or "use_untied_layer_norm" in model
        return "parallel" if parallel else "decoder"
    if "depth" in model and "hidden_size" in model:
        return "fc_mnist"
    return ""


def _named(said: Any) -> str:
    name = str(said)
    if name in NAMES:
        return NAMES[name]
    if name in OTHERS:
        raise ValueError(f"model.name is {name!r}: {OTHERS[name]}; pass a model of one stack")
    near = words.meant(name, NAMES)
    hint = f"did you mean {near!r}?" if near else f"known are {', '.join(NAMES)}"
    raise ValueError(f"model.name is {short(said)}, which is not known: {hint}")


def read_family(model: Mapping[str, Any], entered: Mapping[str, Any], name: str) -> Made:
    """A workload of a `model` section, what it was counted from, doubts, and harmless keys.

    Args:
        model: the section.
        entered: the input's section.
        name: what tables call it.

    Raises:
        ValueError: an unknown model or key, or values that do not fit together.
    """
    kind = family_of(model, str(entered.get("data_processor", "")))
    if not kind:
        raise ValueError(
            f"the model of {name} is of no known family; it must have a name such as gpt3, or the "
            "words of one: add model.name"
        )
    said = {**model}
    if "position_embedding_type" in said and said["position_embedding_type"] is None:
        said["position_embedding_type"] = "none"
    rest, passed = words.sifted(said, words.MODEL)
    make = READERS[kind][0]
    told = {field.name for field in fields(make)}
    # A word with a star may be one that this family counts.
    rest |= {key: said[key] for key in passed if key in told and said[key] is not None}
    passed = tuple(key for key in passed if key not in told)
    for key, of, out in (("moe", Experts, words.MOE), ("extra_attention_params", Groups, ())):
        if isinstance(rest.get(key), dict) and key in told:
            inner, more = words.sifted(rest[key], out)
            rest[key] = typed.made(of, inner, f"model.{key}")
            passed += tuple(f"{key}.{one}" for one in more)
    workload, net, doubts = read_words(kind, rest, entered, name)
    return kind, workload, net, doubts, passed


def read_words(
    kind: str, said: Mapping[str, Any], entered: Mapping[str, Any], name: str
) -> tuple[Workload, Any, tuple[str, ...]]:
    """A workload of the words of a family, what it was counted from, and doubts."""
    make, read = READERS[kind]
    return read(name, typed.made(make, {**said}, "model", name), kind, entered)


READERS: Mapping[str, tuple[Any, Reader]] = {
    **dict.fromkeys(("decoder", "parallel"), (Decoder, decoder)),
    **dict.fromkeys(("masked", "classes", "tags", "spans", "sentences"), (Encoder, encoder)),
    "pair": (Pair, pair),
    "picture": (Picture, picture),
    "diffused": (Diffused, diffused),
    "captions": (Paired, captioned),
    "heard": (Heard, listened),
    "seen": (Seen, pictured),
    "recurrent": (Spaced, spaced),
    "convnext": (Staged, shrinking),
    "swin": (Shifted, shifted),
    "unet": (Unet, unet),
    "fc_mnist": (FullyConnected, fully_connected),
}
