"""The params file of a run, with the keys that users of the real machine know.

train_input: {data_dir: data/train, batch_size: 100, shuffle: true}
eval_input: {data_dir: data/eval, batch_size: 100}
model: {hidden_sizes: [128, 128], activation_fn: swish, loss: mse}
optimizer: {optimizer_type: Adam, learning_rate: 1.0e-3}
runconfig: {max_steps: 1000, num_csx: 2, checkpoint_steps: 100}
sparsity: {type: rigl, sparsity: 0.75}
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from wse import _document

Section = TypeVar("Section")


@dataclass(frozen=True)
class Range:
    """Which numbers a key takes.

    Attributes:
        rule: in words.
        remedy: what to do about another number.
        low: the least.
        high: the largest.
        ends: whether these two lie in the range themselves.
    """

    rule: str
    remedy: str
    low: int | float
    high: int | float
    ends: tuple[bool, bool] = (True, True)

    def holds(self, value: int | float) -> bool:
        """Whether a number lies in the range; NaN lies in none."""
        above = self.low < value or (self.ends[0] and value == self.low)
        return above and (value < self.high or (self.ends[1] and value == self.high))


def _range(rule: str, remedy: str, *limits: Any) -> dict[str, Range]:
    """The metadata of a field with a range."""
    return {"range": Range(rule, remedy, *limits)}


MOST = 10**12  # assumed: more steps than any run has
TINY, HUGE = 1e-37, 1e38  # in single precision smaller numbers are 0, larger ones infinite
COUNT = _range("a positive integer up to 10^12", "correct that line", 1, MOST)
SEED = _range("an integer from 0 to 4294967295", "pick another seed", 0, 2**32 - 1)
RATE = _range("a positive number from 1e-37 to 1e38", "write one such as 1.0e-3", TINY, HUGE)
NORM = _range(
    "a positive number from 1e-37 to 1e38",
    "write one such as 1.0, or leave it out so that gradients are not clipped",
    TINY,
    HUGE,
)
DECAY = _range("a number from 0 to 1e38", "write one such as 0.01, or leave it out", 0, HUGE)
SHARE = _range("at least 0 and below 1", "write a share such as 0.9", 0, 1, (True, False))
PART = _range("above 0 and at most 1", "write a share such as 0.3", 0, 1, (False, True))


def _check(kind: type[Any], values: Mapping[str, Any], owner: str) -> None:
    """Refuse the first number outside its field's range."""
    for f in fields(kind):
        value, limits = values.get(f.name), f.metadata.get("range")
        if value is not None and limits is not None and not limits.holds(value):
            raise ValueError(
                f"{owner}.{f.name} is {_document.short(value)}; it must be {limits.rule}: "
                f"{limits.remedy}"
            )


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
        ValueError: a number outside its range, as of all sections.
    """

    data_dir: str
    batch_size: int = field(metadata=COUNT)
    shuffle: bool = True
    shuffle_seed: int = field(default=0, metadata=SEED)
    features: str = "features"
    labels: str = "labels"

    def __post_init__(self) -> None:
        _check(Input, vars(self), "input")


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
    learning_rate: float = field(default=1e-3, metadata=RATE)
    momentum: float = field(default=0.0, metadata=SHARE)
    weight_decay: float = field(default=0.0, metadata=DECAY)
    max_gradient_norm: float | None = field(default=None, metadata=NORM)

    def __post_init__(self) -> None:
        _check(Optimizer, vars(self), "optimizer")


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

    max_steps: int | None = field(default=None, metadata=COUNT)
    num_epochs: int | None = field(default=None, metadata=COUNT)
    num_csx: int = field(default=1, metadata=COUNT)
    checkpoint_steps: int = field(default=100, metadata=COUNT)
    log_steps: int = field(default=10, metadata=COUNT)
    eval_steps: int | None = field(default=None, metadata=COUNT)
    seed: int = field(default=0, metadata=SEED)
    model_dir: str = "model_dir"

    def __post_init__(self) -> None:
        _check(RunConfig, vars(self), "runconfig")


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

    sparsity: float = field(metadata=SHARE)
    type: str = "static"
    drop_fraction: float = field(default=0.3, metadata=PART)
    update_freq: int = field(default=100, metadata=COUNT)
    param_name_patterns: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        _check(Sparsity, vars(self), "sparsity")


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
            missing one, a value of the wrong type, or a number outside its range.
    """
    found = _document.read(path)
    _document.check_keys(found, ("model", *SECTIONS), str(path))
    made: dict[str, Any] = {}
    for key, value in found.items():
        given = _document.mapping(value, f"{key} of {path}")
        made[key] = given if key == "model" else _section(SECTIONS[key], given, key, path)
    return Params(**made)


def _section(kind: type[Section], given: Mapping[str, Any], key: str, path: Path | str) -> Section:
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    _document.check_keys(given, known, f"{key} of {path}")
    for name, f in known.items():
        if f.default is MISSING and name not in given:
            raise ValueError(
                f"{key} of {path} lacks {name}; it must be given: add a line {name}: ..."
            )
    values = {k: _typed(v, known[k].type, f"{key}.{k} in {path}") for k, v in given.items()}
    _check(kind, values, key)  # here, as an input does not know which one it is
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
