"""A folder of arrays, versioned by step: the last complete step can always be read."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Shelf:
    """Where a store keeps its arrays. Each array of each step is a file of its bytes.

    The manifest names the last complete step. It is replaced, whole, after all files of a step
    are on the disk; only then the step before is removed. So a crash at any moment leaves one
    complete step.

    Attributes:
        folder: where.
        weights: how many of the arrays are parameters; the rest is the optimizer's state.
        names: the parameters' paths, by which a store of another model is told.
        durable: wait for the disk; without, a crash of the whole machine may lose the step.
    """

    folder: Path
    weights: int
    names: tuple[str, ...]
    durable: bool = True

    @classmethod
    def temporary(cls, weights: int, names: tuple[str, ...]) -> "Shelf":
        """A shelf in a new folder below the system's temporary one, removed when it is dropped."""
        shelf = cls(Path(tempfile.mkdtemp(prefix="memoryx-")), weights, names, durable=False)
        weakref.finalize(shelf, shutil.rmtree, shelf.folder, ignore_errors=True)
        return shelf

    def __post_init__(self) -> None:
        """Make the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(
                f"{self.folder} is a file; the store needs a folder: name another"
            ) from error

    def begin(self, arrays: Sequence[Array]) -> int | None:
        """Return the last complete step, None of an empty folder; remove what a crash left.

        Raises:
            ValueError: the folder holds another model, or a file that is cut short.
        """
        step = None
        content = {"names": list(self.names), "arrays": [_describe(a) for a in arrays]}
        if (self.folder / MANIFEST).exists():
            step, found = self._manifest()
            if found != content:
                raise ValueError(
                    f"{self.folder} holds a store of another model or optimizer; names, shapes and "
                    "types must be the same: name an empty folder"
                )
            for i, array in enumerate(arrays):
                self._check(self._path(step, i), array)
        self._write(self.folder / "content.json", json.dumps(content).encode())
        self._clear(step)
        for path in self.folder.glob(f".{MANIFEST}.*"):
            path.unlink()
        return step

    def put(self, step: int, place: int, array: Array) -> Array:
        """Write an array of a step that is not complete yet; return it as it lies in the file.

        Raises:
            OSError: the disk is full; the last complete step is intact.
        """
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        self._write(self._path(step, place), data)
        return self.get(step, place, array)

    def get(self, step: int, place: int, like: Array) -> Array:
        """An array as it lies in its file, read as it is used and not to be written to."""
        if not like.size:
            return like
        return np.memmap(self._path(step, place), like.dtype, "r", shape=like.shape)

    def commit(self, step: int) -> None:
        """Call a step complete, and remove the one before."""
        content = json.loads((self.folder / "content.json").read_text(encoding="utf-8"))
        aside = self.folder / f".{MANIFEST}.{os.getpid()}"
        self._write(aside, json.dumps({"step": step, **content}).encode())
        self._sync_names()
        aside.replace(self.folder / MANIFEST)
        self._sync_names()
        self._clear(step)

    def _clear(self, step: int | None) -> None:
        for path in self.folder.glob("*.bin"):
            if not path.name.startswith(f"{step}-"):
                path.unlink()

    def _sync_names(self) -> None:
        """See the names of the files on the disk, as well as what is in them."""
        if self.durable and os.name == "posix":
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _write(self, path: Path, data: Any) -> None:
        """Write a file, and see it on the disk; a part of one is removed."""
        try:
            with path.open("wb") as file:
                file.write(data)
                file.flush()
                if self.durable:
                    os.fsync(file.fileno())
        except OSError as error:
            path.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"{path} cannot be written ({error.strerror}); the last complete step is intact: "
                "make room, open the store again and go on",
            ) from error

    def _manifest(self) -> tuple[int, dict[str, Any]]:
        """The last complete step, and what it holds."""
        path = self.folder / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return int(found.pop("step")), found
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); it was damaged after it was written: restore "
                "the file or name an empty folder"
            ) from error

    def _path(self, step: int, place: int) -> Path:
        kind = "weight" if place < self.weights else "state"
        number = place if place < self.weights else place - self.weights
        return self.folder / f"{step}-{kind}-{number}.bin"

    def _check(self, path: Path, array: Array) -> None:
        found = path.stat().st_size if path.exists() else 0
        if found != array.nbytes:
            raise ValueError(
                f"{path} has {found} of {array.nbytes} bytes; the store was cut short after it was "
                "written: restore the file or name an empty folder"
            )


def _describe(array: Array) -> list[Any]:
    return [str(array.dtype), list(array.shape)]
