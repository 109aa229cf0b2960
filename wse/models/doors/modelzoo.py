"""A params file of the vendor's Model Zoo, as it stands: `trainer:`, or `model:` and its kin.

Every key is understood, listed as harmless, or refused by name.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from wse import _document
from wse._document import check_keys, mapping, short, typed
from wse._numbers import positive
from wse.models.doors import words
from wse.models.doors.decoders import LENGTHS
from wse.models.doors.families import family_of, read_family
from wse.models.doors.given import ReadModel, Sparse
from wse.models.shapes.workload import Workload

SECTIONS = (
    "train_input", "eval_input", "inference_input", "predict_input", "model", "optimizer",
    "runconfig", "sparsity", "csconfig", "cerebras", "description", "tag", "wandb",
)  # fmt: skip
OPTIMIZERS = (
    "SGD", "Adam", "AdamW", "AdamBase", "Adagrad", "Adadelta", "Adafactor", "Adamax", "ASGD",
    "Lamb", "Lion", "NAdam", "RAdam", "RMSprop", "Rprop", "Muon",
)  # fmt: skip
MAPPINGS = (*SECTIONS[:7], "csconfig")
FIT = ("train_dataloader", "val_dataloader", "ckpt_path", "validate_at_start")
SAID = ("batch_size", "micro_batch_size", "max_sequence_length")  # of the input
OF_INPUT = {
    "unet": ("image_shape", "num_classes"),
    "pair": ("src_max_sequence_length", "tgt_max_sequence_length"),
}
BESIDE = OF_INPUT["pair"]
# what model and input may both say
TWICE = ("image_size", "image_shape", "num_classes", "num_labels", "vocab_size")
TOLD = ("num_csx", "micro_batch_size", "max_steps", "num_steps", "fp16_type", "use_cbfloat16")
TYPES = ("float16", "bfloat16", "cbfloat16")


def is_modelzoo(found: Mapping[str, Any]) -> bool:
    """Whether a document is one of the Model Zoo, and not one that `wse run` trains."""
    model = found.get("model")
    return "trainer" in found or (isinstance(model, dict) and family_of(cast("Any", model)) != "")


def from_document(found: Mapping[str, Any], name: str, sequence: int | None = None) -> ReadModel:
    """A model of a params file that has been read.

    Args:
        found: what is in the file.
        name: what tables call the model.
        sequence: tokens per sample; None: what the file says.

    Raises:
        ValueError: an unknown model or key (with the nearest that is known), or values that
            contradict each other.
    """
    flat, above = flattened(found) if "trainer" in found else ({**found}, ())
    check_keys(flat, SECTIONS, name)
    if "model" not in flat:
        raise ValueError(f"{name} has no model; it must say which: add a section model:")
    parts = {key: mapping(flat.get(key) or {}, key) for key in MAPPINGS if key in flat}
    entered = {**(parts.get("train_input") or parts.get("eval_input") or {})}
    for section in ("runconfig", "csconfig"):
        for key in parts.get(section, {}):
            if key not in TOLD and (meant := get_close_matches(key, TOLD, n=1, cutoff=0.85)):
                raise ValueError(
                    f"{section} has the key {key!r}, which is not known: did you mean {meant[0]!r}?"
                )
    for key in SAID:
        near = get_close_matches(key, set(entered) - set(BESIDE), n=1, cutoff=0.84)
        if key not in entered and near:
            raise ValueError(
                f"the input has the key {near[0]!r}, which is not known: did you mean {key!r}?"
            )
    if sequence is not None:
        entered |= dict.fromkeys(LENGTHS, sequence)
    said, config = parts["model"], parts.get("runconfig", {})
    if own := [key for key in said if key in words.OURS or said[key] == words.BARE]:
        raise ValueError(
            f"model.{own[0]} is {short(said[own[0]])}, which is no word of the Model Zoo: leave it "
            "out, or pass the model's config.json"
        )
    _agree(("model", said), ("the input", entered), TWICE)
    _agree(("runconfig", config), ("the input", entered), ("micro_batch_size",))
    steps = {"num_steps": config.get("max_steps")}
    _agree(("runconfig", config), ("its max_steps", steps), ("num_steps",))
    if config.get("micro_batch_size") is not None:
        entered.setdefault("micro_batch_size", config["micro_batch_size"])
    optimizer = _optimizer(parts.get("optimizer", {}))
    rest, _ = words.sifted(config, words.RUNCONFIG)
    check_keys(rest, words.RUNCONFIG, "runconfig")
    family, made, net, doubts, passed = read_family(said, entered, name)
    sparse = _sparsity(flat.get("sparsity"))
    left_out = [*above, *(f"model.{key}" for key in passed)]
    for section, keys in parts.items():
        if section not in ("model", "optimizer", "sparsity"):
            told = (*SAID, *OF_INPUT.get(family, ())) if section == "train_input" else TOLD
            left_out += [f"{section}.{key}" for key in keys if key not in told]
    return ReadModel(
        sparse.thinned(made) if sparse else made,
        family,
        net,
        batch=_count("batch_size", entered.get("batch_size")),
        micro_batch=_count("micro_batch_size", entered.get("micro_batch_size"), lenient=True),
        systems=_count("runconfig.num_csx", config.get("num_csx")),
        steps=_count("max_steps", config.get("max_steps", config.get("num_steps"))),
        precision=_precision(said, config, parts.get("csconfig", {})),
        sparsity=sparse,
        optimizer=optimizer,
        harmless=tuple(left_out),
        cautions=(*doubts, *_unread(entered), *_unmet(sparse, made)),
    )


def _agree(
    first: tuple[str, Mapping[str, Any]],
    second: tuple[str, Mapping[str, Any]],
    keys: tuple[str, ...],
) -> None:
    """Refuse two sections that say one size differently; a side stands for a square."""
    for key in keys:
        one, two = (found[1].get(key) for found in (first, second))
        if (
            one is not None
            and two is not None
            and two not in (one, [one, one])
            and one != [two] * 2
        ):
            raise ValueError(
                f"{key} of {first[0]} is {short(one)}, of {second[0]} {short(two)}; both say one "
                "size: correct one of them"
            )


def _unread(entered: Mapping[str, Any]) -> tuple[str, ...]:
    said = entered.get("micro_batch_size")
    if said is not None and not isinstance(said, int):
        return (f"micro_batch_size is {short(said)}: it is chosen here as large as fits",)
    return ()


def _unmet(sparse: Sparse | None, made: Workload) -> tuple[str, ...]:
    if sparse and sparse.patterns and sparse.share and sparse.thinned(made) == made:
        return (f"sparsity: no weights of a block are named by {short(sparse.patterns)}",)
    return ()


def flattened(found: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The `trainer` form in the sections of the older one, and what of it is harmless."""
    check_keys(found, ("trainer",), "the file")
    if isinstance(found["trainer"], list):
        count = len(cast("list[Any]", found["trainer"]))
        raise ValueError(
            f"trainer lists {count} phases; one is read at a time: put one into a file of its own"
        )
    trainer = _section(found, "", "trainer", ("init", "fit", "validate", "validate_all", "name"))
    init = _section(trainer, "trainer.", "init", words.INIT)
    fit = _section(trainer, "trainer.", "fit", FIT)
    one = _section(init, "trainer.init.", "precision", words.PRECISION)
    loop = _section(init, "trainer.init.", "loop", words.LOOP)
    backend = _section(init, "trainer.init.", "backend")
    cluster = _section(backend, "", "cluster_config")
    rest, _ = words.sifted(cluster, words.CLUSTER)
    check_keys(rest, words.CLUSTER, "cluster_config")
    seen = {"num_csx": cluster.get("num_csx"), "max_steps": loop.get("max_steps")}
    seen |= {"num_steps": loop.get("num_steps")}
    data = {**mapping(_one(fit.get("train_dataloader")), "trainer.fit.train_dataloader")}
    micro, flags = _callbacks(init.get("callbacks") or [])
    if micro is not None:
        data["micro_batch_size"] = micro
    model = {**_section(init, "trainer.init.", "model")}
    if one.get("enabled") is not None:
        model["mixed_precision"] = one["enabled"]
    if one.get("fp16_type"):
        model["fp16_type"] = one["fp16_type"]
    flat = {
        "train_input": data,
        "model": model,
        "optimizer": _named(init.get("optimizer")),
        "runconfig": {key: value for key, value in seen.items() if value is not None},
        "sparsity": init.get("sparsity"),
    }
    if not model:
        del flat["model"]
    read = ("model", "optimizer", "sparsity", "precision", "callbacks")
    harmless = [f"trainer.init.{key}" for key in init if key not in read]
    harmless += [f"trainer.{key}" for key in trainer if key.startswith("validate")]
    harmless += [f"trainer.fit.{key}" for key in fit if key != "train_dataloader"]
    harmless += [f"trainer.init.callbacks.{key}" for key in flags]
    said = {key: value for key, value in flat.items() if value is not None}
    return said, tuple(harmless)


def _section(
    found: Mapping[str, Any], above: str, key: str, known: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A section, empty where it is not there; all of its keys are known, if these are given."""
    said = mapping(found.get(key) or {}, f"{above}{key}")
    if known:
        check_keys(said, known, f"{above}{key}")
    return said


def _one(found: Any) -> Any:
    if not isinstance(found, list):
        return cast("Any", found or {})
    several = cast("list[Any]", found)
    if len(several) != 1:
        raise ValueError(
            f"trainer.fit.train_dataloader lists {len(several)} entries; one is trained on: leave "
            "that alone"
        )
    return several[0]


def _named(found: Any) -> dict[str, Any] | None:
    """An optimizer written `AdamW: {...}` with its name among its settings."""
    if found is None:
        return None
    said = mapping(found, "trainer.init.optimizer")
    if len(said) != 1:
        raise ValueError(
            f"trainer.init.optimizer has {len(said)} entries; it must have one, an optimizer's "
            "name with its settings below: write AdamW: {...}"
        )
    ((name, settings),) = said.items()
    return {"optimizer_type": name, **mapping(settings or {}, f"trainer.init.optimizer.{name}")}


def _callbacks(found: Any) -> tuple[int | None, tuple[str, ...]]:
    """The micro-batch that callbacks set, and the names of the others, which are harmless."""
    micro: int | None = None
    names: list[str] = []
    for entry in cast("list[Any]", found if isinstance(found, list) else [found]):
        for name, settings in mapping(entry, "an entry of trainer.init.callbacks").items():
            if name in ("Lora", "LoRA", "SelectiveGrad"):
                raise ValueError(
                    f"trainer.init.callbacks has {name}, which changes what is trained; that is "
                    "not counted here: leave it out to have the whole model"
                )
            names.append(name)
            if isinstance(settings, dict) and name in ("ScopedTrainFlags", "GlobalFlags"):
                flags = cast("dict[str, Any]", settings)
                micro = flags.get("csx.performance.micro_batch_size", micro)
    return micro, tuple(names)


def _optimizer(found: Mapping[str, Any]) -> dict[str, Any]:
    check_keys(found, words.OPTIMIZER, "optimizer")
    name = found.get("optimizer_type")
    if name is None:
        return {**found}
    known = {one.lower(): one for one in OPTIMIZERS}
    if str(name).lower() not in known:
        near = _document.nearest(str(name), OPTIMIZERS)
        raise ValueError(f"optimizer is {short(name)}, which is not known: {near}")
    return {**found, "optimizer_type": known[str(name).lower()]}


def _precision(*sections: Mapping[str, Any]) -> str | None:
    model, _, old = sections
    for found in sections:
        for key in ("mixed_precision", "use_bfloat16", "use_cbfloat16"):
            if found.get(key) is not None and not isinstance(found[key], bool):
                raise ValueError(
                    f"{key} is {short(found[key])}; it must {typed.RULES['bool_type']}"
                )
    if model.get("mixed_precision") is False:
        return "float32"
    if old.get("use_cbfloat16"):
        return "cbfloat16"
    if model.get("use_bfloat16"):
        return "bfloat16"
    kind = next((found["fp16_type"] for found in sections if found.get("fp16_type")), None)
    if kind is None:
        return "float16" if model.get("mixed_precision") else None
    if kind not in TYPES:
        near = _document.nearest(str(kind), TYPES)
        raise ValueError(f"fp16_type is {short(kind)}, which is not known: {near}")
    return str(kind)


def _sparsity(found: Any) -> Sparse | None:
    if not found:
        return None
    if isinstance(found, list):
        groups = cast("list[Any]", found)
        if len(groups) != 1:
            raise ValueError(
                f"sparsity has {len(groups)} groups; one is read: leave one, with all its patterns"
            )
        found = groups[0]
    said = mapping(found, "sparsity")
    rest, _ = words.sifted(said, words.SPARSITY)
    check_keys(rest, words.SPARSITY, "sparsity")
    share = said.get("sparsity")
    if not isinstance(share, float | int) or isinstance(share, bool) or not 0 <= share < 1:
        raise ValueError(
            f"sparsity.sparsity is {short(share)}; it must be a share of zeros at least 0 and "
            "below 1: write one such as 0.75"
        )
    names = said.get("param_filter") or said.get("param_name_patterns") or ()
    several = cast("list[Any]", names) if isinstance(names, list | tuple) else [names]
    for key, one in (("patterns", several), ("algorithm", [said.get("algorithm") or "static"])):
        if wrong := [each for each in one if not isinstance(each, str)]:
            rule = typed.RULES["string_type"]
            raise ValueError(f"{key} of sparsity have {short(wrong[0])}; each must {rule}")
    patterns = tuple(map(str, several))
    kind = str(said.get("algorithm") or said.get("type") or "static")
    return Sparse(float(share), kind, patterns)


def _count(name: str, said: Any, lenient: bool = False) -> int | None:
    if said is None or (lenient and not isinstance(said, int)):
        return None
    return positive(name, said, "correct it")
