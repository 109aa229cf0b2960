"""Random numbers that belong to a place, so that tiles of a domain draw what the whole draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

Index = int | Int[Array, ""]
Corner = tuple[Index, Index]  # row and column of a domain's part; may be traced


def cell_noise(
    key: Key[Array, ""],
    shape: tuple[int, ...],
    factor: int,
    corner: Corner = (0, 0),
) -> Float[Array, "*lead y x"]:
    """Return standard normal numbers on the fine grid, a key of its own for each coarse cell.

    Args:
        key: of the whole domain.
        shape: (*lead, y_lo, x_lo), of the coarse cells.
        factor: fine points per coarse point.
        corner: row and column in the domain of the first cell.
    """
    *lead, y, x = shape

    def cell(row: Array, column: Array) -> Float[Array, "*lead factor factor"]:
        own = jax.random.fold_in(jax.random.fold_in(key, row), column)
        return jax.random.normal(own, (*lead, factor, factor))

    rows, columns = corner[0] + jnp.arange(y), corner[1] + jnp.arange(x)
    cells = jax.vmap(lambda row: jax.vmap(lambda column: cell(row, column))(columns))(rows)
    n = len(lead)
    cells = cells.transpose(*range(2, 2 + n), 0, 2 + n, 1, 3 + n)
    return cells.reshape(*lead, factor * y, factor * x)


def drawing(key: Key[Array, ""] | None) -> Key[Array, ""]:
    """Return the key of a loss that draws.

    Raises:
        ValueError: there is none.
    """
    if key is None:
        raise ValueError("this loss draws noise; pass a key: net.loss(coarse, fine, key=key)")
    return key
