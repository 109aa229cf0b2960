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
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from wse import _document
from wse._document import typed
from wse._files import as_path
from wse.job.forms import sections
from wse.models.shapes.foreign import check_params

MOST = 10**12  # assumed: more steps than any run has
TINY, HUGE = 1e-37, 1e38  # in single precision smaller numbers are 0, larger ones infinite
COUNT = Field(ge=1, le=MOST, description="a positive integer up to 10^12: correct that line")
SEED = Field(ge=0, lt=2**32, description="an integer from 0 to 4294967295: pick another seed")
_POSITIVE = "a positive number from 1e-37 to 1e38: write one such as"
RATE = Field(ge=TINY, le=HUGE, description=f"{_POSITIVE} 1.0e-3")
_UNCLIPPED = f"{_POSITIVE} 1.0, or leave it out so that gradients are not clipped"
NORM = Field(ge=TINY, le=HUGE, description=_UNCLIPPED)
DECAY = Field(
    ge=0, le=HUGE, description="a number from 0 to 1e38: write one such as 0.01, or leave it out"
)
FROM_0 = Field(ge=0, le=HUGE, description="a number from 0 to 1e38: write one such as 1.0e-3")
SHARE = Field(ge=0, lt=1, description="at least 0 and below 1: write a share such as 0.9")
PART = Field(gt=0, le=1, description="above 0 and at most 1: write a share such as 0.3")

BETAS = ("betas", "eps", "weight_decay")
TAKEN = {  # what each type of optimizer takes
    "SGD": ("momentum", "weight_decay"),
    "Adam": BETAS,
    "AdamW": BETAS,
    "Adagrad": ("eps", "weight_decay"),
    "Adafactor": (),
    "Lamb": BETAS,
    "Lion": ("betas", "weight_decay"),
    "NAdam": BETAS,
    "RAdam": BETAS,
    "RMSprop": ("eps", "momentum", "weight_decay"),
}
SCHEDULES = {  # what each kind needs
    "Constant": ("learning_rate",),
    "Linear": ("initial_learning_rate", "end_learning_rate", "total_iters"),
    "CosineDecay": ("initial_learning_rate", "end_learning_rate", "total_iters"),
    "PiecewiseConstant": ("learning_rates", "milestones"),
}


@dataclass(frozen=True)
class Input:
    """Where samples come from.

    Attributes:
        data_dir: a folder of .npz files, or one .npz, HDF5 or netCDF file; several of these; or
            package:NAME, samples that an installed package brings. Samples lead every array.
        batch_size: samples of a step, on all systems together.
        max_sequence_length: tokens of a sample, of a model that is known by name.
        src_max_sequence_length: of a T5, those of the text.
        tgt_max_sequence_length: those of its answer.
        shuffle: whether each epoch has its own order.
        shuffle_seed: of these orders.
        features: the array that enters the model.
        labels: the array that its output is compared with.

    Raises:
        ValueError: a number outside its range, as of all sections.
    """

    data_dir: str | tuple[str, ...]
    batch_size: Annotated[int, COUNT]
    shuffle: bool = True
    shuffle_seed: Annotated[int, SEED] = 0
    features: str = "features"
    labels: str = "labels"
    max_sequence_length: Annotated[int | None, COUNT] = None
    src_max_sequence_length: Annotated[int | None, COUNT] = None
    tgt_max_sequence_length: Annotated[int | None, COUNT] = None

    def __post_init__(self) -> None:
        typed.check(self, "input")

    @property
    def sequence(self) -> dict[str, int]:
        """What of it a model's shape is read with."""
        said = {key: value for key, value in vars(self).items() if key.endswith("_length")}
        return {key: value for key, value in said.items() if value}


@dataclass(frozen=True)
class Schedule:
    """A learning rate that changes with the step, or one of several after one another.

    Attributes:
        scheduler: Constant, Linear, CosineDecay or PiecewiseConstant.
        total_iters: steps of it, after which it stays as it is or the next begins.
        steps: another word for these.
        learning_rate: of a Constant one.
        initial_learning_rate: where Linear and CosineDecay begin.
        end_learning_rate: where they end.
        learning_rates: of a PiecewiseConstant one, one more than there are milestones.
        milestones: the steps, counted from its beginning, at which the next of these comes.

    Raises:
        ValueError: what its kind needs is missing, or what it does not know is given.
    """

    scheduler: Literal["Constant", "Linear", "CosineDecay", "PiecewiseConstant"]
    total_iters: Annotated[int | None, COUNT] = None
    steps: Annotated[int | None, COUNT] = None
    learning_rate: Annotated[float | None, FROM_0] = None
    initial_learning_rate: Annotated[float | None, FROM_0] = None
    end_learning_rate: Annotated[float | None, FROM_0] = None
    learning_rates: tuple[Annotated[float, FROM_0], ...] = ()
    milestones: tuple[Annotated[int, COUNT], ...] = ()

    def __post_init__(self) -> None:
        typed.check(self, "learning_rate")
        name, needed = self.scheduler, SCHEDULES[self.scheduler]
        given = [key for key, value in vars(self).items() if value not in (None, ())]
        for key in needed:
            if key not in given and not (key == "total_iters" and self.steps):
                raise ValueError(
                    f"a {name} learning rate lacks {key}; it must be given: add a line {key}: ..."
                )
        for key in given:
            if key not in ("scheduler", "total_iters", "steps", *needed):
                raise ValueError(
                    f"a {name} learning rate has {key}; it knows {', '.join(needed)}: leave it out"
                )
        if self.total_iters and self.steps:
            raise ValueError(
                "a learning rate has total_iters and steps, which are the same: keep one, of "
                f"{self.total_iters} and {self.steps}"
            )
        ascending = all(a < b for a, b in pairwise(self.milestones))
        if self.milestones and (
            len(self.learning_rates) != len(self.milestones) + 1 or not ascending
        ):
            raise ValueError(
                f"a {name} learning rate has {len(self.learning_rates)} learning_rates and "
                f"milestones {[*self.milestones]}; these must ascend, and be one fewer: mend them"
            )

    @property
    def span(self) -> int | None:
        """Steps of it; None: it has no end."""
        return self.total_iters or self.steps


@dataclass(frozen=True)
class Adjusted:
    """Factors of the learning rate.

    Attributes:
        decoder_kernel: of the products of all blocks of a transformer.
    """

    decoder_kernel: Annotated[float, RATE] = 1.0


@dataclass(frozen=True)
class Optimizer:
    """How weights are updated.

    Attributes:
        optimizer_type: SGD, Adam, AdamW, Adagrad, Adafactor, Lamb, Lion, NAdam, RAdam or RMSprop.
        learning_rate: of every step, or how it changes: one schedule, or several in their order.
        betas: decay of the averages of gradient and square, of the Adam family, Lamb and Lion.
        eps: what is added to a denominator; None: as in optax.
        momentum: of SGD and RMSprop.
        weight_decay: of AdamW, Lamb and Lion beside the gradient, of others added to it (L2).
        max_gradient_norm: the global norm to which gradients are clipped; None: they are not.
        adjust_learning_rate: factors of the rate for some weights of a model that is known by name.
    """

    optimizer_type: Literal[
        "SGD", "Adam", "AdamW", "Adagrad", "Adafactor", "Lamb", "Lion", "NAdam", "RAdam", "RMSprop"
    ] = "Adam"
    learning_rate: (
        Annotated[float, RATE] | Schedule | Annotated[tuple[Schedule, ...], Field(min_length=1)]
    ) = 1e-3
    betas: tuple[Annotated[float, SHARE], Annotated[float, SHARE]] | None = None
    eps: Annotated[float | None, RATE] = None
    momentum: Annotated[float, SHARE] = 0.0
    weight_decay: Annotated[float, DECAY] = 0.0
    max_gradient_norm: Annotated[float | None, NORM] = None
    adjust_learning_rate: Adjusted | None = None

    def __post_init__(self) -> None:
        typed.check(self, "optimizer")
        name = self.optimizer_type
        for key in ("betas", "eps", "momentum", "weight_decay"):
            if getattr(self, key) and key not in TAKEN[name]:
                taker = next(other for other, keys in TAKEN.items() if key in keys)
                raise ValueError(
                    f"optimizer.{key} is {getattr(self, key)} but {name} takes none: leave it out, "
                    f"or write optimizer_type: {taker}"
                )
        many = self.learning_rate if isinstance(self.learning_rate, tuple) else ()
        for i, one in enumerate(many[:-1]):
            if one.span is None:
                raise ValueError(
                    f"optimizer.learning_rate[{i}] lacks total_iters; all but the last must end: "
                    "add a line total_iters: ..."
                )


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
        execution_strategy: weight_streaming or pipeline; None: the machine's, or else the former.
    """

    max_steps: Annotated[int | None, COUNT] = None
    num_epochs: Annotated[int | None, COUNT] = None
    num_csx: Annotated[int, COUNT] = 1
    checkpoint_steps: Annotated[int, COUNT] = 100
    log_steps: Annotated[int, COUNT] = 10
    eval_steps: Annotated[int | None, COUNT] = None
    seed: Annotated[int, SEED] = 0
    model_dir: str = "model_dir"
    execution_strategy: Literal["weight_streaming", "pipeline"] | None = None

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
    type: Literal["static", "magnitude", "gmp", "set", "rigl"] = "static"
    drop_fraction: Annotated[float, PART] = 0.3
    update_freq: Annotated[int, COUNT] = 100
    param_name_patterns: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        typed.check(self, "sparsity")


@dataclass(frozen=True)
class Precision:
    """In which arithmetic the wafer works; the store keeps weights in single precision.

    Attributes:
        mixed_precision: whether in half precision.
        fp16_type: float16, bfloat16 or cbfloat16.
        loss_scaling_factor: a number, or "dynamic"; None: as is advised for the type.
    """

    mixed_precision: bool = True
    fp16_type: Literal["float16", "bfloat16", "cbfloat16"] = "float16"
    loss_scaling_factor: Annotated[float, RATE] | Literal["dynamic"] | None = None

    def __post_init__(self) -> None:
        typed.check(self, "precision")


@dataclass(frozen=True)
class Params:
    """All that a params file says. `model` goes to the model's class as it is.

    >>> import wse
    >>> wse.job.Params(model={"hidden_sizes": [128, 128]}).optimizer.optimizer_type
    'Adam'
    """

    train_input: Input | None = None
    eval_input: Input | None = None
    model: Mapping[str, Any] = field(default_factory=dict[str, Any])
    optimizer: Optimizer = Optimizer()
    runconfig: RunConfig = RunConfig()
    sparsity: Sparsity | None = None
    precision: Precision | None = None


def read(path: Path | str) -> Params:
    """Read a params file; nothing in it is executed, and it names no code.

    A file of the Model Zoo, in either form, is brought into this one first.

    Raises:
        ValueError: text that is not YAML, an unknown key (with the nearest that is known), a
            missing one, a value of the wrong type, or a number outside its range.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import wse
    >>> path = Path(tempfile.mkdtemp(), "params.yaml")
    >>> _ = path.write_text("runconfig: {max_steps: 10}")
    >>> wse.job.read(path).runconfig.max_steps
    10
    """
    path = as_path("path", path, "pass params.yaml")
    check_params(path)
    found = _document.read(path)
    if "model_type" in found and "model" not in found:
        raise ValueError(
            f"{path} has a model_type, as a config.json of Hugging Face, which says no training; "
            "wse estimate, check and port read it: for a run write a params file in YAML"
        )
    return typed.made(Params, sections(found, str(path)), place=str(path))
