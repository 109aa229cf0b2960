"""Files appear whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_aside(path: Path) -> Generator[Path]:
    """Yield a place beside `path`; it gets that name when the block ends without an error.

    The folder is made if there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
