"""Compiled programs persist between calls and runs."""

import hashlib
import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import jax

from wse._files import cache_folder
from wse._processor import instructions

LOOKED = ".looked"  # changed when the entries were last looked through
ZLIB = b"\x78"  # how what zlib compresses begins


def enable_cache() -> None:
    """Turn on JAX's persistent compilation cache, unless the user has set one.

    JAX keeps only what took a second to compile; ours take about half of that, so the bound is
    lowered to a tenth. It writes entries in place and never replaces one: what a kill or a full
    disk has cut short would be compiled again, with a warning, at every start. It is removed.

    Processors that can do other things have folders of their own: computers of a cluster share a
    home, and what was compiled for one may end the process on another.
    """
    config: Any = jax.config  # JAX says nothing of its type
    if config.values["jax_compilation_cache_dir"] is None:
        able = hashlib.sha256(instructions().encode()).hexdigest()[:8]
        folder = cache_folder("sciml", "xla", able)
        if not _is_writable(folder):  # as in a container: JAX would warn at every program
            return
        _remove_damaged(folder)
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _is_writable(folder: Path) -> bool:
    """Whether there is such a folder, or can be, in which this process may write."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _remove_damaged(folder: Path) -> None:
    """Remove entries that cannot be unpacked, of those written since this was last done."""
    looked, now = folder / LOOKED, time.time()
    try:
        since = looked.stat().st_mtime if looked.exists() else 0.0
        for entry in folder.glob("*-cache"):
            if entry.stat().st_mtime >= since and not _is_whole(entry.read_bytes()):
                entry.unlink(missing_ok=True)
        if folder.exists():
            looked.touch()
            os.utime(looked, (now, now))
    except OSError:  # not to be written, or an entry that another process has just removed
        return


def _is_whole(packed: bytes) -> bool:
    """Whether an entry can be unpacked, by the library with which JAX packed it."""
    names = ("zlib",) if packed.startswith(ZLIB) else ("compression.zstd", "zstandard")
    for name in names:
        try:
            import_module(name).decompress(packed)
        except Exception:  # it is not here, or it cannot; each has errors of its own
            continue
        return True
    return False
