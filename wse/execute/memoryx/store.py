"""MemoryX: the weights and the optimizer's state, off the device."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ref

import jax
import numpy as np
from numpy.typing import NDArray

from wse._files import as_path
from wse.execute.memoryx.shelf import Shelf
from wse.execute.updates import Piece, Update, cut, first_state
from wse.graph.equations import Weight
from wse.graph.outline import outline, paths, shape, table, unlike

Array = NDArray[Any]
# Runs what makes new parameters, each with its place, in a thread of its own.
Beside = Callable[[Callable[[], Iterable[tuple[int, Any]]]], Future[None]]


@dataclass(frozen=True, repr=False)
class MemoryX:
    """Weights and optimizer state of one step, in the host's memory or in files.

    Nothing in it is ever changed in place: a step makes another one. A device may therefore use
    its arrays without a copy. Only the memory of a step before the last one, to which nobody refers
    any more, is used again.

    Attributes:
        held: the leaves of the parameters, then those of the optimizer's state: NumPy's, or JAX's
            where a step made them in memory, which its programs take in a tenth of the time.
        structure: the tree of the parameters.
        update: the optimizer in pieces; None: weights only.
        step: how many updates were made.
        shelf: where the files lie; None: nowhere.
        every: the arrays are in memory, and written every so many steps; None: the arrays are in
            the files.
        spare: what the step before held: its memory is written over by the next step, unless
            somebody still refers to it.
        spared: asks for the owner of that; None when there is none any more.
        owner: lives as long as any store with these arrays.

    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import optax
    >>> import wse
    >>> weights = {"w": np.ones((4, 2))}
    >>> def loss(params, batch):
    ...     return jnp.mean((batch @ params["w"]) ** 2)
    >>> executor = wse.CS2().executor(loss, weights, np.ones((8, 4)), optax.sgd(0.1))
    >>> store, value = executor.train_step(executor.init(weights), np.ones((8, 4)))
    >>> float(value), store.step, round(float(store.params["w"][0, 0]), 3)
    (16.0, 1, 0.6)
    """

    held: tuple[Any, ...]
    structure: Any
    update: Update | None = None
    step: int = 0
    shelf: Shelf | None = None
    every: int | None = None
    spare: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    spared: Callable[[], Any] = field(default=lambda: None, repr=False, compare=False)
    owner: "_Owner" = field(default_factory=lambda: _Owner(), repr=False, compare=False)

    def __repr__(self) -> str:
        """One line: the step, how much there is, and where."""
        states = len(self.held) - self.count
        held = f"{self.count} weights, {states} states, {self.nbytes:,} bytes"
        place = f"in {self.shelf.folder}" if self.shelf else "in memory"
        return f"MemoryX(step {self.step}: {held}, {place})"

    def _repr_html_(self) -> str:
        """The weights under that line, for a notebook."""
        return table(repr(self), self.params)

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return self.structure.num_leaves

    @property
    def weights(self) -> tuple[Array, ...]:
        """The parameters, as leaves; NumPy arrays, not to be written to."""
        return tuple(map(np.asanyarray, self.held[: self.count]))

    @property
    def states(self) -> tuple[Array, ...]:
        """The optimizer's state, in the same way."""
        return tuple(map(np.asanyarray, self.held[self.count :]))

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
    def filed(self) -> bool:
        """Whether the arrays lie in files, not in memory."""
        return self.shelf is not None and self.every is None

    @property
    def nbytes(self) -> int:
        """Bytes of weights and optimizer state."""
        return sum(array.nbytes for array in self.held)

    def read(self, weight: Weight) -> Array:
        """A parameter, or the slice of one; no copy is made."""
        return np.asanyarray(self.held[weight.leaf])[weight.index]

    def sent(self, weight: Weight) -> Any:
        """The same, as JAX knows it where a step made it: the host's own device fetches nothing."""
        return self.read(weight) if weight.index else self.held[weight.leaf]

    def receive(self, expected: Mapping[int, int], beside: Beside | None = None) -> "Receiving":
        """Start a step that takes `expected` gradients for each parameter."""
        return Receiving(self, dict(expected), beside)


class _Owner:
    """Lives as long as some store that holds the same arrays."""


def store(
    params: Any,
    optimizer: Any = None,
    folder: Path | str | None = None,
    *,
    optimizer_state: Any = None,
    checkpoint_every: int | None = None,
    budget_bytes: int | None = None,
    arrivals: Mapping[int, int] | None = None,
) -> MemoryX:
    """Take parameters in: copies of them, and the optimizer's first state.

    Args:
        params: any tree of arrays; of their shapes, to continue what lies in `folder`.
        optimizer: any optax optimizer; None: weights only.
        folder: keep the arrays in files there, not in memory. If it holds a complete step of the
            same model, that step is continued.
        optimizer_state: go on from this state of the optimizer, not from its first one.
        checkpoint_every: keep the arrays in memory, and write them to `folder` every so many steps.
        budget_bytes: the most that the old and the new step together may hold in memory. Beyond it
            the arrays lie in files: in `folder`, or in a temporary one that leaves with the store.
        arrivals: when each parameter's gradient comes, as of `wse.execute.updates.cut`.

    Returns:
        The store of step 0, or of the step found in `folder`.

    Raises:
        ValueError: `folder` holds another model or optimizer, a file that is not as it was written,
            or arrays without a manifest; shapes alone, and nothing to continue; an optimizer's
            state of another optimizer; a period without a folder or that is not a positive
            integer; what `wse.execute.updates.cut` refuses.
        OSError: a file cannot be written, or another process works in `folder`.
    """
    if folder is not None:
        folder = as_path("folder", folder, 'pass folder="run/store", or None to keep no files')
    _check_period(checkpoint_every, folder)
    leaves, structure = jax.tree.flatten(params)
    like = tuple(_blank(leaf) for leaf in leaves)
    update, states = None, ()
    if optimizer is not None:
        shapes = jax.tree.unflatten(structure, [shape(x) for x in like])
        update = cut(optimizer, shapes, arrivals)
        states = tuple(map(_blank, jax.tree.leaves(update.state)))
    blank = MemoryX((*like, *states), structure, update, every=checkpoint_every)
    if budget_bytes is not None and 2 * blank.nbytes > budget_bytes:
        blank = replace(blank, every=None)
    elif folder is None:
        return _filled(blank, leaves, optimizer, optimizer_state)
    return _shelved(blank, leaves, optimizer, optimizer_state, folder)


def _filled(
    blank: MemoryX,
    leaves: Sequence[Any],
    optimizer: Any,
    state: Any,
    keep: Callable[[int, Array], Array] = lambda _, array: array,
) -> MemoryX:
    """The store of step 0; each array goes through `keep` before the next is made."""
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise ValueError(
            "params has shapes alone, and there is no complete step to continue; a new store needs "
            "numbers: pass arrays"
        )
    weights = tuple(keep(i, _owned(leaf)) for i, leaf in enumerate(leaves))
    made: Iterator[Any] = iter(())
    if state is not None:
        made = map(_owned, _checked_state(blank, state))
    elif optimizer is not None:
        made = first_state(optimizer, jax.tree.unflatten(blank.structure, weights))
    states = (keep(len(weights) + i, array) for i, array in enumerate(made))
    return replace(blank, held=(*weights, *states))


def _shelved(
    blank: MemoryX, leaves: Sequence[Any], optimizer: Any, state: Any, folder: Path | str | None
) -> MemoryX:
    """The store of the last complete step in a folder, or of step 0."""
    count, like = blank.count, blank.held
    names = tuple(paths(blank.params))
    kept = 1 if jax.process_count() == 1 else 2
    shelf = (
        Shelf(Path(folder), count, names, kept=kept) if folder else Shelf.temporary(count, names)
    )
    step = shelf.begin(like, outline(blank.optimizer_state))
    if step is None and blank.every:
        return replace(_filled(blank, leaves, optimizer, state), shelf=shelf)
    if step is None:
        made = _filled(blank, leaves, optimizer, state, lambda i, array: shelf.put(0, i, array))
        shelf.commit(0)
        return replace(made, shelf=shelf)
    found = (shelf.get(step, i, array) for i, array in enumerate(like))
    held = tuple(map(_owned, found) if blank.every else found)
    return replace(blank, held=held, step=step, shelf=shelf)


def _checked_state(blank: MemoryX, state: Any) -> list[Any]:
    """The leaves of an optimizer's state, which must be of this store's optimizer."""
    if said := unlike(state, blank.optimizer_state):
        raise ValueError(
            f"optimizer_state has {said}; it must be that of this optimizer and these parameters: "
            "pass the optimizer_state of a state of the same executor"
        )
    return jax.tree.leaves(state)


def _check_period(every: int | None, folder: Path | str | None) -> None:
    if every is not None and (isinstance(every, bool) or every < 1 or int(every) != every):
        raise ValueError(
            f"checkpoint_every is {every!r}; it must be a positive number of steps: "
            "pass checkpoint_every=100"
        )
    if every is not None and folder is None:
        raise ValueError(
            f"checkpoint_every is {every} but there is no folder to write to: "
            'pass folder="run/store" too'
        )


@dataclass
class Receiving:
    """A step in progress: gradients come in, pieces of the update run when theirs are complete.

    Attributes:
        old: the store before the step; it stays readable.
        expected: gradients still to come, for each parameter.
        beside: runs the pieces, each in a thread of its own; None: they run where they are asked.
        gradients: what came in and was not used up by an update.
    """

    old: MemoryX
    expected: dict[int, int]
    beside: Beside | None = None
    gradients: dict[int, Any] = field(default_factory=dict[int, Any])
    _new: dict[int, Any] = field(default_factory=dict[int, Any])
    _done: set[int] = field(default_factory=set[int])
    _running: list[Future[None]] = field(default_factory=list[Future[None]])

    def __post_init__(self) -> None:
        """Parameters that nothing reads have a gradient of zero."""
        for leaf in range(self.old.count):
            if not self.expected.get(leaf):
                self.gradients[leaf] = self._zeros(leaf)

    def give(self, weight: Weight, gradient: Any) -> None:
        """Take the gradient of a parameter or of a slice of one."""
        leaf = weight.leaf
        if weight.index or leaf in self.gradients:
            known = self.gradients.get(leaf)
            if known is None:
                self.gradients[leaf] = self._zeros(leaf)
            elif not (isinstance(known, np.ndarray) and known.flags.writeable):
                self.gradients[leaf] = np.array(known)
            self.gradients[leaf][weight.index] += np.asarray(gradient)
        else:
            self.gradients[leaf] = gradient
        self.expected[leaf] -= 1

    def advance(self) -> list[int]:
        """Run the pieces whose gradients are complete; return the parameters that they update."""
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
        self.settle()
        for piece in self._running:
            piece.result()
        old, step = self.old, self.old.step + 1
        held = tuple(self._new[i] for i in range(len(old.held)))
        if old.shelf is not None and step % (old.every or 1) == 0:
            if old.every:
                for i, array in enumerate(held):
                    old.shelf.put(step, i, np.asarray(array))
            old.shelf.commit(step)
        made = old.held if any(isinstance(x, jax.Array) for x in old.held[:1]) else ()
        return replace(old, held=held, step=step, spare=made, spared=ref(old.owner), owner=_Owner())

    def settle(self) -> None:
        """Wait for the pieces that run: they write over memory that the next step asks for."""
        wait(self._running)

    def _complete(self, leaf: int) -> bool:
        return not self.expected.get(leaf) and leaf in self.gradients

    def _run(self, i: int) -> None:
        assert self.old.update is not None
        piece, old = self.old.update.pieces[i], self.old
        places = (*piece.new_weights, *(old.count + leaf for leaf in piece.new_states))
        memory = None if old.filed else [self._memory(place) for place in places]
        update = partial(
            self._update,
            piece,
            [self.gradients.pop(leaf) for leaf in piece.gradients],
            memory,
            places,
        )
        if self.beside is None:
            update()
        else:
            self._running.append(self.beside(update))
        self._done.add(i)

    def _update(
        self, piece: Piece, gradients: Sequence[Any], memory: Any, places: Sequence[int]
    ) -> list[tuple[int, Any]]:
        """Run a piece; return the parameters that it makes, each with its place."""
        old = self.old
        weights, states = piece.run(
            gradients,
            [old.held[leaf] for leaf in piece.weights],
            [old.held[old.count + leaf] for leaf in piece.states],
            memory,
        )
        if self.beside is not None:  # one thread at a time hands programs over, and they queue
            jax.block_until_ready((weights, states))
        for place, array in zip(places, (*weights, *states), strict=True):
            self._keep(place, array)
        return list(zip(piece.new_weights, weights, strict=True))

    def _memory(self, place: int) -> Any:
        """What may be written over, unless somebody still has the store that held it."""
        old = self.old
        return old.spare[place] if old.spare and old.spared() is None else None

    def _keep(self, place: int, made: Any) -> None:
        if self.old.filed and self.old.shelf is not None:
            made = self.old.shelf.put(self.old.step + 1, place, np.asarray(made))
        self._new[place] = made

    def _zeros(self, leaf: int) -> Array:
        like = self.old.held[leaf]
        return np.zeros(like.shape, like.dtype)


def _owned(leaf: Any) -> Array:
    """A copy in the type that JAX computes in: the caller may change his own array."""
    dtype = jax.dtypes.canonicalize_dtype(np.asarray(leaf).dtype)
    array = np.array(leaf, dtype)
    array.flags.writeable = False
    return array


def _blank(leaf: Any) -> Array:
    """An array of this shape that takes no memory."""
    like = shape(leaf)
    return np.broadcast_to(np.zeros((), like.dtype), like.shape)
