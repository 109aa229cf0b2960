"""In which arithmetic a machine trains."""

from dataclasses import dataclass
from typing import Any

from wse._numbers import check_kinds, one_of
from wse.precision.format import FORMATS, Format
from wse.precision.scaling import Dynamic


@dataclass(frozen=True)
class Precision:
    """What the wafer holds in half precision; the store keeps weights as they are given.

    Attributes:
        format: "float16", "bfloat16" or "cbfloat16".
        scale: of the loss: a number, or how it changes.

    Raises:
        ValueError: another format, or a scale that is not positive.

    >>> from wse.precision import Precision
    >>> Precision("bfloat16").format
    'bfloat16'
    """

    format: str
    scale: Dynamic | float = 1.0

    def __post_init__(self) -> None:
        one_of("format", self.format, FORMATS)
        check_kinds(self)
        if not isinstance(self.scale, Dynamic) and not self.scale > 0:
            raise ValueError(f"scale is {self.scale}; it must be positive: pass 1.0 for none")

    @property
    def half(self) -> Format:
        """The format itself."""
        return FORMATS[self.format]


# Sourced: docs.cerebras.net, wsc/how_to_guides/dynamic-loss-scaling: to be used with float16 and
# cbfloat16, not needed with bfloat16.
SCALES: dict[str, Dynamic | float] = {
    "float16": Dynamic(),
    "cbfloat16": Dynamic(),
    "bfloat16": 1.0,
}


def as_precision(given: Any) -> Precision | None:
    """A precision as it is; a format's name with the scaling that its maker recommends.

    Raises:
        ValueError: something else.

    >>> as_precision("bfloat16")
    Precision(format='bfloat16', scale=1.0)
    """
    if given is None or isinstance(given, Precision):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f"precision is {given!r}; it must be a format's name or a wse.precision.Precision: "
            "pass 'cbfloat16'"
        )
    return Precision(given, SCALES.get(given, 1.0))
