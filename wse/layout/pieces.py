"""What is laid out, on what, and how it is split: plain data."""

from dataclasses import dataclass
from math import prod
from typing import Any

from wse._numbers import check_kinds, is_whole, of_kind, positive, short
from wse.machine import catalog
from wse.machine.machine import Machine, Sourced

MORE = "pass 1 or more"
VALUE_BYTES = 2  # an activation or a weight on the wafer: half precision
LANES = Sourced(60, "count", "sourced", "third-party notes, WSE Architecture Overview", "of WSE-2")


@dataclass(frozen=True)
class Wafer:
    """The grid that layers are laid out on.

    Attributes:
        columns: processing elements (PEs) across.
        rows: PEs down.
        memory_bytes: of each PE.
        multiplies_per_cycle: multiply-adds in half precision of each PE and cycle.
        lanes: wavelets of weights that enter from the edge in a cycle.
        code_bytes: of each PE's memory, not free for data.

    Raises:
        ValueError: a size that is not positive, or no memory left.

    >>> from wse import layout
    >>> layout.Wafer.of().data_bytes
    49152
    """

    columns: int
    rows: int
    memory_bytes: int = 49_152
    multiplies_per_cycle: int = 4
    lanes: int = int(LANES.value)
    code_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "memory_bytes", "multiplies_per_cycle", "lanes"):
            positive(name, getattr(self, name), MORE)
        if not (is_whole(self.code_bytes, 0) and self.code_bytes < self.memory_bytes):
            raise ValueError(
                f"code_bytes is {short(self.code_bytes)}; a PE has {self.memory_bytes} bytes in "
                "all: pass less, 0 or more"
            )

    @classmethod
    def of(cls, machine: Machine = catalog.CS2, code_bytes: int = 0) -> "Wafer":
        """The grid that a program may use on a machine of `wse.catalog`."""
        return cls(
            int(machine.fabric_columns.value),
            int(machine.fabric_rows.value),
            int(machine.sram_per_core_bytes.value),
            int(machine.fp16_flops_per_cycle.value) // 2,
            code_bytes=code_bytes,
        )

    @property
    def pes(self) -> int:
        """All PEs."""
        return self.columns * self.rows

    @property
    def data_bytes(self) -> int:
        """Memory of one PE that is free for data."""
        return self.memory_bytes - self.code_bytes


@dataclass(frozen=True)
class Shape:
    """A dense or convolution layer, as the seven loops of its arithmetic see it.

    out[b, y, x, k] = sum over r, s, c of in[b, y + r, x + s, c] weight[k, r, s, c]

    Attributes:
        name: what tables call it.
        batch: B, samples.
        size: places of the input along each axis: (height, width), (depth, height, width); of a
            dense layer (1, 1).
        channels: C, numbers per place that enter.
        filters: K, numbers per place that leave.
        taps: (R, S) or more, of the filter along each axis; borders are padded.
        stride: places of the input per place of the output.
        upsample: places of the output per place of the input, of a transposed convolution.

    Raises:
        ValueError: a size that is not positive, taps for other axes than the image has, or a
            stride that does not divide the image.

    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> conv.name
    'conv'
    """

    name: str
    batch: int
    size: tuple[int, ...]
    channels: int
    filters: int
    taps: tuple[int, ...] = (1, 1)
    stride: int = 1
    upsample: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "channels", "filters", "stride", "upsample"):
            positive(f"{name} of {self.name!r}", getattr(self, name), MORE)
        for name in ("size", "taps"):
            check_axes(name, getattr(self, name))
        if len(self.size) != len(self.taps) or len(self.size) < 2:
            raise ValueError(
                f"{self.name!r} has an image of {len(self.size)} axes and taps of "
                f"{len(self.taps)}; both need the same two or more: pass a height of 1"
            )
        check_kinds(self)

    @property
    def outputs(self) -> tuple[int, ...]:
        """Places of the output along each axis."""
        return tuple(-(-n * self.upsample // self.stride) for n in self.size)

    @property
    def multiplies(self) -> int:
        """Multiply-adds of the forward pass; taps on the border are counted."""
        return self.taps_per_output * self.channels * self.filters * self.batch * prod(self.outputs)

    @property
    def taps_per_output(self) -> int:
        """Taps that meet one place of the output; of a transposed convolution a part of all."""
        return max(1, prod(self.taps) // self.upsample ** len(self.size))

    @property
    def weights(self) -> int:
        """Numbers in the filter."""
        return prod(self.taps) * self.channels * self.filters


def dense(name: str, batch: int, inputs: int, outputs: int) -> Shape:
    """A dense layer: a convolution of one place.

    >>> dense("first", 100, 1000, 32).multiplies
    3200000
    """
    return Shape(name, batch, (1, 1), inputs, outputs)


@dataclass(frozen=True)
class Layout:
    """How a layer is split over the grid; filters and taps run in time.

    Across lie the last axis of the image and a part of the channels, down the batch, the other axes
    and the rest of the channels; neighbouring channels are neighbours.

    Attributes:
        batch: parts of the batch.
        across: parts of the channels along a row.
        down: parts of the channels along a column.
        size: parts of each axis of the image.

    Raises:
        ValueError: a number of parts that is not positive.

    >>> from wse import layout
    >>> halves = layout.Layout(batch=2, across=1, down=1, size=(8, 8))
    >>> halves.batch
    2
    """

    batch: int
    across: int
    down: int
    size: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kinds(self)
        positive("a number of parts", min(self.batch, self.across, self.down, *self.size), MORE)

    @property
    def columns(self) -> int:
        """PEs across."""
        return self.across * self.size[-1]

    @property
    def rows(self) -> int:
        """PEs down."""
        return self.batch * self.down * prod(self.size[:-1])

    @property
    def channels(self) -> int:
        """Parts of the channels."""
        return self.across * self.down

    @property
    def pes(self) -> int:
        """PEs that work."""
        return self.columns * self.rows

    def __str__(self) -> str:
        """As in "batch 4, channels 2 x 1, image 100 x 75"."""
        image = " x ".join(map(str, self.size))
        return f"batch {self.batch}, channels {self.across} x {self.down}, image {image}"


def part(size: int, parts: int) -> int:
    """The largest part: the ceiling of size / parts."""
    return -(-size // parts)


def grid_of(wafer: Any) -> Wafer:
    """A grid, or one CS-2 in place of None.

    Raises:
        TypeError: anything else.
    """
    of_kind("wafer", wafer, Wafer | None, "pass a grid, as wse.layout.Wafer.of(), or leave it out")
    return wafer or Wafer.of()


def check_axes(name: str, values: Any) -> None:
    """Refuse what is no row of positive integers."""
    of_kind(name, values, list | tuple, f"pass one number for each axis: {name}=(64, 64)")
    for value in values:
        positive(f"an axis of {name}", value, MORE)
