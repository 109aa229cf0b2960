"""What an executor was made for: the tree and the shapes of its parameters and batches."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from typing import Any

import jax
import numpy as np


class Parameters:
    """The tree of parameters that an executor was made for.

    Args:
        params: a tree of floating-point arrays, or of their shapes.
    """

    def __init__(self, params: Any) -> None:
        self.structure = jax.tree.structure(params)
        self.shapes = jax.tree.map(shape, params)

    def checked(self, params: Any) -> list[Any]:
        """Return the leaves of a tree of the same structure and shapes.

        Raises:
            ValueError: parameters of another tree or of other shapes.
        """
        from wse.tracing import paths

        leaves, structure = jax.tree.flatten(params)
        if structure != self.structure:
            raise ValueError(
                f"params is the tree {structure}; the executor was made for {self.structure}: "
                "make another executor"
            )
        names, known = paths(self.shapes), jax.tree.leaves(self.shapes)
        for name, leaf, expected in zip(names, leaves, known, strict=True):
            if (found := shape(leaf)) != expected:
                raise ValueError(
                    f"parameter {name!r} is {found.dtype}{list(found.shape)}; the executor was "
                    f"made for {expected.dtype}{list(expected.shape)}: make another executor"
                )
        return leaves

    def tree(self, leaves: Any) -> Any:
        """Put leaves back into the tree."""
        return jax.tree.unflatten(self.structure, leaves)


def shape(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of an array, or of what is a shape already."""
    found = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return jax.ShapeDtypeStruct(found.shape, found.dtype)


def signature(batch: Any) -> Any:
    """What two batches have in common if one program serves both."""
    leaves, structure = jax.tree.flatten(batch)
    return (structure, tuple((x.shape, str(x.dtype)) for x in map(shape, leaves)))


def host(leaf: Any) -> Any:
    """An array as NumPy, in the type that JAX computes in."""
    array = np.asarray(leaf)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
