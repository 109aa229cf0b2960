"""Files appear whole or not at all."""

import errno
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: nobody waits
    fcntl = None

FULL = (errno.ENOSPC, errno.EDQUOT)
LEFT_S = 600.0  # assumed: what has not grown for so long was left by a process that was killed


@contextmanager
def write_aside(path: Path | str) -> Generator[Path]:
    """Yield a temporary path beside `path`; rename it onto `path` when the block succeeds.

    The block writes a file or a folder there. A crash inside the block leaves an older `path` as it
    was, and no half-written one under its name; after the block, a power cut does not undo it. The
    temporary name is of this call alone, so containers that share a volume, and threads, do not
    meet; it keeps the suffix, since writers choose formats by it. What killed processes left
    beside `path` is removed.

    Raises:
        FileExistsError: a folder was written, and `path` is there already.
        IsADirectoryError: a file was written, and `path` is a folder.
        NotADirectoryError: a parent of `path` is a file.
        PermissionError: the folder cannot be written.
        OSError: the disk is full.
    """
    path = as_path("path", path, 'pass a name, as "out/run.fit"')
    ensure_folder(path.parent)
    sweep(path)
    aside = path.with_name(f".{path.stem}.{secrets.token_hex(8)}{path.suffix}")
    try:
        yield aside
        if os.name == "posix" and aside.is_dir():
            os.sync()
        else:
            to_disk(aside)
        _put(aside, path)
        to_disk(path.parent)
    except OSError as error:
        if error.errno not in FULL or error.filename == str(path):  # said by a block within
            raise
        raise OSError(
            error.errno,
            f"{error.strerror}; what was there before is intact: make room, or name another place",
            str(path),
        ) from error
    finally:
        _remove(aside)


def _put(aside: Path, path: Path) -> None:
    try:
        aside.replace(path)
    except OSError as error:
        if aside.is_file() and path.is_dir():
            message = f"{path} is a folder; name a file, in it or elsewhere"
            raise IsADirectoryError(message) from error
        if not (aside.is_dir() and path.exists()):
            raise
        message = f"{path} is there already; remove it, or name another"
        raise FileExistsError(message) from error


def to_disk(path: Path) -> None:
    """See a file, or the names in a folder, on the disk."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, said: object) -> Path:
    """Write a small file whole or not at all."""
    with write_aside(path) as aside:
        aside.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    return path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove what killed writers of `path` left beside it."""
    name = rf"\.{re.escape(path.stem)}\.[0-9a-f]{{16}}{re.escape(path.suffix)}"
    remove_left(path.parent.iterdir(), name)


def remove_left(paths: Iterable[Path], name: str) -> None:
    """Remove those whose names match, and that nobody has written to for ten minutes."""
    for path in paths:
        if re.fullmatch(name, path.name) and time.time() - _changed_s(path) > LEFT_S:
            _remove(path)


def _changed_s(path: Path) -> float:
    """Return when a file, or anything in a folder, was last written."""
    try:
        return max(x.stat().st_mtime for x in (path, *path.rglob("*")))
    except FileNotFoundError:  # its writer has just finished
        return time.time()


@contextmanager
def alone_in(folder: Path) -> Generator[None]:
    """Wait until nobody else, in any process or thread, is in such a block of this folder.

    The lock is the system's, and ends with its process; where a file system has none, nobody waits.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def as_path(name: str, path: Any, remedy: str) -> Path:
    """A path, of text that is not empty or as it is.

    >>> as_path("folder", None, "pass folder='run/store'")
    Traceback (most recent call last):
    ...
    TypeError: folder is None; it must be a path, as text or a pathlib.Path: pass folder='run/store'
    """
    if not (isinstance(path, str | os.PathLike) and os.fspath(path)):
        said = " ".join(f"{path!r:.80}".splitlines())
        raise TypeError(f"{name} is {said}; it must be a path, as text or a pathlib.Path: {remedy}")
    return Path(os.fspath(path))


def ensure_folder(folder: Path | str) -> Path:
    """Create `folder` and prove that it can be written, before any work starts.

    Raises:
        NotADirectoryError: `folder` or a parent of it is a file.
        PermissionError: `folder` cannot be made or written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        message = f"{folder} cannot be a folder: {error}; name a folder, not a file"
        raise NotADirectoryError(message) from error
    except OSError as error:
        message = f"{folder} cannot be made: {error}; name a folder that you may write"
        raise PermissionError(message) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written; name a folder that you may write")
    return folder


def cache_folder(*names: str) -> Path:
    """Return a folder below the user's caches: SCIML_CACHE, else XDG_CACHE_HOME, else ~/.cache."""
    root = os.environ.get("SCIML_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root, *names).expanduser()
