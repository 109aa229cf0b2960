"""The last complete step of a run, in files, whichever executor takes the steps."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from wse.execute.memoryx.shelf import Shelf
from wse.execute.memoryx.store import MemoryX
from wse.execute.resident.executor import PipelinedExecutor
from wse.graph.outline import outline
from wse.graph.trace import paths


def begin(executor: Any, params: Any, folder: Path) -> tuple[Any, Shelf | None]:
    """The state to go on from, and where the next ones are kept.

    Weights that are streamed lie in the executor's own store. Of a net that is resident as a whole
    the last complete step is read from a store of the same form, bit for bit.

    Raises:
        ValueError: the store of another model or optimizer, or a file that was changed.
    """
    state = executor.init(params)
    if not isinstance(executor, PipelinedExecutor):
        return state, state.shelf
    held, structure = jax.tree.flatten((state.params, state.optimizer_state))
    like = [np.asarray(leaf) for leaf in held]
    names = tuple(paths(state.params))
    shelf = Shelf(folder, len(names), names)
    step = shelf.begin(like, outline(state.optimizer_state))
    if step is None:
        return state, shelf
    found = [np.array(shelf.get(step, i, array)) for i, array in enumerate(like)]
    return replace(executor.init(*jax.tree.unflatten(structure, found)), step=step), shelf


def keep(state: Any, shelf: Shelf | None, every: int = 0) -> None:
    """Write a step to its files, unless it lies there; with `every`, if it is due."""
    streamed = isinstance(state, MemoryX)
    written = streamed and (not state.every or state.step % state.every == 0)
    if shelf is None or not state.step or written or (every and (streamed or state.step % every)):
        return
    arrays = (
        (*state.weights, *state.states)
        if streamed
        else jax.tree.leaves((state.params, state.optimizer_state))
    )
    for i, array in enumerate(arrays):
        shelf.put(state.step, i, np.asarray(array))
    shelf.commit(state.step)
