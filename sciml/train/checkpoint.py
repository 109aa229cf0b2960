"""Where an interrupted training goes on: one plain npz file, written aside and renamed."""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from wse._files import write_aside
from wse._npz import DamagedFile, read_npz

log = logging.getLogger(__name__)
Tree = TypeVar("Tree")
SCHEMA = 2  # of what tells one run from another
SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Checkpoint:
    """A file from which an interrupted run goes on.

    `of` tells the run apart from others beyond what `train` itself knows (recipe, epochs, seed,
    data, validation): the net's configuration, its start weights, the noise. A file that says
    otherwise is not used.

    >>> from sciml.train import Checkpoint
    >>> Checkpoint("run.npz", {"net": "dense 32"}).of
    {'net': 'dense 32'}
    """

    path: Path | str
    of: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.path, str | Path) or Path(self.path).is_dir():
            raise ValueError(
                f"checkpoint is {str(self.path)!r}; it must be a file, which a training makes: "
                'pass checkpoint="net.checkpoint"'
            )


class Store:
    """A checkpoint of one run, known by its `identity` and the shapes of its arrays.

    A run that has ended leaves its last state there, so that nothing is lost until the result is
    on disk; whoever has written that calls `remove`. With `path` None nothing is ever due, written
    or read.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        identity: dict[str, Any] | None = None,
        refuses: str | None = None,
    ):
        """Name the file and the run; touch nothing.

        `refuses` is what to do about a file of another run, which `read` then refuses.
        """
        self.path = None if path is None else Path(path)
        self.refuses = refuses
        self.identity = json.dumps({"schema": SCHEMA, **(identity or {})}, sort_keys=True)
        self.written_s = time.monotonic()

    def due(self, period_s: float) -> bool:
        """Tell whether `period_s` has passed since the last write."""
        return self.path is not None and time.monotonic() - self.written_s > period_s

    def write(self, state: Any) -> None:
        """Write the arrays and numbers of a dataclass of pytrees.

        Where that fails, as on a full disk, a warning says so: training goes on, and the state
        that was written before stays.
        """
        if self.path is None:
            return
        self.put(
            {
                f"{name}/{i}": np.asarray(leaf)
                for name, tree in vars(state).items()
                for i, leaf in enumerate(jax.tree.leaves(tree))
            }
        )

    def put(self, arrays: dict[str, np.ndarray]) -> None:
        """Write arrays by their names."""
        if self.path is None:
            return
        try:
            with write_aside(self.path) as aside, aside.open("wb") as file:
                np.savez(file, allow_pickle=False, identity=np.array(self.identity), **arrays)
        except OSError as error:
            log.warning(
                "checkpoint %s cannot be written (%s); work goes on, and an interruption would "
                "lose what it does meanwhile: free space, or name a folder that you may write",
                self.path,
                error,
            )
        self.written_s = time.monotonic()

    def read(self, start: Tree) -> Tree:
        """Return the stored state in the shape of `start`, or `start` itself.

        A file of another run is not used, and a warning says why, or it is refused; one that cannot
        be read is put aside.
        """
        return self.taken(lambda stored: restored(start, stored), start)

    def arrays(self) -> dict[str, np.ndarray] | None:
        """Return the arrays that `put` wrote, or None, as `read` does."""
        return self.taken(lambda stored: stored, None)

    def taken(self, make: Callable[[dict[str, Any]], Any], start: Any) -> Any:
        """Return what is made of the stored arrays, or `start`."""
        if self.path is None or not self.path.exists():
            return start
        try:
            stored = read_npz(self.path)
            check_same_run(str(stored["identity"]), self.identity)
            return make(stored)
        except DamagedFile as error:
            aside = self.path.with_name(self.path.name + ".damaged")
            with suppress(FileNotFoundError):  # another process has just done it
                self.path.replace(aside)
            log.warning("starting anew: %s; it is kept as %s", error, aside)
        except FileNotFoundError:  # another process has just ended the same run
            return start
        except (ValueError, KeyError) as error:
            if self.refuses:
                raise ValueError(
                    f"{self.path} is not gone on with: {error}; {self.refuses}, or remove that file"
                ) from None
            log.warning("starting anew: checkpoint %s is not used: %s", self.path, error)
        return start

    def remove(self) -> None:
        """Remove the file of this run, whose result is on disk; leave one of another run."""
        if self.path is None or not self.path.exists():
            return
        try:
            if str(read_npz(self.path, ("identity",))["identity"]) != self.identity:
                return
        except (DamagedFile, KeyError, FileNotFoundError):
            return
        self.path.unlink(missing_ok=True)


def digest(tree: Any) -> str:
    """Return what tells the arrays of a pytree from others: their types, shapes and numbers."""
    made = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        array = np.ascontiguousarray(leaf)
        made.update(f"{array.dtype}{array.shape}".encode())
        made.update(array.reshape(-1).view(np.uint8).data)
    return made.hexdigest()


def check_same_run(found: str, wanted: str) -> None:
    """Refuse the state of another run, and say in what that one differs."""
    stored, given = json.loads(found), json.loads(wanted)
    if stored.get("schema") != SCHEMA:
        raise ValueError(
            f"another version wrote it, of schema {stored.get('schema')!r}, which did not note all "
            "that a run depends on; "
            "finish that run with that version"
        )
    if stored == given:
        return
    different = [name for name in stored | given if stored.get(name) != given.get(name)]
    said = (
        f"{name} was {short(stored.get(name))}, is {short(given.get(name))}" for name in different
    )
    raise ValueError(f"it belongs to another run: {'; '.join(said)}")


def short(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def restored(start: Tree, stored: Any) -> Tree:
    """Return `start` with the arrays of `stored`; weights must keep their shapes."""
    trees = {}
    for name, tree in vars(start).items():
        leaves, structure = jax.tree.flatten(tree)
        found = [stored[f"{name}/{i}"] for i in range(len(leaves))]
        if name in ("carry", "best"):
            pairs = [(np.shape(a), np.shape(b)) for a, b in zip(leaves, found, strict=True)]
            wrong = [pair for pair in pairs if pair[0] != pair[1]]
            if wrong:
                raise ValueError(f"its weights have other shapes: (expected, found) {wrong[0]}")
            found = [jax.numpy.asarray(leaf) for leaf in found]
        if isinstance(tree, int | float):
            found = [type(tree)(leaf) for leaf in found]
        trees[name] = jax.tree.unflatten(structure, found)
    return type(start)(**trees)
