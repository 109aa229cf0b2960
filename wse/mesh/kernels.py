"""Three kernels of scientific computing as programs of the mesh."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from wse.mesh.code import Grid, Instruction, Place, Port, Route, Stream
from wse.mesh.patterns import RAMP, Draft, dealt, receive, reduce_line, reduce_rows, send
from wse.mesh.program import Program


@dataclass(frozen=True)
class Kernel:
    """A program, and where its result lies.

    Attributes:
        program: what runs.
        places: elements that hold a part of the result, in its order over (rows, columns).
        words: addresses of that part.
        shape: of the result.

    >>> import numpy as np
    >>> from wse import mesh
    >>> kernel = mesh.total(mesh.Grid(columns=2, rows=2), np.arange(8.0))
    >>> run = mesh.simulate(kernel.program)
    >>> float(kernel.result(run.memory)), run.cycles
    (28.0, 16)
    """

    program: Program
    places: tuple[tuple[Place, ...], ...]
    words: tuple[int, ...]
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Kernel({self.program}, result of shape {self.shape})"

    def result(self, memory: Float[np.ndarray, "rows columns words"]) -> np.ndarray:
        """Collect the result from the memory that a run left."""
        parts = [[memory[y, x, list(self.words)] for x, y in row] for row in self.places]
        if len(self.shape) < 2:
            return np.concatenate([part for row in parts for part in row]).reshape(self.shape)
        height = self.shape[0] // len(self.places)
        return np.block([[part.reshape(height, -1) for part in row] for row in parts])


def total(grid: Grid, values: Any) -> Kernel:
    """Sum a vector that is dealt out to all elements: each sums its own, then a reduction.

    Args:
        grid: the elements; their number divides the values.
        values: the vector.

    Returns:
        The kernel; its result is one number.

    Raises:
        ValueError: a length that the elements do not divide.

    >>> import numpy as np
    >>> from wse import mesh
    >>> summed = mesh.total(mesh.Grid(columns=2, rows=2), np.arange(16.0))
    >>> float(summed.result(mesh.simulate(summed.program).memory))
    120.0
    """
    elements, values = grid.columns * grid.rows, dealt("values", values, "value")
    each = _share("values", len(values), elements)
    draft = Draft()
    # Word 0 is the sum; it starts at zero.
    local = Instruction(
        "add", first=Stream(0, 0), second=Stream(1), result=Stream(0, 0), inner=each
    )
    parts = np.pad(values.reshape(grid.rows, grid.columns, each), ((0, 0), (0, 0), (1, 0)))
    for place in _places(grid):
        draft.run(place, local)
    reduce_rows(draft, grid, 1, "chain")
    reduce_line(draft, [(0, y) for y in range(grid.rows)], 1, "chain")
    memory = {(x, y): parts[y, x] for x, y in _places(grid)}
    program = Program(grid, draft.routes, draft.code, memory, each + 1)
    return Kernel(program, (((0, 0),),), (0,), ())


def matvec(grid: Grid, matrix: Any, vector: Any) -> Kernel:
    """Multiply a matrix, dealt out in blocks, with a vector, dealt out over the first row.

    The vector's parts travel down their columns; each word is multiplied with a column of the block
    as it arrives; the products are summed along the rows, into the first column.

    Args:
        grid: the elements; rows divide m and columns divide n.
        matrix: blocks of (m / rows, n / columns) lie in the elements.
        vector: parts of n / columns lie in the first row of elements.

    Returns:
        The kernel; its result is the product.

    Raises:
        ValueError: a size that the grid does not divide, or blocks beyond an element's memory.

    >>> import numpy as np
    >>> from wse import mesh
    >>> kernel = mesh.matvec(mesh.Grid(columns=2, rows=2), np.eye(4), np.arange(4.0))
    >>> kernel.result(mesh.simulate(kernel.program).memory).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    matrix, vector = dealt("matrix", matrix, "m n"), dealt("vector", vector, "n")
    if len(vector) != matrix.shape[1]:
        raise ValueError(
            f"vector has {len(vector)} numbers for {matrix.shape[1]} columns of the matrix; there "
            "must be one for each: pass that many"
        )
    tall = _share("rows of the matrix", matrix.shape[0], grid.rows)
    wide = _share("columns of the matrix", matrix.shape[1], grid.columns)
    draft = Draft()
    colour = next(draft.colours)
    # Words: the result, then the block by columns, then (in the first row) the vector.
    product = Instruction(
        "fma",
        source=colour,
        first=Stream(tall, 1, tall),
        result=Stream(0, 1, 0),
        inner=tall,
        outer=wide,
        hold=True,
    )
    own = replace(product, source=None, hold=False, second=Stream(tall * (wide + 1), 0, 1))
    memory: dict[Place, np.ndarray] = {}
    for x, y in _places(grid):
        block = matrix[y * tall :, x * wide :][:tall, :wide]
        part = vector[x * wide :][:wide] if y == 0 else np.zeros(0)
        memory[x, y] = np.concatenate([np.zeros(tall), block.ravel(order="F"), part])
        inputs = RAMP if y == 0 else frozenset({Port.NORTH})
        if y + 1 < grid.rows:
            draft.route((x, y), colour, inputs, Port.SOUTH)
        if y > 0:
            draft.route((x, y), colour, inputs, Port.RAMP)
            draft.run((x, y), product)
        elif grid.rows > 1:
            draft.run((x, 0), send(colour, wide, tall * (wide + 1)), own)
        else:
            draft.run((x, 0), own)
    reduce_rows(draft, grid, tall, "chain")
    words = tall * (wide + 1) + wide
    program = Program(grid, draft.routes, draft.code, memory, words)
    places = tuple(((0, y),) for y in range(grid.rows))
    return Kernel(program, places, tuple(range(tall)), (matrix.shape[0],))


def stencil(
    grid: Grid,
    field: Any,
    *,
    centre: float = 0.0,
    neighbours: float = 0.25,
    steps: int = 1,
) -> Kernel:
    """Apply a five-point stencil with zeros outside: centre u + neighbours (north + ... + west).

    Each element holds a block with a rim. In every step blocks exchange their edges with four
    neighbours, elements of even and odd place taking turns, and compute.

    Args:
        grid: the elements; rows divide y and columns divide x.
        field: u; blocks of (y / rows, x / columns) lie in the elements.
        centre: weight of a point itself.
        neighbours: weight of each of its four neighbours.
        steps: how often it is applied.

    Returns:
        The kernel; its result is the new field.

    Raises:
        ValueError: a size that the grid does not divide, or blocks beyond an element's memory.

    >>> import numpy as np
    >>> from wse import mesh
    >>> grid = mesh.Grid(columns=2, rows=2)
    >>> heat = mesh.stencil(grid, np.eye(4), centre=0.0, neighbours=0.25, steps=1)
    >>> heat.result(mesh.simulate(heat.program).memory).tolist()[0]
    [0.0, 0.5, 0.0, 0.0]
    """
    field = dealt("field", field, "y x")
    block = _Block(
        _share("rows of the field", field.shape[0], grid.rows),
        _share("columns of the field", field.shape[1], grid.columns),
    )
    memory: dict[Place, np.ndarray] = {}
    for x, y in _places(grid):
        inner = field[y * block.tall :, x * block.wide :][: block.tall, : block.wide]
        rim = np.pad(inner, 1).ravel()
        memory[x, y] = np.concatenate([rim, np.zeros(block.size), [centre, neighbours]])
    draft = Draft()
    colours = {(port, odd): next(draft.colours) for port in list(Port)[:4] for odd in (0, 1)}
    for step in range(steps):
        here, there = (0, block.size) if step % 2 == 0 else (block.size, 0)
        for place in _places(grid):
            draft.run(place, *_exchange(draft, grid, place, block, here, colours))
            draft.run(place, *block.update(here, there))
    program = Program(grid, draft.routes, draft.code, memory, 2 * block.size + 2)
    last = block.size if steps % 2 else 0
    words = tuple(last + address for address in block.inside())
    places = tuple(tuple((x, y) for x in range(grid.columns)) for y in range(grid.rows))
    return Kernel(program, places, words, field.shape)


@dataclass(frozen=True)
class _Block:
    """One element's part of a field, with its rim, in its memory."""

    tall: int
    wide: int

    @property
    def pitch(self) -> int:
        return self.wide + 2

    @property
    def size(self) -> int:
        return (self.tall + 2) * self.pitch

    def inside(self) -> Iterator[int]:
        """Addresses of the points, without the rim."""
        for i, j in np.ndindex(self.tall, self.wide):
            yield (i + 1) * self.pitch + j + 1

    def edge(self, port: Port, *, rim: bool) -> tuple[int, int, int]:
        """First address, step and length of an edge: its own points, or the rim beyond them."""
        beyond = int(rim)
        row = {Port.NORTH: 1 - beyond, Port.SOUTH: self.tall + beyond}.get(port, 1)
        column = {Port.WEST: 1 - beyond, Port.EAST: self.wide + beyond}.get(port, 1)
        along = port in (Port.NORTH, Port.SOUTH)
        length = self.wide if along else self.tall
        return row * self.pitch + column, 1 if along else self.pitch, length

    def update(self, here: int, there: int) -> Iterator[Instruction]:
        """The arithmetic: centre and four neighbours, into the other field."""

        def at(base: int, shift: int = 0) -> Stream:
            return Stream(base + self.pitch + 1 + shift, 1, self.pitch)

        centre, neighbours = (Stream(2 * self.size + n, 0, 0) for n in (0, 1))
        own = Instruction(
            "multiply",
            first=at(here),
            second=centre,
            result=at(there),
            inner=self.wide,
            outer=self.tall,
        )
        yield own
        for shift in (-self.pitch, self.pitch, -1, 1):
            yield replace(own, operation="fma", first=at(here, shift), second=neighbours)


def _exchange(
    draft: Draft,
    grid: Grid,
    place: Place,
    block: _Block,
    base: int,
    colours: dict[tuple[Port, int], int],
) -> Iterator[Instruction]:
    """Send each edge and receive each rim; even elements send first, odd ones receive first."""
    odd = (place[0] + place[1]) % 2
    for port in list(Port)[:4]:
        for sender in (0, 1):
            ahead = port if sender == odd else port.opposite
            other = (place[0] + ahead.step[0], place[1] + ahead.step[1])
            if not grid.holds(other):
                continue
            colour = colours[port, sender]
            start, step, length = block.edge(ahead, rim=sender != odd)
            if sender == odd:
                draft.routes[place, colour] = Route(RAMP, frozenset({port}))
                yield replace(send(colour, length), second=Stream(base + start, step))
            else:
                draft.routes[place, colour] = Route(frozenset({ahead}), RAMP)
                yield replace(receive(colour, length), result=Stream(base + start, step))


def _places(grid: Grid) -> list[Place]:
    return [(x, y) for y in range(grid.rows) for x in range(grid.columns)]


def _share(what: str, size: int, parts: int) -> int:
    if size % parts:
        raise ValueError(
            f"{what} number {size}; the {parts} elements along them must divide that: "
            "pad with zeros"
        )
    return size // parts
