"""Words of a mesh: a grid of elements, ports of a router, routes of colours, instructions."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from wse._numbers import is_whole, one_of
from wse.machine import catalog

MOST = 2**31 - 1  # the largest integer of the simulator, which counts in 32 bits
OPERATIONS = ("move", "add", "multiply", "fma")
REMEDY = "a difference is an fma with -1; divisions, maxima, branches and tasks are left out"

Place = tuple[int, int]  # (column, row)


def whole(number: Any) -> bool:
    """Whether something is an integer that the simulator holds."""
    return is_whole(number, -MOST) and int(number) <= MOST


class Port(IntEnum):
    """The five ports of a router; row 0 lies in the north, column 0 in the west.

    >>> from wse.mesh import Port
    >>> Port.EAST.step, Port.EAST.opposite.name
    ((1, 0), 'WEST')
    """

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

    >>> Grid(columns=12, rows=8).columns
    12
    """

    columns: int
    rows: int = 1
    ramp_cycles: int = 2
    memory_bytes: int = int(catalog.CS2.sram_per_core_bytes.value)

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "ramp_cycles", "memory_bytes"):
            if not (whole(size := getattr(self, name)) and size > 0):
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

    >>> from wse.mesh import Port, Route
    >>> along = Route(frozenset({Port.WEST}), frozenset({Port.EAST, Port.RAMP}))  # on, and in here
    >>> len(along.outputs)
    2
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

    Raises:
        ValueError: what is no integer of 32 bits.

    >>> from wse.mesh import Stream
    >>> Stream(base=4, inner=2).base
    4
    """

    base: int = 0
    inner: int = 1
    outer: int = 0

    def __post_init__(self) -> None:
        for name in ("base", "inner", "outer"):
            if not whole(number := getattr(self, name)):
                raise ValueError(
                    f"{name} of a Stream is {number!r}; addresses are whole words: pass an integer"
                )


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
        ValueError: an unknown operation, turns or a colour that are no integers, no turns, a hold
            without a source, or an "fma" to a colour.

    >>> from wse.mesh import Instruction
    >>> Instruction("move", target=0, inner=3).inner
    3
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
        one_of("operation", self.operation, OPERATIONS, REMEDY)
        for name in ("first", "second", "result"):
            if not isinstance(stream := getattr(self, name), Stream):
                raise ValueError(
                    f"{name} of an instruction is {stream!r}; addresses are a Stream: pass "
                    "Stream(base=0)"
                )
        hold: Any = self.hold
        if not isinstance(hold, bool):
            raise ValueError(f"hold is {hold!r}; it must be True or False: pass True")
        for name in ("inner", "outer"):
            if not (whole(turns := getattr(self, name)) and turns > 0):
                raise ValueError(
                    f"{name} of an instruction is {turns!r} turns; it needs at least one, and a "
                    "whole number: leave it out or pass an integer"
                )
        for name in ("source", "target"):
            if not ((colour := getattr(self, name)) is None or whole(colour)):
                raise ValueError(
                    f"{name} of an instruction is {colour!r}; a colour is an integer: pass one"
                )
        if self.hold and self.source is None:
            raise ValueError(
                f"hold needs a wavelet to hold, and source is {self.source}: pass source=colour"
            )
        if self.operation == "fma" and self.target is not None:
            raise ValueError(
                f"an fma adds to memory and cannot send to colour {self.target}: follow it by a "
                "move with a target"
            )
