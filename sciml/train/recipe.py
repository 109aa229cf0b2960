"""How a net is trained: batch, step size, clipping, arithmetic."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sciml._arguments import check_number, check_whole

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Recipe:
    """Adam with a linear warm-up, a cosine decay and a clipped global gradient norm.

    The step size rises over the first `warmup` part of all updates to `learning_rate` and falls
    as a half cosine to `final` times that value; `schedule="constant"` keeps it. `clip` bounds
    the Euclidean norm of the whole gradient (None: no bound). `weight_decay` shrinks weights by
    that part of the step size at each update, apart from Adam (Loshchilov and Hutter, arXiv
    1711.05101); biases are left alone. `precision="bfloat16"` multiplies
    in bfloat16 and accumulates in float32; the weights stay float32. `standardise` is read by
    `sciml.fit` of a point net: its inputs are scaled by the training set, so that their unit does
    not matter; False shows them as they are, as the published nets do.

    Good values: `width_scaled(width)` for dense nets, 2e-3 for the published CNN.

    Raises:
        ValueError: a value is out of its range.

    >>> Recipe(batch=50).batch
    50
    """

    batch: int = 100
    learning_rate: float = 1e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    warmup: float = 0.02
    final: float = 0.01
    clip: float | None = 1.0
    weight_decay: float = 0.0
    precision: Precision = "float32"
    standardise: bool = True

    def __post_init__(self):
        check_whole(1, **{"Recipe.batch": self.batch})
        for name in ("learning_rate", "warmup", "final", "weight_decay", "clip"):
            if name != "clip" or self.clip is not None:
                check_number(**{f"Recipe.{name}": getattr(self, name)})
        for name, value in vars(self).items():
            if isinstance(value, np.number):  # which JSON does not take
                object.__setattr__(self, name, value.item())
        rules = {
            "learning_rate": (self.learning_rate > 0, "positive"),
            "schedule": (self.schedule in ("cosine", "constant"), "'cosine' or 'constant'"),
            "warmup": (0 <= self.warmup < 1, "in [0, 1)"),
            "final": (0 <= self.final <= 1, "in [0, 1]"),
            "clip": (self.clip is None or self.clip > 0, "positive or None"),
            "weight_decay": (self.weight_decay >= 0, "0 or more"),
            "precision": (self.precision in ("float32", "bfloat16"), "'float32' or 'bfloat16'"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"Recipe.{name} is {getattr(self, name)!r}; it must be {rule}")

    def replace(self, **changes) -> "Recipe":
        """Return a copy with some values changed."""
        return dataclasses.replace(self, **changes)


def width_scaled(width: int, *, batch: int = 100) -> Recipe:
    """Return the default recipe of a dense net: a step size that falls with width.

    learning_rate = 2e-3 (32 / width)^0.68, a line in log-log through the rates that trained best
    at 32 and 512 units: 2e-3 and 3e-4 (calibrated on the FitzHugh-Nagumo problem). A constant
    2e-3 makes nets of 512 units and more collapse to the mean of the targets; see `paper`.

    >>> round(width_scaled(512).learning_rate, 6)
    0.000304
    """
    if width < 1:
        raise ValueError(f"width is {width}; it must be at least 1")
    return Recipe(batch=batch, learning_rate=2e-3 * (32 / width) ** 0.68)


def paper(*, batch: int = 32) -> Recipe:
    """Return the published recipe: Adam at a constant 0.002, batch 32, no clipping, raw inputs.

    Source: Rudi, Bessac, Lenzi, arXiv 2012.06691, Table 1. It trains the CNN and narrow dense
    nets; dense nets of 512 units collapse under it.

    >>> paper().schedule
    'constant'
    """
    published = Recipe(batch=batch, learning_rate=2e-3, schedule="constant", clip=None)
    return published.replace(standardise=False)
