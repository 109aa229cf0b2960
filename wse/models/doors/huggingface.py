"""A Hugging Face `config.json`, put into the words of the Model Zoo, which are then counted.

Sources: the classes that `model_type` names in huggingface/transformers, and their defaults.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from wse import _document
from wse._document import nearest, short
from wse.models.doors import bidirectional, causal, joined, mixtures, pyramids, words
from wse.models.doors.decoders import LENGTHS
from wse.models.doors.families import read_words
from wse.models.doors.given import ReadModel
from wse.models.doors.told import Told

DTYPES = ("float32", "float16", "bfloat16")
TWICE = "stands twice, and the last would hold"
LAYERS = ("full_attention", "sliding_attention")
OTHERS = {  # known, and why they are not counted
    **dict.fromkeys(("resnet", "mobilenet_v2"), "convolutions"),
    **dict.fromkeys(("wav2vec2", "hubert"), "convolutions of sound before the blocks"),
    "chinese_clip": "two encoders that are trained together",
    **dict.fromkeys(("bart", "mbart", "marian", "pegasus"), "encoder and decoder, other than T5's"),
    "rwkv": "states, no attention",
    **dict.fromkeys(("jamba", "bamba", "zamba2", "falcon_h1"), "state spaces beside attention"),
    **dict.fromkeys(("llama4", "phimoe", "dbrx"), "experts of other kinds"),
    **dict.fromkeys(("llava", "mllama", "gemma3n"), "pictures and words"),
}
READERS: Mapping[str, Callable[[Told], tuple[str, dict[str, Any]]]] = {
    **causal.READERS,
    **mixtures.READERS,
    **bidirectional.READERS,
    **joined.READERS,
    **pyramids.READERS,
}


def read_json(path: Path) -> Mapping[str, Any]:
    """The object that a JSON file holds.

    Raises:
        ValueError: no such file, one too large, text that is no JSON, or JSON that is no object.
    """
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(f"{path} is no file; it must be a config.json: check the path")
    if path.stat().st_size > _document.MOST_BYTES:
        raise ValueError(
            f"{path} is larger than {_document.MOST_BYTES} bytes; it is no config.json"
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        what = "says a thing twice" if TWICE in str(error) else "is no JSON text in UTF-8"
        raise ValueError(f"{path} {what} ({error}): correct it, or save it again") from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} holds {type(found).__name__}; a config.json holds names and values, as "
            '{"model_type": "llama", ...}'
        )
    return cast("dict[str, Any]", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Names and values, of which JSON would keep the last where a name stands twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {short(twice)} {TWICE}")
    return found


def from_config(found: Mapping[str, Any], name: str, sequence: int | None = None) -> ReadModel:
    """A model of a configuration that has been read.

    Args:
        found: what is in the file.
        name: what tables call the model.
        sequence: tokens per sample; None: as many as there are positions.

    Raises:
        ValueError: an unknown `model_type`, a key that is not known, a value of another type, a
            size that is missing, a class whose head is not counted, or values that contradict
            each other.
    """
    told = Told(found, name)
    said, kind = told.said, "model_type"
    if kind not in said:
        raise ValueError(f"{name} has no model_type; it must say which model: add one")
    why = OTHERS.get(str(said[kind]), "")
    if not why and "text_config" in said and said[kind] not in READERS:
        why = "words and more; its text_config in a file of its own may give those of words"
    if why:
        raise ValueError(
            f"model_type of {name} is {short(said[kind])}, of which a part is not counted from its "
            f"configuration ({why}): build it with transformers and pass wse.from_torch(module, "
            "example)"
        )
    known = words.meant(str(said[kind]), READERS)
    if known != said[kind]:
        hint = f"did you mean {known!r}? If not, " if known else f"known are {', '.join(READERS)}; "
        raise ValueError(
            f"model_type of {name} is {short(said[kind])}, which is not known: {hint}"
            "build it with transformers and pass wse.from_torch(module, example)"
        )
    if known in {**causal.READERS, **mixtures.READERS}:
        told.headed(causal.HEADS)
    family, model = READERS[known](told)
    harmless = _harmless(told)
    precision = _precision(told)
    entered = {} if sequence is None else dict.fromkeys(LENGTHS, sequence)
    try:
        made, net, doubts = read_words(family, model, entered, name)
    except ValueError as error:
        raise ValueError(told.theirs(str(error))) from error
    return ReadModel(
        made,
        family,
        net,
        precision=precision,
        harmless=harmless,
        cautions=(*told.cautions, *map(told.theirs, doubts)),
    )


def _harmless(told: Told) -> tuple[str, ...]:
    """The keys that were not asked for and change no count; another is refused."""
    left = {key: value for key, value in told.said.items() if key not in told.asked}
    rest, harmless = words.sifted(left, words.CONFIG)
    for key in rest:
        near = nearest(key, told.asked)
        raise ValueError(
            f"{told.name} has the key {short(key)}, which is not known of "
            f"{told.said['model_type']}: {near}"
        )
    if heads := left.get("pruned_heads"):
        raise ValueError(
            f"pruned_heads of {told.name} is {short(heads)}; heads that were taken out are not "
            "counted: leave it out to have the whole model"
        )
    if left.get("add_cross_attention"):
        raise ValueError(
            f"add_cross_attention of {told.name} is {short(left['add_cross_attention'])}; products "
            "that read another sequence are not counted: write false to have the rest"
        )
    kinds: Any = left.get("layer_types") or []
    rule = f"it must be a list of {' and '.join(LAYERS)}: other layers are not counted"
    if not isinstance(kinds, list):
        raise ValueError(f"layer_types of {told.name} is {short(kinds)}; {rule}")
    if odd := [one for one in cast("list[Any]", kinds) if one not in LAYERS]:
        raise ValueError(f"layer_types of {told.name} has {short(odd[0])}; {rule}")
    return harmless


def _precision(told: Told) -> str | None:
    """The precision of the weights, where the file says one that is trained in."""
    key = "torch_dtype" if "torch_dtype" in told.said else "dtype"
    found = told.word(key, "") or ""
    kind = found.removeprefix("torch.")
    if kind and kind not in DTYPES:
        told.cautions.append(f"{key} is {short(found)}: the precision is chosen here")
    return kind if kind in DTYPES else None
