"""Zeros in square blocks: as many blocks in each column of blocks, so that products can skip them.

A matrix (n, m) is cut into N = ⌈n/b⌉ by M = ⌈m/b⌉ blocks of b × b; those at the far edges may reach
beyond it. Each of the M columns keeps k of its N blocks, k = round(N · density) where b divides n.
Else the lowest block has t = n - (N - 1) b rows: of a column k b rows are kept, or (k - 1) b + t,
and k and the columns with the lowest block are such that as nearly n m density weights are kept
as blocks allow.
"""

# JAX and NumPy annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


@dataclass(frozen=True)
class Layout:
    """Which blocks of a matrix are kept.

    Attributes:
        shape: of the matrix, inputs × outputs.
        block: the side of a block.
        index: the kept rows of blocks of each column, (column, kept) in int32, as bytes: what a
            compiled program was made for is then compared at once.
    """

    shape: tuple[int, int]
    block: int
    index: bytes

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of blocks."""
        return grid(self.shape, self.block)

    @property
    def rows(self) -> Int[np.ndarray, "column kept"]:
        """The kept rows of blocks of each column."""
        return np.frombuffer(self.index, np.int32).reshape(self.grid[1], -1)

    @property
    def density(self) -> float:
        """The share of the matrix's weights that lie in kept blocks."""
        (height, width), b = self.shape, self.block
        tall = np.minimum(b, height - b * self.rows).sum(1)
        wide = np.minimum(b, width - b * np.arange(self.grid[1]))
        return float(tall @ wide) / (height * width)

    def pack(self, matrix: Array) -> Array:
        """Take the kept blocks of a matrix, as (column, kept · b, b)."""
        (rows, columns), b = self.grid, self.block
        blocks = _padded(matrix, (rows * b, columns * b)).reshape(rows, b, columns, b)
        taken = blocks.transpose(2, 0, 1, 3)[np.arange(columns)[:, None], self.rows]
        return taken.reshape(columns, -1, b)

    def unpack(self, values: Array) -> Array:
        """Make the matrix with zeros between the kept blocks."""
        (rows, columns), b = self.grid, self.block
        empty = jnp.zeros((columns, rows, b, b), values.dtype)
        blocks = values.reshape(columns, -1, b, b)
        whole = empty.at[np.arange(columns)[:, None], self.rows].set(blocks)
        matrix = whole.transpose(1, 2, 0, 3).reshape(rows * b, columns * b)
        return matrix[: self.shape[0], : self.shape[1]]

    def times(self, x: Array, values: Array, **how: Any) -> Array:
        """Multiply x (sample, input) by the matrix: gather blocks of x, one product per column."""
        (rows, columns), b = self.grid, self.block
        x = _padded(x, (x.shape[0], rows * b)).reshape(-1, rows, b)
        gathered = x.at[:, self.rows].get(mode="promise_in_bounds")
        gathered = gathered.reshape(len(x), columns, -1)
        dimensions = (((2,), (1,)), ((1,), (0,)))
        y = jax.lax.dot_general(gathered, values, dimensions, **how)
        return y.transpose(1, 0, 2).reshape(len(x), -1)[:, : self.shape[1]]


def grid(shape: Sequence[int], block: int) -> tuple[int, int]:
    """Rows and columns of blocks of a matrix.

    >>> grid((1000, 2048), 64)
    (16, 32)
    """
    return -(-shape[0] // block), -(-shape[1] // block)


def chosen_rows(
    score: Float[Array, "..."], block: int, density: float
) -> Int[Array, "column kept"]:
    """Choose in each column the blocks with the largest sum of scores; of equal ones the first.

    The lowest blocks, where they reach beyond the matrix, are compared by their mean of a row, and
    as many of them are chosen as bring the number of weights nearest to what is asked.

    Raises:
        ValueError: no matrix, or one with too few blocks: none or all of a column would be kept.
    """
    if score.ndim != 2:
        raise ValueError(
            f"block is {block} for a parameter of shape {score.shape}; blocks are cut from "
            "matrices alone: name the parameter in Rule(exempt=...)"
        )
    rows, columns = grid(score.shape, block)
    last = score.shape[0] - (rows - 1) * block
    kept = round(rows * density) if last == block else _nearest(score.shape[0], block, density)
    if not 0 < kept < rows and density < 1:
        raise ValueError(
            f"block is {block} for a matrix of shape {score.shape}; of {rows} blocks above one "
            f"another {rows * density:.2g} would be kept, which makes {kept} whole ones: pass a "
            "smaller block, or name the matrix in Rule(exempt=...)"
        )
    whole = _padded(score, (rows * block, columns * block))
    sums = whole.reshape(rows, block, columns, block).sum((1, 3))
    if last < block and 0 < kept < rows:
        sums = _with_lowest(sums, score.shape, block, kept, density)
    order = jnp.argsort(sums, axis=0, descending=True, stable=True)
    return jnp.sort(order[:kept], axis=0).T.astype(jnp.int32)


def _nearest(height: int, block: int, density: float) -> int:
    """How many blocks of a column can keep nearly so many of its rows; the fewer of two."""
    rows = -(-height // block)
    last, wanted = height - (rows - 1) * block, height * density

    def away(kept: int) -> float:
        if kept in (0, rows):
            return abs(wanted - height * (kept > 0))
        return max((kept - 1) * block + last - wanted, wanted - kept * block, 0.0)

    return min((*range(1, rows), 0, rows), key=away)


def _with_lowest(
    sums: Float[Array, "row column"], shape: Sequence[int], block: int, kept: int, density: float
) -> Float[Array, "row column"]:
    """The same scores, with the lowest blocks above all others in as many columns as are needed."""
    rows, columns = sums.shape
    last, narrow = shape[0] - (rows - 1) * block, shape[1] % block
    whole = columns - (narrow > 0)
    wanted = (kept * block - density * shape[0]) * shape[1]

    def away(given: tuple[int, int]) -> float:
        return abs((given[0] * block + given[1] * narrow) * (block - last) - wanted)

    several = ((many, one) for many in range(whole + 1) for one in range(1 + (narrow > 0)))
    many, one = min(several, key=away)
    full = jnp.sort(sums[:-1], axis=0, descending=True)[kept - 1]
    gain = (sums[-1] / last - full / block)[:whole]
    order = jnp.argsort(gain, descending=True, stable=True)[:many]
    chosen = jnp.zeros(columns, bool).at[order].set(True).at[whole:].set(bool(one))
    return sums.at[-1].set(jnp.where(chosen, jnp.inf, -jnp.inf))


def block_mask(
    rows: Int[Array, "column kept"], shape: tuple[int, ...], block: int
) -> Bool[Array, "n m"]:
    """Mark the weights of the chosen blocks."""
    height, columns = grid(shape, block)
    found = jnp.zeros((columns, height), bool)
    found = found.at[jnp.arange(columns)[:, None], rows].set(True).T
    return found.repeat(block, 0).repeat(block, 1)[: shape[0], : shape[1]]


def _padded(matrix: Array, shape: tuple[int, int]) -> Array:
    return jnp.pad(matrix, [(0, to - n) for n, to in zip(matrix.shape, shape, strict=True)])
