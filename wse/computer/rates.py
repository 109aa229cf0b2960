"""How fast a computer runs each kind of kernel: a table of what was measured, and between."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from wse._files import write_json

SIZES = (16, 64, 128, 256, 512, 1024)  # of products, each of m, n, k
CHANNELS = (8, 32, 128)  # of convolutions, in and out
PIXELS = (16, 144, 1024, 16_384)  # images are squares, four at a time
WORKING_BYTES = (2**16, 2**20, 2**24, 2**28)


@dataclass(frozen=True)
class Rates:
    """What was measured on one computer.

    Attributes:
        computer: its processor and cores.
        versions: of what compiled the kernels.
        products: FLOP/s of (m, k) x (k, n), by m, n, k in `SIZES`.
        convolutions: FLOP/s of 3 x 3 convolutions, by result (image, kernel), pixels, channels.
        bandwidth: B/s of a pass, by bytes in `WORKING_BYTES`.
        slow_per_s: exponentials, and the like, a second.
        kernel_s: seconds that a kernel takes however small it is.
        call_s: seconds that a call of a compiled program takes.
        together: whether products that are alike run side by side, as on a card.

    Raises:
        ValueError: a rate that is not positive, or tables of other sizes.

    >>> from wse.computer import Rates
    >>> even = Rates("a laptop", "jax", (1e10,) * 216, (1e10,) * 24, (1e10,) * 4, 1e9, 1e-6, 1e-5)
    >>> round(even.product((100, 512, 512)))  # FLOP/s
    10000000000
    """

    computer: str
    versions: str
    products: tuple[float, ...]
    convolutions: tuple[float, ...]
    bandwidth: tuple[float, ...]
    slow_per_s: float
    kernel_s: float
    call_s: float
    together: bool = False

    def __post_init__(self) -> None:
        sizes = {
            "products": len(SIZES) ** 3,
            "convolutions": 2 * len(PIXELS) * len(CHANNELS),
            "bandwidth": len(WORKING_BYTES),
        }
        for name, size in sizes.items():
            if len(getattr(self, name)) != size:
                raise ValueError(
                    f"{name} has {len(getattr(self, name))} rates; it must have {size}: measure "
                    "again with wse.local(again=True)"
                )
        for field in fields(self)[2:-1]:
            if not np.all(np.asarray(getattr(self, field.name)) > 0):
                raise ValueError(f"{field.name} has a rate that is not positive: measure again")

    def product(self, shape: Sequence[int]) -> float:
        """FLOP/s of a product (m, n, k), whichever axes are summed over: compilers lay them out."""
        table = np.reshape(self.products, (len(SIZES),) * 3)
        return _between(table, (SIZES,) * 3, shape)

    def convolution(self, shape: Sequence[int], result: str = "image") -> float:
        """FLOP/s of a convolution (pixels, channels in, channels out)."""
        table = np.reshape(self.convolutions, (2, len(PIXELS), len(CHANNELS)))
        pixels, ins, outs = shape
        channels = (ins * outs) ** 0.5
        return _between(table[int(result == "kernel")], (PIXELS, CHANNELS), (pixels, channels))

    def bytes_per_s(self, nbytes: int) -> float:
        """B/s of a pass over so many bytes."""
        return _between(np.array(self.bandwidth), (WORKING_BYTES,), (nbytes,))

    def write(self, path: Path) -> None:
        """Write the table as JSON."""
        write_json(path, asdict(self))


def typical(tables: Sequence[Rates]) -> Rates:
    """Return the medians of several tables of one computer."""
    names = [field.name for field in fields(tables[0])[2:-1]]
    medians = {name: np.median([getattr(t, name) for t in tables], axis=0) for name in names}
    return replace(tables[0], **{name: _frozen(value.tolist()) for name, value in medians.items()})


def read(path: Path) -> Rates | None:
    """Return the table of a file; None where there is none, or none that holds."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        named: Any = {name: _frozen(value) for name, value in found.items()}
        return Rates(**named)
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _frozen(value: Any) -> Any:
    return tuple(cast("list[float]", value)) if isinstance(value, list) else value


def _between(table: Any, axes: Sequence[Sequence[int]], place: Sequence[int | float]) -> float:
    """Return exp of the multilinear interpolation of log rates over log sizes, edges kept."""
    values = np.log(np.asarray(table, float))
    for axis, at in zip(axes, place, strict=True):
        marks = np.log(np.asarray(axis, float))
        x = float(np.clip(np.log(max(at, 1.0)), marks[0], marks[-1]))
        i = int(np.clip(np.searchsorted(marks, x) - 1, 0, len(marks) - 2))
        weight = (x - marks[i]) / (marks[i + 1] - marks[i])
        values = (1 - weight) * values[i] + weight * values[i + 1]
    return float(np.exp(values))
