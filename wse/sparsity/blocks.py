"""Zeros in square blocks: as many blocks in each column of blocks, so that products can skip them.

A matrix (n, m) is cut into N = ⌈n/b⌉ by M = ⌈m/b⌉ blocks of b × b; those at the far edges may reach
beyond it. Each of the M columns keeps k = round(N · density) of its N blocks.
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

    Raises:
        ValueError: no matrix, or one with too few blocks: none or all of a column would be kept.
    """
    if score.ndim != 2:
        raise ValueError(
            f"block is {block} for a parameter of shape {score.shape}; blocks are cut from "
            "matrices alone: name the parameter in Rule(exempt=...)"
        )
    rows, columns = grid(score.shape, block)
    kept = round(rows * density)
    if not 0 < kept < rows and density < 1:
        raise ValueError(
            f"block is {block} for a matrix of shape {score.shape}; of {rows} blocks above one "
            f"another {rows * density:.2g} would be kept, which makes {kept} whole ones: pass a "
            "smaller block, or name the matrix in Rule(exempt=...)"
        )
    whole = _padded(score, (rows * block, columns * block))
    sums = whole.reshape(rows, block, columns, block).sum((1, 3))
    order = jnp.argsort(sums, axis=0, descending=True, stable=True)
    return jnp.sort(order[:kept], axis=0).T.astype(jnp.int32)


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
