"""What runs on a mesh: routes, and code and data of every element, checked before they run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from wse.machine.machine import Sourced
from wse.mesh.code import OPERATIONS, Grid, Instruction, Place, Port, Route, Stream, whole
from wse.mesh.kinds import check_circles, check_kinds

COLOURS = Sourced(
    24, "count", "sourced", "pedronahum/cerebras-csl-skills, SKILL-ROUTES.md", "WSE-2"
)

WORD_BYTES = 4  # a wavelet and a number of this simulator: 32 bits
FIELDS = 15  # numbers that encode an instruction
LARGE = 256  # elements; assumed: from here on time goes to the cycles, not to compiling
NOWHERE = Stream(0, 0, 0)  # in place of operands that an instruction does not use
OPERANDS = ("first", "second", "result")


class Listing(NamedTuple):
    """All instructions of a program, one after another.

    Attributes:
        steps: themselves.
        x: columns of their elements.
        y: rows.
        number: places in the code of their elements.
        encoded: their numbers.
    """

    steps: list[Instruction]
    x: Int[np.ndarray, " steps"]
    y: Int[np.ndarray, " steps"]
    number: Int[np.ndarray, " steps"]
    encoded: Int[np.ndarray, "steps fields"]


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
        ValueError: what is of another kind, memory beyond an element's or beyond `words`, a colour
            beyond the router's, a place off the grid, a route that leads off it or in a circle, an
            instruction with addresses outside `words`, or one whose colour its router does not take
            from or give to the element.

    >>> from wse.mesh import Grid, Instruction, Port, Program, Route, simulate
    >>> ramp, east, west = (frozenset({port}) for port in (Port.RAMP, Port.EAST, Port.WEST))
    >>> routes = {((0, 0), 0): Route(ramp, east), ((1, 0), 0): Route(west, ramp)}
    >>> code = {(0, 0): [Instruction("move", target=0)], (1, 0): [Instruction("add", source=0)]}
    >>> memory = {(0, 0): [1], (1, 0): [10]}
    >>> run = simulate(Program(Grid(columns=2), routes, code, memory, words=1))
    >>> run.memory[0, 1].tolist()
    [11.0]
    """

    grid: Grid
    routes: Mapping[tuple[Place, int], Route]
    code: Mapping[Place, Sequence[Instruction]]
    memory: Mapping[Place, Any]
    words: int

    def __post_init__(self) -> None:
        check_kinds(self.grid, self.routes, self.code, self.memory)
        limit = self.grid.memory_bytes // WORD_BYTES
        if not (whole(self.words) and self.words > 0):
            raise ValueError(f"words is {self.words!r}; it must be a positive integer: pass 1")
        if self.words > limit:
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
        self._check_memory()
        self._check_routes()
        check_circles(self.routes)
        self._check_addresses()
        self._check_ramps()

    def __repr__(self) -> str:
        steps = sum(map(len, self.code.values()))
        size = f"{self.grid.columns} x {self.grid.rows}"
        return f"Program({size} elements of {self.words} words, {steps} instructions)"

    def _check_memory(self) -> None:
        for place, values in self.memory.items():
            if (size := np.size(values)) > self.words:
                raise ValueError(
                    f"memory of element {place} has {size} words; each element has {self.words} in "
                    f"use: pass words={size} or fewer values"
                )

    def _check_routes(self) -> None:
        for (place, colour), route in self.routes.items():
            if not (whole(colour) and 0 <= colour < COLOURS.value):
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

    def _check_addresses(self) -> None:
        """Refuse the first instruction that leaves its element's words, in one of its turns."""
        low, high = _reach(self._listing.encoded)
        outside = (low < 0) | (high >= self.words)
        if not outside.any():
            return
        at, operand = np.argwhere(outside)[0].tolist()
        address = int(low[at, operand] if low[at, operand] < 0 else high[at, operand])
        wider = f" or pass words={address + 1}" if address >= 0 else ""
        raise ValueError(
            f"{self._named(at)}: {OPERANDS[operand]} reaches address {address}; an element has "
            f"words 0 to {self.words - 1}: correct that Stream{wider}"
        )

    def _check_ramps(self) -> None:
        """Refuse an instruction whose colour does not pass its router's ramp, receivers first."""
        listing, most = self._listing, int(COLOURS.value)
        ways = (("source", "receives", "outputs"), ("target", "sends", "inputs"))
        for column, (name, verb, ports) in enumerate(ways, start=1):
            colour = listing.encoded[:, column]
            beyond = (colour < -1) | (colour >= most)
            passes = self._ramps(ports)[listing.y, listing.x, np.clip(colour, 0, most - 1)]
            wrong = beyond | ((colour >= 0) & ~passes)
            if not wrong.any():
                continue
            at = int(np.argmax(wrong))
            said = f"{self._named(at)} {verb} colour {getattr(listing.steps[at], name)}"
            if beyond[at]:
                raise ValueError(f"{said}; a router has {most}, from 0: reuse one")
            raise ValueError(
                f"{said}, for which its router has no route with Port.RAMP among the {ports}; a "
                "colour passes the ramp by a route alone: add that Route at this element"
            )

    def _ramps(self, ports: str) -> Bool[np.ndarray, "rows columns colours"]:
        """Whether the ramp is among the inputs, or outputs, of a colour's route."""
        found = np.zeros((self.grid.rows, self.grid.columns, int(COLOURS.value)), bool)
        for ((x, y), colour), route in self.routes.items():
            found[y, x, colour] = Port.RAMP in getattr(route, ports)
        return found

    def _named(self, at: int) -> str:
        listing = self._listing
        place = (int(listing.x[at]), int(listing.y[at]))
        return f"element {place}, instruction {listing.number[at]} (from 0)"

    @cached_property
    def _listing(self) -> Listing:
        where = [(x, y, i) for (x, y), steps in self.code.items() for i in range(len(steps))]
        steps = [step for steps in self.code.values() for step in steps]
        x, y, number = np.array(where, np.int64).reshape(-1, 3).T
        encoded = np.array([_encode(step) for step in steps], np.int64).reshape(-1, FIELDS)
        return Listing(steps, x, y, number, encoded)

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
        listing = self._listing
        depth = int(listing.number.max(initial=-1)) + 1
        code = np.zeros((*shape, _rounded(depth + 1, 32), FIELDS), np.int32)
        code[listing.y, listing.x, listing.number] = listing.encoded
        length = np.zeros(shape, np.int32)
        np.add.at(length, (listing.y, listing.x), 1)
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
    streams = (
        NOWHERE if step.operation == "move" else step.first,
        NOWHERE if step.source is not None else step.second,
        NOWHERE if step.target is not None else step.result,
    )
    return [
        OPERATIONS.index(step.operation),
        _colour(step.source),
        _colour(step.target),
        step.inner,
        step.outer,
        int(step.hold),
        *(n for s in streams for n in (s.base, s.inner, s.outer)),
    ]


def _colour(colour: int | None) -> int:
    """-1 without a colour; a negative one stays recognizable as none that a router has."""
    if colour is None:
        return -1
    return colour if colour >= 0 else -2


def _reach(
    encoded: Int[np.ndarray, "steps fields"],
) -> tuple[Int[np.ndarray, "steps operands"], Int[np.ndarray, "steps operands"]]:
    """The least and the largest address of the operands: at the ends of the two loops."""
    base, inner, outer = (encoded[:, n::3] for n in (6, 7, 8))
    ends = [inner * (encoded[:, 3:4] - 1), outer * (encoded[:, 4:5] - 1)]
    low, high = (base + sum(pick(end, 0) for end in ends) for pick in (np.minimum, np.maximum))
    return low, high
