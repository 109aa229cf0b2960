"""One process at a time works in a folder."""

import os
import shutil
import stat
import time
from pathlib import Path
from weakref import WeakValueDictionary, finalize

from wse._files import LEFT_S

try:
    import fcntl
except ImportError:  # Windows: nothing is held, and two writers are not told
    fcntl = None

NAME = ".lock"
TEMPORARY = ".temporary"  # in folders that may be removed when nobody holds them


class Hold:
    """A folder that is this process's own for as long as somebody in it has this object.

    The lock is the system's: when a process ends, however it does, its holds end too.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder, unless another process has it."""
        # Not inherited by programs that are started; opened so that it is made but not emptied.
        file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        if not _taken(file):
            owner = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            raise BlockingIOError(
                f"{folder} is in use by another process, {owner or 'of unknown number'}, whose "
                "steps would be removed: stop that one, or name another folder"
            )
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        finalize(self, os.close, file)


_held: WeakValueDictionary[Path, Hold] = WeakValueDictionary()


def hold(folder: Path) -> Hold:
    """Return this process's hold on a folder, taken now if nobody in it has it.

    Raises:
        BlockingIOError: another process has it.
    """
    key = folder.resolve()
    found = _held.get(key)
    if found is None:
        found = _held[key] = Hold(folder)
    return found


def remove_if_left(folder: Path) -> None:
    """Remove a folder that was made as a temporary one, long ago, and that no process holds."""
    try:
        found = folder.lstat()
        mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        old = time.time() - found.st_mtime > LEFT_S
        if fcntl is not None and mine and old and (folder / TEMPORARY).exists():
            Hold(folder)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # held, gone already, or not to be touched
        return


def _taken(file: int) -> bool:
    """Lock an open file; False where another process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
