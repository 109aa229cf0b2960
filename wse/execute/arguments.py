"""What an executor was made for: the tree and the shapes of its parameters and batches."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend import core
from jax.sharding import Mesh

from wse.graph.flops import inner_programs
from wse.graph.layers import Graph
from wse.graph.outline import check_array, paths, shape, typed, unlike
from wse.graph.source import nearer


class Parameters:
    """The tree of parameters that an executor was made for.

    Args:
        params: a tree of floating-point arrays, or of their shapes.

    Raises:
        ValueError: a parameter that is no array.
    """

    def __init__(self, params: Any) -> None:
        self.structure = jax.tree.structure(params)
        for name, leaf in zip(paths(params), jax.tree.leaves(params), strict=True):
            check_array("parameter", name, leaf)
        self.shapes = jax.tree.map(shape, params)

    def checked(self, params: Any) -> list[Any]:
        """Return the leaves of a tree of the same structure and shapes.

        Raises:
            ValueError: parameters of another tree or of other shapes.
        """
        leaves, structure = jax.tree.flatten(params)
        if structure != self.structure:
            raise ValueError(
                f"params is the tree {structure}; the executor was made for {self.structure}: "
                "make another executor"
            )
        _check_numbers("params", leaves)
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


def check_state(found: tuple[Any, Any], wanted: tuple[Any, Any]) -> None:
    """Refuse parameters and a state of the optimizer that are not an executor's own."""
    for what, here, there in zip(("parameters", "optimizer's arrays"), found, wanted, strict=True):
        if said := unlike(here, there):
            raise ValueError(
                f"state is another executor's: its {what} have {said}; model and optimizer must be "
                "the same: pass what this executor's init(params) or train_step returned"
            )


def check_samples(size: int) -> None:
    """Refuse a batch without samples: its mean would be no number."""
    if not size:
        raise ValueError(
            f"the batch has {size} samples; a mean needs at least one: pass arrays that are not "
            "empty"
        )


def signature(batch: Any) -> Any:
    """What two batches have in common if one program serves both.

    Raises:
        ValueError: an entry that is no array.
    """
    leaves, structure = jax.tree.flatten(batch)
    _check_numbers("batch", leaves)
    try:
        known = [*map(typed, leaves)]
    except TypeError:
        for name, leaf in zip(paths(batch), leaves, strict=True):
            check_array("batch entry", name, leaf)
        raise
    # A Python number takes the type of what it meets, an array of the same type does not.
    return (structure, tuple((x.shape, x.dtype, x.weak_type) for x in known))


def _check_numbers(name: str, leaves: Iterable[Any]) -> None:
    """Refuse what JAX traces: layers are visited with numbers."""
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        raise ValueError(
            f"{name} has no numbers yet, as under jax.jit, grad or vmap; an executor runs compiled "
            "programs of its own: call it outside of these"
        )


def host(leaf: Any) -> Any:
    """An array as NumPy, in the type that JAX computes in."""
    array = np.asarray(leaf)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def check_meshes(graph: Graph, devices: tuple[Any, ...]) -> None:
    """Refuse a loss that lays arrays over other devices than its executor runs on.

    Raises:
        ValueError: a mesh of others, or of the same in another order.
    """
    for layer in graph.layers:
        for name, mesh, line in _meshes(layer.jaxpr.jaxpr, layer.source):
            if (found := tuple(mesh.devices.flat)) != devices:
                raise ValueError(
                    f"the loss calls {name} over a mesh of the devices {[x.id for x in found]} "
                    f"({line}); the executor runs on {[x.id for x in devices]}: leave it "
                    "out, since systems share a batch without being told, or make its mesh of these"
                )


def _meshes(program: core.Jaxpr, call: str) -> Iterator[tuple[str, Mesh, str]]:
    """The calls in a program that lay arrays over devices, these, and the user's lines."""
    for eqn in program.eqns:
        line = nearer(eqn, call)
        laid = (eqn.params.get("sharding"), *eqn.params.get("devices", ()))
        for mesh in (eqn.params.get("mesh"), *(getattr(x, "mesh", None) for x in laid)):
            if isinstance(mesh, Mesh):
                yield eqn.primitive.name, mesh, line
        for inner in inner_programs(eqn):
            yield from _meshes(inner, line)
