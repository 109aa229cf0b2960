"""Where an interrupted training goes on: one plain npz file, written aside and renamed."""

import json
import logging
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from wse._files import write_aside

log = logging.getLogger(__name__)
Tree = TypeVar("Tree")


@dataclass(frozen=True)
class Checkpoint:
    """A file from which an interrupted run goes on.

    `of` tells the run apart from others beyond what `train` itself knows (recipe, epochs, seed,
    data): the net's configuration, the noise. A file that says otherwise is not used.
    """

    path: Path | str
    of: dict[str, Any] = field(default_factory=dict)


class Store:
    """A checkpoint of one run, known by its `identity` and the shapes of its arrays.

    With `path` None nothing is ever due, written or read.
    """

    def __init__(self, path: Path | str | None, identity: dict[str, Any]):
        """Name the file and the run; touch nothing."""
        self.path = None if path is None else Path(path)
        self.identity = json.dumps(identity, sort_keys=True)
        self.written_s = time.monotonic()

    def due(self, period_s: float) -> bool:
        """Tell whether `period_s` has passed since the last write."""
        return self.path is not None and time.monotonic() - self.written_s > period_s

    def write(self, state: Any) -> None:
        """Write the arrays and numbers of a dataclass of pytrees."""
        assert self.path is not None
        arrays = {
            f"{name}/{i}": np.asarray(leaf)
            for name, tree in fields(state).items()
            for i, leaf in enumerate(jax.tree.leaves(tree))
        }
        with write_aside(self.path) as aside, aside.open("wb") as file:
            np.savez(file, allow_pickle=False, identity=np.array(self.identity), **arrays)
        self.written_s = time.monotonic()

    def read(self, start: Tree) -> Tree:
        """Return the stored state in the shape of `start`, or `start` itself.

        A file of another run, or one that cannot be read, is not used, and a warning says why.
        """
        if self.path is None or not self.path.exists():
            return start
        try:
            if not zipfile.is_zipfile(self.path):
                raise zipfile.BadZipFile("it is damaged or of another kind")
            with np.load(self.path, allow_pickle=False) as stored:
                if str(stored["identity"]) != self.identity:
                    raise ValueError(f"it belongs to {stored['identity']}, not {self.identity}")
                return restored(start, stored)
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            log.warning("starting anew: checkpoint %s is not used: %s", self.path, error)
            return start

    def remove(self) -> None:
        """Remove the file of a finished run."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def fields(state: Any) -> dict[str, Any]:
    """Return the fields of a dataclass without copying their arrays."""
    return {name: getattr(state, name) for name in state.__dataclass_fields__}


def restored(start: Tree, stored: Any) -> Tree:
    """Return `start` with the arrays of `stored`; weights must keep their shapes."""
    trees = {}
    for name, tree in fields(start).items():
        leaves, structure = jax.tree.flatten(tree)
        found = [stored[f"{name}/{i}"] for i in range(len(leaves))]
        if name in ("carry", "best"):
            pairs = [(np.shape(a), np.shape(b)) for a, b in zip(leaves, found, strict=True)]
            wrong = [pair for pair in pairs if pair[0] != pair[1]]
            if wrong:
                raise ValueError(f"its weights have other shapes: (expected, found) {wrong[0]}")
            found = [jax.numpy.asarray(leaf) for leaf in found]
        if isinstance(tree, float):
            found = [float(leaf) for leaf in found]
        trees[name] = jax.tree.unflatten(structure, found)
    return type(start)(**trees)
