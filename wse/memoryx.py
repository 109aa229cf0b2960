"""MemoryX: the weights and the optimizer's state, off the device."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from wse.equations import Weight
from wse.shelf import Shelf

if TYPE_CHECKING:
    from wse.updates import Update

Array = NDArray[Any]


@dataclass(frozen=True)
class MemoryX:
    """Weights and optimizer state of one step, in the host's memory or in files.

    Nothing in it is ever changed in place: a step makes another one. A device may therefore use
    its arrays without a copy.

    Attributes:
        weights: the parameters, as leaves.
        states: the optimizer's state, as leaves.
        structure: the tree of the parameters.
        update: the optimizer in pieces; None: weights only.
        step: how many updates were made.
        shelf: where the files lie; None: in memory.
    """

    weights: tuple[Array, ...]
    states: tuple[Array, ...]
    structure: Any
    update: "Update | None" = None
    step: int = 0
    shelf: Shelf | None = None

    @property
    def params(self) -> Any:
        """The parameters as the tree that they came in; NumPy arrays, not to be written to."""
        return jax.tree.unflatten(self.structure, self.weights)

    @property
    def optimizer_state(self) -> Any:
        """The optimizer's state as optax knows it; None without an optimizer."""
        if self.update is None:
            return None
        return jax.tree.unflatten(self.update.structure, self.states)

    @property
    def nbytes(self) -> int:
        """Bytes of weights and optimizer state."""
        return sum(array.nbytes for array in (*self.weights, *self.states))

    def read(self, weight: Weight) -> Array:
        """A parameter, or the slice of one; no copy is made."""
        return self.weights[weight.leaf][weight.index]

    def receive(self, expected: Mapping[int, int]) -> "Receiving":
        """Start a step that takes `expected` gradients for each parameter."""
        return Receiving(self, dict(expected))


def store(params: Any, optimizer: Any = None, folder: Path | str | None = None) -> MemoryX:
    """Take parameters in: copies of them, and the optimizer's first state.

    Args:
        params: any tree of arrays; of their shapes, to continue what lies in `folder`.
        optimizer: any optax optimizer; None: weights only.
        folder: keep the arrays in files there, not in memory. If it holds a complete step of the
            same model, that step is continued.

    Returns:
        The store of step 0, or of the step found in `folder`.

    Raises:
        ValueError: `folder` holds another model, or a file that is cut short; or shapes alone, and
            nothing to continue.
    """
    from wse.updates import cut

    leaves, structure = jax.tree.flatten(params)
    like = tuple(_blank(leaf) for leaf in leaves)
    update = None
    states: tuple[Array, ...] = ()
    tree = jax.tree.unflatten(structure, like)
    if optimizer is not None:
        update = cut(optimizer, jax.tree.map(_shape, tree))
        made = jax.eval_shape(optimizer.init, jax.tree.map(_shape, tree))
        states = tuple(_blank(x) for x in jax.tree.leaves(made))
    blank = MemoryX(like, states, structure, update)
    if folder is None:
        return _filled(blank, leaves, optimizer)
    return _shelved(blank, leaves, optimizer, Path(folder))


def _filled(blank: MemoryX, leaves: Sequence[Any], optimizer: Any) -> MemoryX:
    """The store of step 0, in memory."""
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise ValueError(
            "params has shapes alone, and there is no complete step to continue; a new store needs "
            "numbers: pass arrays"
        )
    weights = tuple(_owned(leaf) for leaf in leaves)
    states: tuple[Array, ...] = ()
    if optimizer is not None:
        tree = jax.tree.unflatten(blank.structure, weights)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            states = tuple(np.asarray(x) for x in jax.tree.leaves(jax.jit(optimizer.init)(tree)))
    return replace(blank, weights=weights, states=states)


def _shelved(blank: MemoryX, leaves: Sequence[Any], optimizer: Any, folder: Path) -> MemoryX:
    """The store of the last complete step in a folder, or of step 0."""
    from wse.tracing import paths

    count, like = len(blank.weights), (*blank.weights, *blank.states)
    shelf = Shelf(folder, count, tuple(paths(blank.params)))
    step = shelf.begin(like)
    if step is None:
        step, filled = 0, _filled(blank, leaves, optimizer)
        for i, array in enumerate((*filled.weights, *filled.states)):
            shelf.put(0, i, array)
        shelf.commit(0)
    arrays = tuple(shelf.get(step, i, array) for i, array in enumerate(like))
    return replace(blank, weights=arrays[:count], states=arrays[count:], step=step, shelf=shelf)


@dataclass
class Receiving:
    """A step in progress: gradients come in, pieces of the update run when theirs are complete.

    Attributes:
        old: the store before the step; it stays readable.
        expected: gradients still to come, for each parameter.
        gradients: what came in and was not used up by an update.
    """

    old: MemoryX
    expected: dict[int, int]
    gradients: dict[int, Array] = field(default_factory=dict[int, Array])
    _new: dict[int, Array] = field(default_factory=dict[int, Array])
    _done: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        """Parameters that nothing reads have a gradient of zero."""
        for leaf, array in enumerate(self.old.weights):
            if not self.expected.get(leaf):
                self.gradients[leaf] = np.zeros_like(array)

    def give(self, weight: Weight, gradient: Any) -> None:
        """Take the gradient of a parameter or of a slice of one."""
        array = np.asarray(gradient)
        leaf = weight.leaf
        if weight.index or leaf in self.gradients:
            if leaf not in self.gradients:
                self.gradients[leaf] = np.zeros_like(self.old.weights[leaf])
            elif not self.gradients[leaf].flags.writeable:
                self.gradients[leaf] = self.gradients[leaf].copy()
            self.gradients[leaf][weight.index] += array
        else:
            self.gradients[leaf] = array
        self.expected[leaf] -= 1

    def advance(self) -> list[int]:
        """Run the pieces whose gradients are complete; return the parameters updated."""
        updated: list[int] = []
        pieces = self.old.update.pieces if self.old.update else ()
        for i, piece in enumerate(pieces):
            if i not in self._done and all(self._complete(leaf) for leaf in piece.gradients):
                self._run(i)
                updated += piece.new_weights
        return updated

    def finish(self) -> MemoryX:
        """Return the store after the step; every piece has run."""
        self.advance()
        step, shelf, count = self.old.step + 1, self.old.shelf, len(self.old.weights)
        if shelf is not None:
            shelf.commit(step)
        total = count + len(self.old.states)
        arrays = tuple(self._new[i] for i in range(total))
        return replace(self.old, weights=arrays[:count], states=arrays[count:], step=step)

    def _complete(self, leaf: int) -> bool:
        return not self.expected.get(leaf) and leaf in self.gradients

    def _run(self, i: int) -> None:
        assert self.old.update is not None
        piece, old = self.old.update.pieces[i], self.old
        weights, states = piece.run(
            [self.gradients[leaf] for leaf in piece.gradients],
            [old.weights[leaf] for leaf in piece.weights],
            [old.states[leaf] for leaf in piece.states],
        )
        count = len(old.weights)
        for leaf, array in zip(piece.new_weights, weights, strict=True):
            self._keep(leaf, array)
        for leaf, array in zip(piece.new_states, states, strict=True):
            self._keep(count + leaf, array)
        for leaf in piece.gradients:
            del self.gradients[leaf]
        self._done.add(i)

    def _keep(self, place: int, array: Array) -> None:
        shelf = self.old.shelf
        self._new[place] = array if shelf is None else shelf.put(self.old.step + 1, place, array)


def _owned(leaf: Any) -> Array:
    """A copy in the type that JAX computes in: the caller may change his own array."""
    dtype = jax.dtypes.canonicalize_dtype(np.asarray(leaf).dtype)
    array = np.array(leaf, dtype)
    array.flags.writeable = False
    return array


def _blank(leaf: Any) -> Array:
    """An array of this shape that takes no memory."""
    shape = _shape(leaf)
    return np.broadcast_to(np.zeros((), shape.dtype), shape.shape)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    found = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    return jax.ShapeDtypeStruct(found.shape, found.dtype)


def total_bytes(arrays: Sequence[Array]) -> int:
    """Bytes of several arrays."""
    return sum(array.nbytes for array in arrays)
