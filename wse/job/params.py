"""The params file of a run, with the keys that users of the real machine know.

train_input: {data_dir: data/train, batch_size: 100, shuffle: true}
eval_input: {data_dir: data/eval, batch_size: 100}
model: {hidden_sizes: [128, 128], activation_fn: swish, loss: mse}
optimizer: {optimizer_type: Adam, learning_rate: 1.0e-3}
runconfig: {max_steps: 1000, num_csx: 2, checkpoint_steps: 100}
sparsity: {type: rigl, sparsity: 0.75}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from wse import _document
from wse._document import typed

MOST = 10**12  # assumed: more steps than any run has
TINY, HUGE = 1e-37, 1e38  # in single precision smaller numbers are 0, larger ones infinite
COUNT = Field(ge=1, le=MOST, description="a positive integer up to 10^12: correct that line")
SEED = Field(ge=0, lt=2**32, description="an integer from 0 to 4294967295: pick another seed")
RATE = Field(
    ge=TINY,
    le=HUGE,
    description="a positive number from 1e-37 to 1e38: write one such as 1.0e-3",
)
NORM = Field(
    ge=TINY,
    le=HUGE,
    description="a positive number from 1e-37 to 1e38: write one such as 1.0, or leave it out so "
    "that gradients are not clipped",
)
DECAY = Field(
    ge=0, le=HUGE, description="a number from 0 to 1e38: write one such as 0.01, or leave it out"
)
SHARE = Field(ge=0, lt=1, description="at least 0 and below 1: write a share such as 0.9")
PART = Field(gt=0, le=1, description="above 0 and at most 1: write a share such as 0.3")


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
    batch_size: Annotated[int, COUNT]
    shuffle: bool = True
    shuffle_seed: Annotated[int, SEED] = 0
    features: str = "features"
    labels: str = "labels"

    def __post_init__(self) -> None:
        typed.check(self, "input")


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
    learning_rate: Annotated[float, RATE] = 1e-3
    momentum: Annotated[float, SHARE] = 0.0
    weight_decay: Annotated[float, DECAY] = 0.0
    max_gradient_norm: Annotated[float | None, NORM] = None

    def __post_init__(self) -> None:
        typed.check(self, "optimizer")


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

    max_steps: Annotated[int | None, COUNT] = None
    num_epochs: Annotated[int | None, COUNT] = None
    num_csx: Annotated[int, COUNT] = 1
    checkpoint_steps: Annotated[int, COUNT] = 100
    log_steps: Annotated[int, COUNT] = 10
    eval_steps: Annotated[int | None, COUNT] = None
    seed: Annotated[int, SEED] = 0
    model_dir: str = "model_dir"

    def __post_init__(self) -> None:
        typed.check(self, "runconfig")


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

    sparsity: Annotated[float, SHARE]
    type: str = "static"
    drop_fraction: Annotated[float, PART] = 0.3
    update_freq: Annotated[int, COUNT] = 100
    param_name_patterns: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        typed.check(self, "sparsity")


@dataclass(frozen=True)
class Params:
    """All that a params file says. `model` goes to the model's class as it is."""

    train_input: Input | None = None
    eval_input: Input | None = None
    model: Mapping[str, Any] = field(default_factory=dict[str, Any])
    optimizer: Optimizer = Optimizer()
    runconfig: RunConfig = RunConfig()
    sparsity: Sparsity | None = None


def read(path: Path | str) -> Params:
    """Read a params file; nothing in it is executed, and it names no code.

    Raises:
        ValueError: text that is not YAML, an unknown key (with the nearest that is known), a
            missing one, a value of the wrong type, or a number outside its range.
    """
    return typed.made(Params, _document.read(path), place=str(path))
