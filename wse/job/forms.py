"""The forms in which the vendor's releases write a params file, as the sections of a run.

What changes neither weights nor data is left out; what does, and has no word here, is refused.
"""

# What a document holds has no type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Mapping
from typing import Any

from wse._document import check_keys, mapping, short
from wse.models.doors import modelzoo, words

# Where release 2.0 of the Model Zoo says what its later ones say under `precision`.
ELSEWHERE = (
    ("model", "mixed_precision"),
    ("model", "fp16_type"),
    ("optimizer", "loss_scaling_factor"),
)
LOADER = (  # of an input: how samples are fetched, not which
    "num_workers", "num_workers_per_csx", "prefetch_factor", "persistent_workers", "drop_last",
    "use_worker_cache", "use_fast_dataloader", "num_classes", "image_shape", "image_size",
    "vocab_file", "micro_batch_size", "vocab_size",
)  # fmt: skip
OTHERS = (  # of the runconfig: what weights begin with, and another arithmetic
    "checkpoint_path", "load_checkpoint_states", "is_pretrained_checkpoint", "use_cbfloat16",
    "steps_per_epoch",
)  # fmt: skip
OWN = (  # words of the runconfig here
    "max_steps", "num_epochs", "num_csx", "checkpoint_steps", "log_steps", "eval_steps", "seed",
    "model_dir", "execution_strategy",
)  # fmt: skip
INPUTS = ("train_input", "eval_input")
PLANNED = {
    "LinearLR": "Linear",
    "CosineDecayLR": "CosineDecay",
    "ConstantLR": "Constant",
    "PiecewiseConstantLR": "PiecewiseConstant",
}
HDF5 = ("GptHDF5DataProcessor", "GptHDF5MapDataProcessor")  # tokens, which count, the next ones


def sections(found: dict[str, Any], place: str) -> dict[str, Any]:
    """The sections of a document as `wse.job.Params` has them.

    Args:
        found: the document.
        place: what it is called in errors.

    Raises:
        ValueError: what of the vendor's forms has no word here.
    """
    if "trainer" in found:
        found = _of_trainer(found)
    found = {key: {**value} if isinstance(value, dict) else value for key, value in found.items()}
    model: Any = found.get("model")
    if isinstance(model, dict) and ("name" in model or modelzoo.is_modelzoo(found)):
        _sift(found)
    moved = {
        key: found[section].pop(key)
        for section, key in ELSEWHERE
        if isinstance(found.get(section), dict) and key in found[section]
    }
    if moved and "precision" in found:
        raise ValueError(
            f"{place} has precision, and {', '.join(moved)} elsewhere; it must be said once: move "
            "all into precision"
        )
    if moved:
        found["precision"] = {"mixed_precision": False, **moved}
    return found


def _sift(found: dict[str, Any]) -> None:
    """Take out of a file of the Model Zoo what changes neither weights nor data."""
    for key in ("inference_input", "predict_input", "description", "tag", "wandb"):
        found.pop(key, None)
    for section in INPUTS:
        if isinstance(given := found.get(section), dict):
            processor = given.pop("data_processor", None)
            if processor not in (None, *HDF5):
                raise ValueError(
                    f"{section}.data_processor is {short(processor)}, whose files are not read "
                    "here: write the samples as features and labels into an .npz file, name it in "
                    "data_dir, and leave data_processor out"
                )
            found[section] = {key: x for key, x in given.items() if key not in LOADER}
    if isinstance(given := found.get("runconfig"), dict):
        if "num_steps" in given:
            given.setdefault("max_steps", given.pop("num_steps"))
        for key in OTHERS:
            if given.get(key):
                raise ValueError(
                    f"runconfig.{key} is {short(given[key])}, which changes what is trained and is "
                    "not known here: leave it out to train without it"
                )
        harmless = [k for k in given if k not in OWN and words.is_among(k, words.RUNCONFIG)]
        found["runconfig"] = {key: x for key, x in given.items() if key not in harmless}
    if isinstance(given := found.get("optimizer"), dict):
        found["optimizer"] = _optimizer(given)
    if isinstance(given := found.get("model"), dict) and given.pop("use_bfloat16", None):
        given.setdefault("mixed_precision", True)
        given.setdefault("fp16_type", "bfloat16")


def _optimizer(given: dict[str, Any]) -> dict[str, Any]:
    """The words of an optimizer; those that only ask for records are left out."""
    usual = {"correct_bias": True, "bias_correction": True, "amsgrad": False, "nesterov": False}
    usual |= {"dampening": 0, "maximize": False, "centered": False}
    found: dict[str, Any] = {}
    renamed = {"weight_decay_rate": "weight_decay", "epsilon": "eps"}
    for key, value in given.items():
        if key in usual and value != usual[key]:
            raise ValueError(
                f"optimizer.{key} is {short(value)}; {usual[key]} alone is done here: leave it out"
            )
        if key in usual or key in ("log_summaries", "ws_summary", "log_grads"):
            continue
        found[renamed.get(key, key)] = value
    if isinstance(kind := found.get("optimizer_type"), str):
        known = {name.lower(): name for name in modelzoo.OPTIMIZERS}
        found["optimizer_type"] = known.get(kind.lower(), kind)
    return found


def _of_trainer(found: Mapping[str, Any]) -> dict[str, Any]:
    """The `trainer` form in the sections of the older one."""
    flat, _ = modelzoo.flattened(found)
    trainer = mapping(found["trainer"], "trainer")
    init, fit = mapping(trainer["init"], "trainer.init"), mapping(trainer.get("fit") or {}, "fit")
    loop, config = init.get("loop") or {}, dict(flat.get("runconfig") or {})
    config |= {key: loop[key] for key in ("num_epochs", "eval_steps") if loop.get(key)}
    config |= {key: init[key] for key in ("seed", "model_dir") if init.get(key) is not None}
    if steps := (init.get("checkpoint") or {}).get("steps"):
        config["checkpoint_steps"] = steps
    if steps := (init.get("logging") or {}).get("log_steps"):
        config["log_steps"] = steps
    optimizer = dict(flat.get("optimizer") or {})
    if plans := init.get("schedulers"):
        optimizer["learning_rate"] = _planned(plans)
    precision = dict(init.get("precision") or {})
    for key in ("max_gradient_norm",):
        if precision.get(key) is not None:
            optimizer[key] = precision.pop(key)
    if fit.get("ckpt_path"):
        raise ValueError(
            f"trainer.fit.ckpt_path is {short(fit['ckpt_path'])}; training begins with first "
            "weights, or where its own model_dir ended: leave it out"
        )
    made: dict[str, Any] = {**flat, "runconfig": config, "optimizer": optimizer}
    made["model"] = {
        key: value
        for key, value in flat.get("model", {}).items()
        if key not in ("mixed_precision", "fp16_type")
    }
    if precision:
        made["precision"] = _precision(precision)
    if evaluated := fit.get("val_dataloader"):
        first = evaluated[0] if isinstance(evaluated, list) else evaluated
        made["eval_input"] = dict(mapping(first, "trainer.fit.val_dataloader"))
    return made


def _precision(given: dict[str, Any]) -> dict[str, Any]:
    known = {"enabled": "mixed_precision", "fp16_type": "fp16_type"}
    known["loss_scaling_factor"] = "loss_scaling_factor"
    inert = ("log_loss_scale", "precision_opt_level", "type")
    check_keys(given, (*known, *inert), "trainer.init.precision")
    return {known[key]: value for key, value in given.items() if key in known}


def _planned(found: Any) -> Any:
    """Schedules after one another, in the words of the older form."""
    plans: list[Any] = []
    for entry in found if isinstance(found, list) else [found]:
        ((name, said),) = mapping(entry, "an entry of trainer.init.schedulers").items()
        if name == "SequentialLR":
            plans += _planned(mapping(said, name)["schedulers"])
        elif name in PLANNED:
            plans.append({"scheduler": PLANNED[name], **mapping(said, name)})
        else:
            known = ", ".join(["SequentialLR", *PLANNED])
            raise ValueError(f"trainer.init.schedulers has {short(name)}; known are {known}")
    return plans
