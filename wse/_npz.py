"""Reading .npz files from anywhere: whole and within memory, or refused in a line."""

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wse._processor import free_bytes

NPY = ".npy"


class DamagedFile(ValueError):
    """A file that cannot be read: cut, changed, foreign, or larger than memory."""


def read_npz(path: Path | str, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the arrays of an .npz file, by name.

    What each array says of its own size is compared with what the file holds before any memory is
    taken, and the zip's checksums tell changed bytes.

    Args:
        path: the file.
        names: read only these, where they are there; None: all.

    Raises:
        FileNotFoundError: there is no such file.
        DamagedFile: it cannot be read, or not as plain arrays.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [x for x in archive.infolist() if x.filename.endswith(NPY)]
            wanted = [x for x in members if names is None or x.filename[: -len(NPY)] in names]
            _check_memory(sum(x.file_size for x in wanted))
            return {x.filename[: -len(NPY)]: _array(archive, x) for x in wanted}
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # zip and npy readers raise whatever damaged bytes lead them to
        said = " ".join(str(error).split())[:200] or "its bytes make no sense"
        raise DamagedFile(
            f"{path} cannot be read as an .npz file of plain arrays "
            f"({type(error).__name__}: {said}); write it again, or take a copy that is whole"
        ) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        _check_header(file, member)
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # to the end, where the checksum is compared
        return array


def _check_header(file: Any, member: zipfile.ZipInfo) -> None:
    """Compare what an array says of its size with how long it is."""
    version = np.lib.format.read_magic(file)
    header: Any = np.lib.format.read_array_header_1_0
    shape, _, dtype = (header if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)
    if dtype.hasobject:
        raise ValueError(f"{member.filename} holds objects of Python, which would be executed")
    length = file.tell() + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or length != member.file_size:
        raise ValueError(f"{member.filename} says it is {dtype}{list(shape)}, which it is not")


def _check_memory(needed: int) -> None:
    if needed > (free := free_bytes()):
        raise ValueError(
            f"it holds {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are free"
        )
