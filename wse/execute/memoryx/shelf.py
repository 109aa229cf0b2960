"""A folder of arrays, versioned by step: the last complete step can always be read."""

import json
import os
import re
import secrets
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wse._agreement import NOTHING, REFUSED, agreed
from wse._files import ensure_folder, to_disk
from wse.execute.memoryx.hold import TEMPORARY, Hold, hold, remove_if_left
from wse.graph.outline import difference

Array = NDArray[Any]

PREFIX = "memoryx-"  # of temporary folders
MANIFEST = "manifest.json"
# A step that is taken twice has two tokens; stores of earlier versions have none.
OWN = re.compile(r"(\d+)-(?:weight|state)-\d+(?:-([0-9a-f]{16}))?\.bin")


@dataclass(frozen=True)
class Complete:
    """A step that is on the disk.

    Attributes:
        count: how many were completed before it; other than `step` it never goes back.
        step: of the training.
        token: in the names of its files; stores of earlier versions have none.
        sums: the checksum of each array; stores of earlier versions have none.
    """

    count: int
    step: int
    token: str = ""
    sums: tuple[int, ...] = ()


@dataclass(frozen=True)
class Shelf:
    """Where a store keeps its arrays. Each array of each step is a file of its bytes.

    The manifest names the last complete step. It is replaced, whole, after all files of a step
    are on the disk; only then the step before is removed. No file of a complete step is ever
    written to: who takes the same step again writes files of other names. So a crash at any moment
    leaves one complete step. Files of other names than the shelf's own are left alone. Of two
    processes that name one folder the second is refused. Processes that train together keep two
    steps each: one of them may be killed before it has completed what another has.

    Attributes:
        folder: where.
        weights: how many of the arrays are parameters; the rest is the optimizer's state.
        names: the parameters' paths, by which a store of another model is told.
        durable: wait for the disk; without, a crash of the whole machine may lose the step.
        kept: how many complete steps stay.
    """

    folder: Path
    weights: int
    names: tuple[str, ...]
    durable: bool = True
    kept: int = 1
    _content: dict[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    # The last one first; and the tokens and checksums of steps that are being written.
    _complete: list[Complete] = field(default_factory=list[Complete], repr=False, compare=False)
    _open: dict[int, str] = field(default_factory=dict[int, str], repr=False, compare=False)
    _sums: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    _holds: list[Hold] = field(default_factory=list[Hold], repr=False, compare=False)

    @classmethod
    def temporary(cls, weights: int, names: tuple[str, ...]) -> "Shelf":
        """A shelf in a new folder below the system's temporary one, removed when it is dropped.

        What processes left there that were killed is removed as well.
        """
        for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            remove_if_left(left)
        shelf = cls(Path(tempfile.mkdtemp(prefix=PREFIX)), weights, names, durable=False)
        (shelf.folder / TEMPORARY).touch()
        shelf._holds.append(hold(shelf.folder))
        weakref.finalize(shelf, shutil.rmtree, shelf.folder, ignore_errors=True)
        return shelf

    def __post_init__(self) -> None:
        """Make the folder."""
        ensure_folder(self.folder)

    def begin(self, arrays: Sequence[Array], state: Sequence[str] = ()) -> int | None:
        """Return the last complete step, None of a new store; remove what a crash left.

        Of several processes it is the last one that all have.

        Args:
            arrays: parameters and optimizer's state; of the shapes that the store must have.
            state: the outline of the optimizer's state, by which another optimizer is told.

        Raises:
            ValueError: the folder holds another model or optimizer, a file that is not as it was
                written; or arrays without a manifest; or the processes have no step in common.
            BlockingIOError: another process works in the folder.
        """
        try:
            self._find(arrays, state)
        except BaseException:
            agreed(REFUSED)
            raise
        last = self._last
        common = agreed(last)
        self._complete[:] = [x for x in self._complete if x.count <= common]
        if common != self._last:
            raise ValueError(
                f"{self.folder} no longer has write {common}, which another process is at; restore "
                "that one's folder, or remove those of all processes"
            )
        if common != last or not self._complete:
            self._announce()
        self._clear()
        for path in self.folder.glob(f".{MANIFEST}.*"):
            path.unlink()
        return self._complete[0].step if self._complete else None

    @property
    def _last(self) -> int:
        """The number of the last complete step."""
        return self._complete[0].count if self._complete else NOTHING

    def _find(self, arrays: Sequence[Array], state: Sequence[str]) -> None:
        """Take the folder, and look at its complete steps: their files are as they were written."""
        self._holds.append(hold(self.folder))
        described = [[str(array.dtype), list(array.shape)] for array in arrays]
        self._content.update(names=list(self.names), arrays=described, state=list(state))
        self._complete[:], found = self._manifest()
        if found and (said := self._unlike(found)):
            raise ValueError(
                f"{self.folder} holds a store of another model or optimizer: {said}; names, "
                "shapes and types must be the same: name an empty folder"
            )
        for one in self._complete:
            for i, array in enumerate(arrays):
                self._check(self._path(one.step, i), array, one.sums[i] if one.sums else None)

    def put(self, step: int, place: int, array: Array) -> Array:
        """Write an array of a step that is not complete yet; return it as it lies in the file.

        Raises:
            OSError: the disk is full; the last complete step is intact.
        """
        self._open.setdefault(step, secrets.token_hex(8))
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        path = self._path(step, place)
        self._write(path, data)
        if self.durable:
            self._sums[path.name] = zlib.crc32(data)
        return self.get(step, place, array)

    def get(self, step: int, place: int, like: Array) -> Array:
        """An array as it lies in its file, read as it is used and not to be written to."""
        if not like.size:
            return like
        return np.memmap(self._path(step, place), like.dtype, "r", shape=like.shape)

    def commit(self, step: int) -> None:
        """Call a step complete, and remove the one before those that are kept."""
        names = [self._path(step, i).name for i in range(len(self._content["arrays"]))]
        sums = tuple(self._sums.pop(name) for name in names) if self.durable else ()
        self._complete.insert(0, Complete(self._last + 1, step, self._open.pop(step), sums))
        del self._complete[self.kept :]
        self._announce()
        self._clear()

    def _announce(self) -> None:
        """Replace the manifest, whole. Arrays without one are a store that has lost it."""
        last, *before = map(asdict, self._complete) if self._complete else [{"step": None}]
        content = {**last, "before": before, **self._content}
        aside = self.folder / f".{MANIFEST}.{secrets.token_hex(8)}"
        self._write(aside, json.dumps(content).encode())
        if self.durable:
            to_disk(self.folder)
        aside.replace(self.folder / MANIFEST)
        if self.durable:
            to_disk(self.folder)

    def _clear(self) -> None:
        """Remove the arrays of all other steps."""
        complete = [(x.step, x.token) for x in self._complete]
        for path, step, token in self._own():
            if (step, token) not in complete:
                self._sums.pop(path.name, None)
                path.unlink()

    def _own(self) -> list[tuple[Path, int, str]]:
        """The arrays in the folder, each with its step and token."""
        found = [(path, OWN.fullmatch(path.name)) for path in sorted(self.folder.iterdir())]
        return [(path, int(own[1]), own[2] or "") for path, own in found if own]

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

    def _manifest(self) -> tuple[list[Complete], dict[str, Any]]:
        """The complete steps, the last one first, and what they hold; nothing of a new store."""
        path = self.folder / MANIFEST
        if not path.exists():
            if own := self._own():
                raise ValueError(
                    f"{self.folder} holds arrays of a store, such as {own[0][0].name}, but no "
                    f"{MANIFEST}, which says what they are; they are left as they are: restore "
                    "that file or name an empty folder"
                )
            return [], {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            names = ("count", "step", "token", "sums")
            last = {name: found.pop(name) for name in names if name in found}
            steps = [] if last["step"] is None else [last, *found.pop("before", [])]
            found.pop("before", None)
            content = {"names": found["names"], "arrays": found["arrays"], **found}
            return [_complete(one, len(content["arrays"])) for one in steps], content
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); it was damaged after it was written: restore "
                "the file or name an empty folder"
            ) from error

    def _unlike(self, found: dict[str, Any]) -> str:
        """By what the store that was found is not this one; nothing if it is."""
        here, wanted = dict(found), self._content
        # Stores of earlier versions do not say which optimizer's state they hold.
        here.setdefault("state", wanted["state"])
        if here == wanted:
            return ""
        return next(
            said
            for said in (
                difference(_labelled(here), _labelled(wanted)),
                difference(here["state"], wanted["state"]),
                difference([*map(str, here["arrays"])], [*map(str, wanted["arrays"])]),
                "its manifest has other entries",
            )
            if said
        )

    def _path(self, step: int, place: int) -> Path:
        kind = "weight" if place < self.weights else "state"
        number = place if place < self.weights else place - self.weights
        done = {one.step: one.token for one in reversed(self._complete)}
        token = self._open.get(step, done.get(step, ""))
        return self.folder / (f"{step}-{kind}-{number}" + (f"-{token}" if token else "") + ".bin")

    def _check(self, path: Path, array: Array, expected: int | None) -> None:
        """Refuse a file that has not the length, or the checksum, with which it was written."""
        found = path.stat().st_size if path.exists() else None
        if found == array.nbytes:
            if (
                expected is None
                or not found
                or expected == zlib.crc32(np.memmap(path, mode="r").data)
            ):
                return
            raise ValueError(
                f"{path} has other bytes than were written (its checksum is not {expected:08x}): "
                "restore the file or name an empty folder"
            )
        said = (
            f"{path} is missing; the file was removed"
            if found is None
            else f"{path} has {found} of {array.nbytes} bytes; the store was cut short"
            if found < array.nbytes
            else f"{path} has {found} bytes where {array.nbytes} are right; the file was changed"
        )
        raise ValueError(f"{said} after it was written: restore the file or name an empty folder")


def _complete(said: dict[str, Any], arrays: int) -> Complete:
    """A complete step as a manifest says it, with as many checksums as arrays, or none."""
    sums = tuple(int(x) for x in said.get("sums", ()))
    if sums and len(sums) != arrays:
        raise ValueError(f"it has {len(sums)} checksums for {arrays} arrays")
    return Complete(int(said.get("count", 0)), int(said["step"]), str(said.get("token", "")), sums)


def _labelled(content: dict[str, Any]) -> list[str]:
    """Each parameter with its type and shape; behind them lies the optimizer's state."""
    pairs = zip(content["names"], content["arrays"], strict=False)
    return [f"{name}: {dtype}{shape}" for name, (dtype, shape) in pairs]
