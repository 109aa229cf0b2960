"""What runs on a mesh: a grid, routes of colours, and the code and data of every element."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from wse.machine import catalog
from wse.machine.machine import Sourced

COLOURS = Sourced(
    24, "count", "sourced", "pedronahum/cerebras-csl-skills, SKILL-ROUTES.md", "WSE-2"
)

WORD_BYTES = 4  # a wavelet and a number of this simulator: 32 bits
FIELDS = 15  # numbers that encode an instruction
LARGE = 256  # elements; assumed: from here on time goes to the cycles, not to compiling
OPERATIONS = ("move", "add", "multiply", "fma")

Place = tuple[int, int]  # (column, row)


class Port(IntEnum):
    """The five ports of a router; row 0 lies in the north, column 0 in the west."""

    NORTH = 0
    EAST = 1
    SOUTH = 2
    WEST = 3
    RAMP = 4

    @property
    def step(self) -> Place:
        """Where the link leads: columns and rows."""
        return ((0, -1), (1, 0), (0, 1), (-1, 0), (0, 0))[self]

    @property
    def opposite(self) -> "Port":
        """The port at the other end of the link; of the ramp, itself."""
        return self if self is Port.RAMP else Port((self + 2) % 4)


@dataclass(frozen=True)
class Grid:
    """A rectangle of processing elements.

    Attributes:
        columns: across, from west to east.
        rows: down, from north to south.
        ramp_cycles: T_R, between an element and its router, each way.
        memory_bytes: of each element, for data; code is not counted.

    Raises:
        ValueError: a size that is not positive.
    """

    columns: int
    rows: int = 1
    ramp_cycles: int = 2
    memory_bytes: int = int(catalog.CS2.sram_per_core_bytes.value)

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "ramp_cycles", "memory_bytes"):
            if (size := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {size}; it must be a positive integer: pass 1 or more")

    def holds(self, place: Place) -> bool:
        """Whether a place lies on the grid."""
        return 0 <= place[0] < self.columns and 0 <= place[1] < self.rows


@dataclass(frozen=True)
class Route:
    """What a router does with one colour: from any of some ports to all of some others.

    Attributes:
        inputs: ports that the colour may come from.
        outputs: ports that each wavelet is forwarded to.
    """

    inputs: frozenset[Port]
    outputs: frozenset[Port]


@dataclass(frozen=True)
class Stream:
    """Addresses of an operand, one per turn of an instruction's two loops.

    The address of turn (i, j) is base + i inner + j outer, in words.

    Attributes:
        base: the first address.
        inner: step of the inner loop.
        outer: step of the outer loop.
    """

    base: int = 0
    inner: int = 1
    outer: int = 0


@dataclass(frozen=True)
class Instruction:
    """One vector instruction: an element per cycle, as long as its input and output allow.

    With x the wavelet of colour `source`, or else the word of `second`, the result is x ("move"),
    first + x ("add"), first x ("multiply") or the old result + first x ("fma"). It goes to colour
    `target`, or else to the words of `result`.

    Attributes:
        operation: one of `OPERATIONS`.
        source: a colour to receive; None: from memory.
        target: a colour to send; None: to memory.
        first: addresses of the first operand.
        second: addresses of the second operand, if there is no source.
        result: addresses of the result, if there is no target.
        inner: turns of the inner loop.
        outer: turns of the outer loop.
        hold: whether one wavelet serves all turns of the inner loop.

    Raises:
        ValueError: an unknown operation, no turns, a hold without a source, or an "fma" to a
            colour.
    """

    operation: str
    source: int | None = None
    target: int | None = None
    first: Stream = field(default_factory=Stream)
    second: Stream = field(default_factory=Stream)
    result: Stream = field(default_factory=Stream)
    inner: int = 1
    outer: int = 1
    hold: bool = False

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(
                f"operation is {self.operation!r}; it must be one of {', '.join(OPERATIONS)}"
            )
        if self.inner < 1 or self.outer < 1:
            raise ValueError(
                f"an instruction has {self.inner} x {self.outer} turns; it needs at least one: "
                "leave it out"
            )
        if self.hold and self.source is None:
            raise ValueError("hold needs a wavelet to hold: pass source=colour")
        if self.operation == "fma" and self.target is not None:
            raise ValueError(
                "an fma adds to memory and cannot send: follow it by a move with a target"
            )


@dataclass(frozen=True)
class Program:
    """All that a mesh needs to run.

    Attributes:
        grid: the elements.
        routes: by place and colour.
        code: instructions by place, run one after another.
        memory: words by place; elements that are not named start with zeros.
        words: words of memory that each element has in use.

    Raises:
        ValueError: memory beyond an element's, a colour beyond the router's, a place off the grid,
            or a route that leads off it.
    """

    grid: Grid
    routes: Mapping[tuple[Place, int], Route]
    code: Mapping[Place, Sequence[Instruction]]
    memory: Mapping[Place, Any]
    words: int

    def __post_init__(self) -> None:
        limit = self.grid.memory_bytes // WORD_BYTES
        if not 1 <= self.words <= limit:
            raise ValueError(
                f"each element needs {self.words * WORD_BYTES} bytes; it has "
                f"{self.grid.memory_bytes}: spread the data over more elements"
            )
        for place in (*self.code, *self.memory, *(place for place, _ in self.routes)):
            if not self.grid.holds(place):
                raise ValueError(
                    f"place {place} is off the grid of {self.grid.columns} x {self.grid.rows}; "
                    "places count from (0, 0): check the order (column, row)"
                )
        for (place, colour), route in self.routes.items():
            if not 0 <= colour < COLOURS.value:
                raise ValueError(
                    f"colour is {colour}; a router has {COLOURS.value}, from 0: reuse one"
                )
            for port in route.outputs | route.inputs:
                beyond = (place[0] + port.step[0], place[1] + port.step[1])
                if not self.grid.holds(beyond):
                    raise ValueError(
                        f"colour {colour} at {place} is routed {port.name.lower()}, off the grid: "
                        "end the route one element earlier"
                    )

    @property
    def colours(self) -> int:
        """Colours in use, from 0."""
        return 1 + max((colour for _, colour in self.routes), default=0)

    def arrays(self) -> dict[str, np.ndarray]:
        """Routes, code and memory as arrays over (row, column, ...).

        Sizes are rounded up to powers of two, so that programs share what is compiled. Of a large
        mesh colours that nothing uses would take most of the time.
        """
        shape = (_rounded(self.grid.rows), _rounded(self.grid.columns))
        least = 8 if shape[0] * shape[1] < LARGE else 1
        outputs = np.zeros((*shape, _rounded(self.colours, least), 5), bool)
        inputs = np.zeros_like(outputs)
        for ((x, y), colour), route in self.routes.items():
            outputs[y, x, colour, sorted(route.outputs)] = True
            inputs[y, x, colour, sorted(route.inputs)] = True
        depth = max((len(code) for code in self.code.values()), default=0)
        code = np.zeros((*shape, _rounded(depth + 1, 32), FIELDS), np.int32)
        length = np.zeros(shape, np.int32)
        for (x, y), steps in self.code.items():
            length[y, x] = len(steps)
            for i, step in enumerate(steps):
                code[y, x, i] = _encode(step)
        memory = np.zeros((*shape, _rounded(self.words, 64)), np.float32)
        for (x, y), values in self.memory.items():
            flat = np.ravel(values)
            memory[y, x, : len(flat)] = flat
        return {
            "outputs": outputs,
            "inputs": inputs,
            "code": code,
            "length": length,
            "memory": memory,
        }


def _rounded(size: int, least: int = 1) -> int:
    return max(least, 1 << (size - 1).bit_length())


def _encode(step: Instruction) -> list[int]:
    streams = (step.first, step.second, step.result)
    return [
        OPERATIONS.index(step.operation),
        -1 if step.source is None else step.source,
        -1 if step.target is None else step.target,
        step.inner,
        step.outer,
        int(step.hold),
        *(n for s in streams for n in (s.base, s.inner, s.outer)),
    ]
