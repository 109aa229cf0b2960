"""The last complete step of a folder in which another process may be training."""

import os
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from wse._files import remove_left
from wse.execute.memoryx.shelf import MANIFEST

ATTEMPTS = 100  # assumed: to name the files again takes less time than a step, which writes them


@contextmanager
def snapshot(folder: Path) -> Generator[Path]:
    """Yield a folder beside this one in which its last complete step stays as it is now.

    No file of a complete step is ever written to, so the snapshot's are the same files by a second
    name, or copies where a file system has no such names. The snapshot goes when the block ends.

    Raises:
        BlockingIOError: steps are completed faster than their files can be named.
    """
    if not folder.is_dir():
        yield folder
        return
    remove_left(folder.parent.iterdir(), rf"\.{re.escape(folder.name)}\.[0-9a-f]{{16}}")
    place = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    try:
        if not any(_is_taken(folder, place) for _ in range(ATTEMPTS)):
            raise BlockingIOError(
                f"{folder} had a new step each of {ATTEMPTS} times that it was looked at; another "
                "process trains there: try again when that one has ended"
            )
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _is_taken(folder: Path, place: Path) -> bool:
    """Name all files again; False where a step was completed, and one removed, meanwhile."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    before = _manifest(folder)
    for path in folder.glob("*.bin"):
        try:
            _name_again(path, place / path.name)
        except FileNotFoundError:  # of a step that is no longer the last one
            continue
    if before is not None:
        (place / MANIFEST).write_bytes(before)
    return _manifest(folder) == before


def _manifest(folder: Path) -> bytes | None:
    path = folder / MANIFEST
    return path.read_bytes() if path.exists() else None


def _name_again(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, name)
