"""Calls of a simulator, kept on disk as they end, so that what was interrupted goes on."""

import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml._numbers import short
from wse._files import as_path, write_aside
from wse._npz import DamagedFile, read_npz

log = logging.getLogger(__name__)

SAVED_S = 20.0  # between two times of writing, as of a training
ALIKE = 1e-5  # assumed: by how much other processors and versions differ, in parts of the largest
Rows = list[np.ndarray | xr.DataArray | str]  # what a simulator returned, or why it failed


def folder_of(folder: Any) -> Path | None:
    """Return the folder of kept calls, which workers too find, made if it is not there."""
    if folder is None:
        return None
    path = as_path("folder", folder, "pass folder='calls'").absolute()
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"folder is {str(folder)!r}, a file; name a folder, as 'calls'")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            f"folder {path} cannot be made ({error.strerror}); name another"
        ) from None
    if not os.access(path, os.W_OK):
        raise PermissionError(f"folder {path} cannot be written; name one that you may write")
    return path


def file_of(folder: Path | None, names: Sequence[str], rows: np.ndarray, at: Any) -> Path | None:
    """Return the file of the calls for some rows, which are told by their numbers and names.

    `at` is what else they depend on: the seed, the first of them, and the axis of what they give.
    """
    if folder is None:
        return None
    told = hashlib.blake2b(repr((tuple(names), at, rows.shape)).encode(), digest_size=16)
    told.update(np.ascontiguousarray(rows, np.float64).tobytes())
    return folder / f"{told.hexdigest()}.npz"


def keep(path: Path, made: Rows) -> bool:
    """Write what some calls gave; where there is no room say so, and that they go on without."""
    try:
        write(path, made)
    except OSError as error:
        log.warning("calls are no longer kept, and go on: %s", error)
        return False
    return True


def write(path: Path, made: Rows) -> None:
    """Write what some calls gave, aside and then renamed."""
    arrays: dict[str, np.ndarray] = {}
    for i, one in enumerate(made):
        if isinstance(one, str):
            arrays[f"{i}/failed"] = np.array(one)
            continue
        arrays[f"{i}"] = np.asarray(one)
        if isinstance(one, xr.DataArray):
            arrays[f"{i}/dims"] = np.array([str(dim) for dim in one.dims])
            for dim in one.dims:
                if dim in one.coords:
                    names = one[dim].values
                    names = np.array(names.tolist()) if names.dtype.hasobject else names
                    arrays[f"{i}/at/{dim}"] = names
    with write_aside(path) as aside, aside.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def read(path: Path | None) -> Rows:
    """Return what the first calls gave, as far as they are kept; of a damaged file nothing."""
    if path is None or not path.exists():
        return []
    try:
        arrays = read_npz(path)
    except DamagedFile as error:
        log.warning("%s: its calls are made again", error)
        return []
    made: Rows = []
    while True:
        name = f"{len(made)}"
        if f"{name}/failed" in arrays:
            made.append(str(arrays[f"{name}/failed"]))
        elif f"{name}/dims" in arrays and name in arrays:
            dims = [str(dim) for dim in arrays[f"{name}/dims"]]
            at = {dim: f"{name}/at/{dim}" for dim in dims}
            coords = {dim: arrays[key] for dim, key in at.items() if key in arrays}
            made.append(xr.DataArray(arrays[name], coords, dims))
        elif name in arrays:
            made.append(arrays[name])
        else:
            return made


def check_again(owner: str, folder: str, before: Any, now: Any) -> None:
    """Refuse a function that gives another result than is kept for the same sample and seed."""
    one, other = np.asarray(before), np.asarray(now)
    alike = not isinstance(now, str) and one.shape == other.shape
    largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    if not (alike and np.allclose(one, other, 0, ALIKE * largest, equal_nan=True)):
        raise ValueError(
            f"{owner} gives {short(now if isinstance(now, str) else other.ravel()[:3].tolist())} "
            f"where {folder} keeps {short(one.ravel()[:3].tolist())}: it is another function, or "
            "draws without the generator that is its second argument: name another folder"
        )
