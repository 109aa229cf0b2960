"""Reduce, broadcast and all-reduce as programs of the mesh, in the patterns of `wse.collective`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from wse.machine import collective
from wse.mesh.code import Grid, Instruction, Place, Port, Route, Stream
from wse.mesh.program import Program

RAMP = frozenset({Port.RAMP})


@dataclass
class Draft:
    """A program being written.

    Attributes:
        routes: as of `Program`.
        code: as of `Program`.
        colours: those that are still free.
    """

    routes: dict[tuple[Place, int], Route] = field(default_factory=dict[tuple[Place, int], Route])
    code: dict[Place, list[Instruction]] = field(default_factory=dict[Place, list[Instruction]])
    colours: Iterator[int] = field(default_factory=count)

    def run(self, place: Place, *steps: Instruction) -> None:
        """Add instructions to an element."""
        self.code.setdefault(place, []).extend(steps)

    def route(self, place: Place, colour: int, inputs: frozenset[Port], port: Port) -> None:
        """Let a router take a colour from some ports to one more."""
        known = self.routes.get((place, colour), Route(frozenset(), frozenset()))
        self.routes[place, colour] = Route(known.inputs | inputs, known.outputs | {port})

    def lane(self, cells: Sequence[Place], colour: int) -> None:
        """Route a colour from the first cell's element over all cells to the last's."""
        came = Port.RAMP
        for here, there in pairwise(cells):
            port = toward(here, there)
            self.route(here, colour, frozenset({came}), port)
            came = port.opposite
        self.route(cells[-1], colour, frozenset({came}), Port.RAMP)


def send(colour: int, words: int, base: int = 0) -> Instruction:
    """Send words of memory."""
    return Instruction("move", target=colour, second=Stream(base), inner=words)


def receive(colour: int, words: int) -> Instruction:
    """Receive words into memory."""
    return Instruction("move", source=colour, inner=words)


def receive_add(colour: int, words: int, times: int = 1) -> Instruction:
    """Add what arrives to memory; `times` vectors, one after another."""
    return Instruction("add", source=colour, inner=words, outer=times)


def forward_add(source: int, target: int, words: int) -> Instruction:
    """Send on the sum of what arrives and memory."""
    return Instruction("add", source=source, target=target, inner=words)


def toward(here: Place, there: Place) -> Port:
    """The port through which a neighbour is reached."""
    step = (there[0] - here[0], there[1] - here[1])
    return next(port for port in Port if port.step == step)


def dealt(name: str, values: Any, axes: str) -> np.ndarray:
    """Return real numbers, as floating point, in an array with these axes.

    Raises:
        ValueError: other numbers, or another count of axes.
    """
    found, asked = np.asarray(values), axes.split()
    if found.ndim != len(asked) or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has shape {found.shape} and type {found.dtype}; it must hold real numbers "
            f"along {', '.join(asked)}: reshape or convert it"
        )
    return found if found.dtype.kind == "f" else found.astype(float)


def reduce(grid: Grid, values: Any, pattern: str | None = None) -> Program:
    """Sum `values` over elements into the memory of element (0, 0), along rows first.

    Args:
        grid: the elements; those in the north-west that have values take part.
        values: what each element holds: (rows, columns, words).
        pattern: as for `wse.collective.reduce`.

    Returns:
        The program; words 0, 1, ... of element (0, 0) end as the sums.

    Raises:
        ValueError: more values than elements, or other axes.

    >>> import numpy as np
    >>> from wse import mesh
    >>> mesh.reduce(mesh.Grid(columns=4), np.ones((1, 4, 2)), "tree").words
    2
    """
    draft, values = Draft(), dealt("values", values, "rows columns words")
    _reduce(draft, _part(grid, values), values.shape[-1], pattern)
    return _program(draft, grid, values)


def broadcast(grid: Grid, values: Any) -> Program:
    """Send the words of element (0, 0) to the others that have values, forked by the routers.

    >>> import numpy as np
    >>> from wse import mesh
    >>> run = mesh.simulate(mesh.broadcast(mesh.Grid(columns=3), np.array([[[7.0], [0.0], [0.0]]])))
    >>> run.memory[0, :, 0].tolist()
    [7.0, 7.0, 7.0]
    """
    draft, values = Draft(), dealt("values", values, "rows columns words")
    _broadcast(draft, _part(grid, values), values.shape[-1])
    return _program(draft, grid, values)


def all_reduce(grid: Grid, values: Any, pattern: str | None = None) -> Program:
    """Sum `values` over elements into the memory of them all: `reduce`, then `broadcast`.

    >>> import numpy as np
    >>> from wse import mesh
    >>> run = mesh.simulate(mesh.all_reduce(mesh.Grid(columns=3), np.ones((1, 3, 1)), "chain"))
    >>> run.memory[0, :, 0].tolist()
    [3.0, 3.0, 3.0]
    """
    draft, values = Draft(), dealt("values", values, "rows columns words")
    part = _part(grid, values)
    _reduce(draft, part, values.shape[-1], pattern)
    _broadcast(draft, part, values.shape[-1])
    return _program(draft, grid, values)


def reduce_line(draft: Draft, cells: Sequence[Place], words: int, pattern: str) -> None:
    """Sum words 0, 1, ... of a straight line of neighbours into its first cell.

    The pattern is one of `wse.collective.PATTERNS`.
    """
    if len(cells) > 1:
        _LINES[pattern](draft, cells, words)


def reduce_rows(draft: Draft, grid: Grid, words: int, pattern: str) -> None:
    """Sum along every row into the first column, all rows with the same colours."""
    rows = [[(x, y) for x in range(grid.columns)] for y in range(grid.rows)]
    _same_colours(draft, rows, words, pattern)


def _chain(draft: Draft, cells: Sequence[Place], words: int, step: int = 1) -> None:
    """Sums travel to the first cell and stop at every `step`-th one; two colours take turns."""
    stops = range(0, len(cells), step)
    pair = (next(draft.colours), next(draft.colours))
    last = len(stops) - 1
    for n in range(1, last + 1):
        draft.lane([cells[i] for i in range(stops[n], stops[n - 1] - 1, -1)], pair[n % 2])
        onward = forward_add(pair[(n + 1) % 2], pair[n % 2], words)
        draft.run(cells[stops[n]], send(pair[n % 2], words) if n == last else onward)
    draft.run(cells[stops[0]], receive_add(pair[1], words))


def _star(draft: Draft, cells: Sequence[Place], words: int) -> None:
    """All send to the root; a router's own ramp goes first, so words arrive by distance."""
    colour = next(draft.colours)
    for i in range(1, len(cells)):
        draft.route(cells[i], colour, RAMP, toward(cells[i], cells[i - 1]))
        draft.run(cells[i], send(colour, words))
    draft.lane(cells[::-1], colour)
    draft.run(cells[0], receive_add(colour, words, times=len(cells) - 1))


def _tree(draft: Draft, cells: Sequence[Place], words: int) -> None:
    """Binary: each round halves the elements that still hold a sum; a colour a round."""
    size = len(cells)
    rounds = [next(draft.colours) for _ in range((size - 1).bit_length())]
    for x in range(size):
        level = (x & -x).bit_length() - 1 if x else len(rounds)
        heard = [rounds[r] for r in range(level) if x + 2**r < size]
        if x == 0:
            draft.run(cells[0], *(receive_add(colour, words) for colour in heard))
            continue
        draft.lane(cells[x - 2**level : x + 1][::-1], rounds[level])
        draft.run(cells[x], *(receive_add(colour, words) for colour in heard[:-1]))
        own = rounds[level]
        draft.run(cells[x], forward_add(heard[-1], own, words) if heard else send(own, words))


def _two_phase(draft: Draft, cells: Sequence[Place], words: int) -> None:
    """Chains within groups, all with the same two colours, then a chain of their first cells."""
    size = collective.group(len(cells))
    groups = [cells[start : start + size] for start in range(0, len(cells), size)]
    _same_colours(draft, groups, words, "chain")
    if len(groups) > 1:
        _chain(draft, cells, words, size)


_LINES = {"star": _star, "chain": _chain, "tree": _tree, "two-phase": _two_phase}


def _reduce(draft: Draft, grid: Grid, words: int, pattern: str | None) -> None:
    """Reduce along all rows, with the same colours, then down the first column."""
    if grid.columns > 1:
        along = collective.reduce((grid.columns, 1), words, pattern).patterns[0]
        reduce_rows(draft, grid, words, along)
    if grid.rows > 1:
        down = collective.reduce((grid.rows, 1), words, pattern).patterns[0]
        reduce_line(draft, [(0, y) for y in range(grid.rows)], words, down)


def _same_colours(draft: Draft, lines: Sequence[Sequence[Place]], words: int, pattern: str) -> None:
    first = next(draft.colours)
    used = first
    for cells in lines:
        draft.colours = count(first)
        reduce_line(draft, cells, words, pattern)
        used = max(used, next(draft.colours))
    draft.colours = count(used)


def _broadcast(draft: Draft, grid: Grid, words: int) -> None:
    """Along the first row, and down every column from there."""
    colour = next(draft.colours)
    for x in range(grid.columns):
        for y in range(grid.rows):
            came = Port.WEST if y == 0 else Port.NORTH
            inputs = frozenset({Port.RAMP if (x, y) == (0, 0) else came})
            if y == 0 and x + 1 < grid.columns:
                draft.route((x, y), colour, inputs, Port.EAST)
            if y + 1 < grid.rows:
                draft.route((x, y), colour, inputs, Port.SOUTH)
            if (x, y) != (0, 0):
                draft.route((x, y), colour, inputs, Port.RAMP)
                draft.run((x, y), receive(colour, words))
    if grid.columns * grid.rows > 1:
        draft.run((0, 0), send(colour, words))


def _part(grid: Grid, values: Float[np.ndarray, "rows columns words"]) -> Grid:
    """The elements that take part, as a grid of their own."""
    rows, columns = values.shape[:2]
    if rows > grid.rows or columns > grid.columns:
        raise ValueError(
            f"values are for {columns} x {rows} elements; the grid has {grid.columns} x "
            f"{grid.rows}: pass no more than that"
        )
    return Grid(columns, rows)


def _program(draft: Draft, grid: Grid, values: Float[np.ndarray, "rows columns words"]) -> Program:
    memory = {(x, y): values[y, x] for y, x in np.ndindex(*values.shape[:2])}
    return Program(grid, draft.routes, draft.code, memory, values.shape[-1])
