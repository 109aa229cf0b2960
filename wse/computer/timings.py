"""Convolutions timed one by one, as a model's graph brings them, and remembered.

What a compiler makes of a convolution depends on strides, dilations, channels and groups by an
order of magnitude, so no small table of rates holds it. Each kind that a graph has is run alone
for some milliseconds.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from jax.extend import core
from jax.lax import conv_general_dilated_p

from wse._files import write_json

LARGEST_FLOPS = 2_000_000_000  # beyond it a rate no longer depends on the size


@dataclass(frozen=True)
class Convolution:
    """One kind of convolution.

    Attributes:
        operands: shapes and types of the image and the kernel.
        params: of the primitive: strides, padding, dilations, groups, the order of axes.
    """

    operands: tuple[Any, Any]
    params: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, eqn: core.JaxprEqn) -> "Convolution":
        """Return that of an equation."""
        image, kernel = (x.aval for x in eqn.invars)
        return cls((image, kernel), tuple(sorted(eqn.params.items())))

    def __str__(self) -> str:
        """Under what it is remembered."""
        shapes = [x.str_short() for x in self.operands]
        return " ".join((*shapes, *(f"{name}={value}" for name, value in self.params)))

    def __call__(self, image: Any, kernel: Any) -> Any:
        """Convolve."""
        return conv_general_dilated_p.bind(image, kernel, **dict(self.params))


@dataclass
class Convolutions:
    """Seconds of convolutions on one computer.

    Attributes:
        clock: gives the seconds of a convolution that was not met before.
        seconds: of those that were, by what they are called.
        path: of a file that remembers them; None: nothing does.
        of: the computer and the version of its compiler; seconds of others are dropped.
    """

    clock: Callable[[Convolution], float]
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    path: Path | None = None
    of: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        """Read what there is."""
        if self.path:
            self.seconds |= _read(self.path, self.of)

    def __call__(self, convolution: Convolution) -> float:
        """Return its seconds; keep them if they are new."""
        name = str(convolution)
        if name not in self.seconds:
            self.seconds[name] = self.clock(convolution)
            if self.path:
                write_json(self.path, {"of": self.of, "seconds": self.seconds})
        return self.seconds[name]


def _read(path: Path, of: tuple[str, str]) -> dict[str, float]:
    """Return the seconds that are remembered; what cannot be read is measured again."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        if tuple(found["of"]) != of:
            return {}
        seconds = {name: float(s) for name, s in cast("dict[str, Any]", found["seconds"]).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {name: s for name, s in seconds.items() if 0 < s < math.inf}
