"""Damage to a store of simulations: told in one line, wherever in Zarr or JSON it shows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import zarr

AGAIN = "call accumulate again with the same arguments, which writes it again"
OUT_OF_PLACE = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)


class Refusal(ValueError):
    """A store that cannot be used, in words that a user can act on."""


@contextmanager
def in_one_line(path: Path | str) -> Iterator[None]:
    """Turn whatever damaged metadata make Zarr, JSON or xarray raise into one line.

    What the machine refuses (a full disk, permissions, memory) stays as it is.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, Refusal) or of_machine(error):
            raise
        raise Refusal(
            f"{path} cannot be used as a store of simulations ({short(error)}); its files must be "
            "as accumulate wrote them: take a copy that is whole, or remove the folder and "
            "accumulate again, which gives the same numbers"
        ) from error


def of_machine(error: Exception) -> bool:
    """Tell whether an error says nothing of the bytes on disk."""
    return isinstance(error, OSError | MemoryError) and not isinstance(error, OUT_OF_PLACE)


def short(error: Exception) -> str:
    """Return an error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def file_of(values: "zarr.Array", index: int) -> str:
    """Return where a chunk lies below the store."""
    key = values.metadata.encode_chunk_key((index, *[0] * (values.ndim - 1)))
    return f"{values.basename}/{key}"


def has_file(path: Path, values: "zarr.Array", index: int) -> bool:
    """Tell whether the file of a chunk is there, and not empty; a folder of that name is none."""
    file = path / file_of(values, index)
    return file.is_file() and file.stat().st_size > 0


def unreadable(values: "zarr.Array", chunks: Sequence[int]) -> dict[int, Exception]:
    """Return which of some chunks cannot be decoded, and why; chunk by chunk if any cannot."""
    size = values.chunks[0]
    if not chunks or not problem(values, slice(min(chunks) * size, (max(chunks) + 1) * size)):
        return {}
    found = {i: problem(values, slice(i * size, (i + 1) * size)) for i in chunks}
    return {i: error for i, error in found.items() if error}


def problem(values: "zarr.Array", part: slice) -> Exception | None:
    """Return what stands against reading a part of an array."""
    try:
        values[part]
    except Exception as error:
        if of_machine(error):
            raise
        return error
    return None


def check_readable(path: Path, values: "zarr.Array", chunks: Sequence[int]) -> None:
    """Refuse chunks that cannot be decoded, naming the first."""
    for index, error in unreadable(values, chunks).items():
        raise Refusal(
            f"{path}: chunk {index} of {values.basename} cannot be read ({short(error)}); its file "
            f"must hold the bytes that were written: remove {path / file_of(values, index)} and "
            f"{AGAIN}"
        )


class Checked:
    """An array on disk, for Dask; where a chunk is damaged or has gone, a read raises."""

    def __init__(self, path: Path, values: "zarr.Array", *, complete: bool):
        """Take over what Dask asks for; in a complete array, every chunk has a file."""
        self.path, self.values, self.complete = path, values, complete
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, key: Any) -> np.ndarray:
        """Read a part, or refuse one that is damaged."""
        chunks = self.touched(key[0] if isinstance(key, tuple) else key)
        try:
            found = np.asarray(self.values[key])
        except Exception as error:
            if of_machine(error):
                raise
            check_readable(self.path, self.values, chunks)
            raise
        if self.complete:
            absent = [i for i in chunks if not has_file(self.path, self.values, i)]
            check_none_lacks(self.path, [(self.values, i) for i in absent])
        return found

    def touched(self, key: Any) -> list[int]:
        """Return the chunks that hold some samples, chosen by an index, a slice or a list."""
        size = self.values.chunks[0]
        if isinstance(key, slice):
            some = range(self.shape[0])[key]
            return list(range(min(some) // size, max(some) // size + 1)) if some else []
        some = np.atleast_1d(np.asarray(key))
        some = np.flatnonzero(some) if some.dtype == bool else some % self.shape[0]
        return np.unique(some // size).tolist()


def check_none_lacks(path: Path, absent: "Sequence[tuple[zarr.Array, int]]") -> None:
    """Refuse a store that lacks files of chunks that were written, naming the first."""
    for values, index in absent:
        raise Refusal(
            f"{path} lacks {len(absent)} files of chunks that were written, the first "
            f"{file_of(values, index)} (chunk {index} of {values.basename}), which would read as "
            f"NaN, or as failed: {AGAIN}"
        )
