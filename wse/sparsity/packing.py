"""Weights without their zeros: of blockwise masks, what is kept and nothing else."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from wse._numbers import short
from wse.sparsity.blocks import Layout
from wse.sparsity.fixed import Magnitude, Static
from wse.sparsity.masking import first_rows, sparsified


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PackedMatrix:
    """The kept blocks of a matrix; a pytree whose one leaf is `values`.

    Attributes:
        values: (column, kept · b, b): of each column of blocks, the kept ones above one another.
        layout: which they are; fixed when a program is compiled.

    >>> import numpy as np
    >>> from wse.sparsity import PackedMatrix, Static, packed
    >>> params = {"a": np.ones((64, 64), "f4"), "b": np.ones((64, 2), "f4")}
    >>> weights = packed(params, Static(0.75, block=16))
    >>> isinstance(weights["a"], PackedMatrix), weights["a"].values.shape
    (True, (4, 16, 16))
    """

    values: Any
    layout: Layout = field(metadata={"static": True})

    def __repr__(self) -> str:
        """One line: the matrix, its blocks, and the share of its weights that is kept."""
        sizes, found = " x ".join(map(str, self.layout.shape)), self.layout.density
        return f"PackedMatrix({sizes} in blocks of {self.layout.block}, {found:.1%} kept)"


def packed(params: Any, method: Static | Magnitude) -> Any:
    """The parameters with their sparse matrices packed, each now a `PackedMatrix`.

    Weights, gradients and an optimizer's moments of packed parameters hold the kept blocks alone.
    `unpacked(packed(params, method))` is `sparsified(params, method)`.

    Args:
        params: a tree of arrays.
        method: with `block` of 2 or more.

    Raises:
        ValueError: a method whose masks move or have no blocks, a sparse parameter that is no
            matrix, or one with too few blocks for its density.

    >>> import numpy as np
    >>> from wse.sparsity import Static, packed
    >>> params = {"a": np.ones((64, 64), "f4"), "b": np.ones((64, 2), "f4")}
    >>> weights = packed(params, Static(0.75, block=16))
    >>> weights["a"].values.shape, weights["b"].shape  # four columns keep one block of four each
    ((4, 16, 16), (64, 2))
    """
    check_blocks(method)
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params)):
        raise ValueError(
            f"params are traced, not arrays, where {short(method)} is to pack them; a program is "
            "compiled for known blocks: call packed outside jit and grad"
        )
    leaves, structure = jax.tree.flatten(sparsified(params, method))
    found: list[Any] = []
    for leaf, rows in zip(leaves, first_rows(params, method), strict=True):
        if rows is not None:
            layout = Layout(leaf.shape, method.block, np.asarray(rows, np.int32).tobytes())
            leaf = PackedMatrix(layout.pack(leaf), layout)
        found.append(leaf)
    return jax.tree.unflatten(structure, found)


def unpacked(weights: Any) -> Any:
    """The parameters of a packed tree, with the zeros between the blocks.

    >>> import numpy as np
    >>> from wse.sparsity import Static, packed, unpacked
    >>> params = {"a": np.ones((64, 64), "f4"), "b": np.ones((64, 2), "f4")}
    >>> unpacked(packed(params, Static(0.75, block=16)))["a"].shape
    (64, 64)
    """
    return jax.tree.map(
        lambda leaf: leaf.layout.unpack(leaf.values) if is_packed(leaf) else leaf,
        weights,
        is_leaf=is_packed,
    )


def repacked(params: Any, like: Any) -> Any:
    """Dense parameters in the blocks of a packed tree, whatever lies outside them left out."""
    leaves, structure = jax.tree.flatten(like, is_leaf=is_packed)
    found = [
        PackedMatrix(old.layout.pack(jnp.asarray(new)), old.layout) if is_packed(old) else new
        for old, new in zip(leaves, jax.tree.leaves(params), strict=True)
    ]
    return jax.tree.unflatten(structure, found)


def is_packed(leaf: Any) -> bool:
    """Whether this is a `PackedMatrix`."""
    return isinstance(leaf, PackedMatrix)


def check_blocks(method: Any) -> None:
    """Refuse a method without blocks that stay."""
    if not isinstance(method, Static | Magnitude) or method.block == 1:
        raise ValueError(
            f"method is {short(method)}; packed weights need masks in blocks that stay where they "
            "are: pass wse.sparsity.Static(0.9, block=32), or Magnitude with a block"
        )
