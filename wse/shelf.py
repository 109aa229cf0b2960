"""A folder of arrays, versioned by step: the last complete step can always be read."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import json
import os
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
    """

    folder: Path
    weights: int
    names: tuple[str, ...]

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
            found = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            step = int(found.pop("step"))
            if found != content:
                raise ValueError(
                    f"{self.folder} holds a store of another model or optimizer; names, shapes and "
                    "types must be the same: name an empty folder"
                )
            for i, array in enumerate(arrays):
                self._check(self._path(step, i), array)
        (self.folder / "content.json").write_text(json.dumps(content), encoding="utf-8")
        for path in self.folder.glob("*.bin"):
            if not path.name.startswith(f"{step}-"):
                path.unlink()
        return step

    def put(self, step: int, place: int, array: Array) -> Array:
        """Write an array of a step that is not complete yet; return it as it lies in the file.

        Raises:
            OSError: the disk is full; the last complete step is intact.
        """
        path = self._path(step, place)
        try:
            with path.open("wb") as file:
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            path.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"{path} cannot be written ({error.strerror}); the last complete step is intact: "
                "make room, open the store again and go on",
            ) from error
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
        with aside.open("w", encoding="utf-8") as file:
            json.dump({"step": step, **content}, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.folder / MANIFEST)
        for path in self.folder.glob("*.bin"):
            if not path.name.startswith(f"{step}-"):
                path.unlink()

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
