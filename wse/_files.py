"""Files appear whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_aside(path: Path | str) -> Generator[Path]:
    """Yield a temporary path beside `path`; rename it onto `path` when the block succeeds.

    A crash inside the block leaves an older `path` as it was, and no half-written file under
    its name. The temporary name keeps the suffix, since writers choose formats by it.

    Raises:
        NotADirectoryError: a parent of `path` is a file.
        PermissionError: the folder cannot be written.
    """
    path = Path(path)
    ensure_folder(path.parent)
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


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
