"""The params file of a run, with the keys that users of the real machine know.

train_input: {data_dir: data/train, batch_size: 100, shuffle: true}
eval_input: {data_dir: data/eval, batch_size: 100}
model: {hidden_sizes: [128, 128], activation_fn: swish, loss: mse}
optimizer: {optimizer_type: Adam, learning_rate: 1.0e-3}
runconfig: {max_steps: 1000, num_csx: 2, checkpoint_steps: 100}
sparsity: {type: rigl, sparsity: 0.75}
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from wse import _document

Section = TypeVar("Section")


def _counts(section: Any, *names: str) -> None:
    for name in names:
        if getattr(section, name) < 1:
            raise ValueError(
                f"{name} is {getattr(section, name)}; it must be a positive integer: "
                f"write {name}: 100"
            )


def _within(section: Any, name: str, rule: str, holds: Callable[[float], bool]) -> None:
    """Refuse a number that breaks its rule; NaN breaks all of them."""
    value = getattr(section, name)
    if not (isfinite(value) and holds(value)):
        raise ValueError(f"{name} is {value:g}; it must be {rule}: correct that line")


@dataclass(frozen=True)
class Input:
    """Where samples come from.

    Attributes:
        data_dir: a folder of .npz files, or one .npz or netCDF file; samples lead every array.
        batch_size: samples of a step, on all systems together.
        shuffle: whether each epoch has its own order.
        shuffle_seed: of these orders.
        features: the array that enters the model.
        labels: the array that its output is compared with.

    Raises:
        ValueError: a batch that is not a positive integer.
    """

    data_dir: str
    batch_size: int
    shuffle: bool = True
    shuffle_seed: int = 0
    features: str = "features"
    labels: str = "labels"

    def __post_init__(self) -> None:
        _counts(self, "batch_size")


@dataclass(frozen=True)
class Optimizer:
    """How weights are updated.

    Attributes:
        optimizer_type: SGD, Adam, AdamW, Adagrad, Adafactor, Lamb, Lion, NAdam, RAdam or RMSprop.
        learning_rate: of every step.
        momentum: of SGD and RMSprop.
        weight_decay: of AdamW, Lamb and Lion.
        max_gradient_norm: the global norm to which gradients are clipped; None: they are not.
    """

    optimizer_type: str = "Adam"
    learning_rate: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    max_gradient_norm: float | None = None

    def __post_init__(self) -> None:
        above = "a number above 0"
        _within(self, "learning_rate", above, lambda x: x > 0)
        _within(self, "momentum", "at least 0 and below 1", lambda x: 0 <= x < 1)
        _within(self, "weight_decay", "at least 0", lambda x: x >= 0)
        if self.max_gradient_norm is not None:
            _within(self, "max_gradient_norm", f"{above}, or left out", lambda x: x > 0)


@dataclass(frozen=True)
class RunConfig:
    """How long a run is and what it leaves behind.

    Attributes:
        max_steps: steps in all; a run that was interrupted goes on to them.
        num_epochs: passes over the data, where max_steps is not given.
        num_csx: systems.
        checkpoint_steps: steps between versions on disk; one is also written every 20 seconds.
        log_steps: steps between lines of the log.
        eval_steps: batches of an evaluation; None: all.
        seed: of the first weights.
        model_dir: the folder of everything that the run writes.
    """

    max_steps: int | None = None
    num_epochs: int | None = None
    num_csx: int = 1
    checkpoint_steps: int = 100
    log_steps: int = 10
    eval_steps: int | None = None
    seed: int = 0
    model_dir: str = "model_dir"

    def __post_init__(self) -> None:
        names = ("max_steps", "num_epochs", "num_csx", "checkpoint_steps", "log_steps")
        _counts(self, *(n for n in (*names, "eval_steps") if getattr(self, n) is not None))


@dataclass(frozen=True)
class Sparsity:
    """Which weights are zero.

    Attributes:
        sparsity: the share that is.
        type: static, magnitude, gmp, set or rigl.
        drop_fraction: of the weights that SET and RigL move at once.
        update_freq: steps between two moves.
        param_name_patterns: names of parameters that may be sparse, with * for any letters.
    """

    sparsity: float
    type: str = "static"
    drop_fraction: float = 0.3
    update_freq: int = 100
    param_name_patterns: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        _within(self, "sparsity", "at least 0 and below 1", lambda x: 0 <= x < 1)
        _within(self, "drop_fraction", "at least 0 and at most 1", lambda x: 0 <= x <= 1)
        _counts(self, "update_freq")


@dataclass(frozen=True)
class Params:
    """All that a params file says. `model` goes to the model's class as it is."""

    train_input: Input | None = None
    eval_input: Input | None = None
    model: Mapping[str, Any] = field(default_factory=dict[str, Any])
    optimizer: Optimizer = Optimizer()
    runconfig: RunConfig = RunConfig()
    sparsity: Sparsity | None = None


SECTIONS: dict[str, type[Any]] = {
    "train_input": Input,
    "eval_input": Input,
    "optimizer": Optimizer,
    "runconfig": RunConfig,
    "sparsity": Sparsity,
}


def read(path: Path | str) -> Params:
    """Read a params file; nothing in it is executed, and it names no code.

    Raises:
        ValueError: text that is not YAML, an unknown key (with the nearest that is known), a
            missing one, or a value of the wrong type.
    """
    found = _document.read(path)
    _document.check_keys(found, ("model", *SECTIONS), str(path))
    made: dict[str, Any] = {}
    for key, value in found.items():
        given = _document.mapping(value, f"{key} of {path}")
        made[key] = given if key == "model" else _section(SECTIONS[key], given, f"{key} of {path}")
    return Params(**made)


def _section(kind: type[Section], given: Mapping[str, Any], owner: str) -> Section:
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    _document.check_keys(given, known, owner)
    for name, f in known.items():
        if f.default is MISSING and name not in given:
            raise ValueError(f"{owner} lacks {name}; it must be given: add a line {name}: ...")
    values = {k: _typed(v, known[k].type, f"{k} in {owner}") for k, v in given.items()}
    return kind(**values)


def _typed(value: Any, kind: Any, name: str) -> Any:
    """Return a value of the type that the field promises; numbers written as text are read."""
    allowed = str(kind) if not isinstance(kind, type) else kind.__name__
    if value is None and "None" in allowed:
        return None
    if "tuple" in allowed:
        many: list[Any] = value if isinstance(value, list) else [value]  # type: ignore[assignment]
        return tuple(_typed(one, str, name) for one in many)
    if "float" in allowed:
        return float(_document.number(value, name, "its unit"))
    rules = {"bool": bool, "int": int, "str": str}
    expected = next(rules[word] for word in rules if word in allowed)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ValueError(
            f"{name} is {_document.short(value)}; it must be of type {expected.__name__}: "
            "write it as such"
        )
    return value
