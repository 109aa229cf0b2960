"""Whether the HDF5 library comes back from a file: damaged ones send it round an endless loop.

The loop (HDF5 1.14, in damaged heaps) holds Python's lock, so that neither Ctrl-C nor a thread ends
it. Each HDF5 file is therefore looked through first by a second process, which the system ends
after some seconds of processor time. It is started at the first file and serves all others; it
waits for slow disks as long as they take. This file is its program too, and imports nothing heavy.
"""

import atexit
import json
import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer
from typing import Any

LIMIT_S = 5.0  # of processor time; whole files take some milliseconds, huge ones half a second
WAIT_S = 600.0  # by the clock, for disks; the only limit on systems without such timers
READ_BYTES = 2**20  # what is larger is not read: its index is, of at most so many chunks
ALL_BYTES = 2**26  # nor is what comes after so many: a file may have thousands of small arrays
INDEXED = 10_000
ANSWER = "came back\n"

_lock = Lock()
# By the process that asks, since forks share none; None where no process can be started.
_running: dict[int, Any] = {}


def refuse_endless(path: Path) -> None:
    """Refuse an HDF5 file from which the library does not come back, or that ends the process."""
    with _lock:
        process = _running.get(os.getpid(), False)
        if process is False:
            process = _running[os.getpid()] = _started()
        if process is not None and not _answers(process, path):
            raise ValueError(
                f"{path} cannot be read as HDF5: the library fails on it, or has not come back "
                f"after {LIMIT_S:g} s of processor time; it is damaged: fetch it again"
            )


def _started() -> Any:
    """Return the process that looks, ready; None where it cannot be started."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(LIMIT_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
    except (OSError, TypeError):  # TypeError: Python is part of a program, and has no name
        return None
    atexit.register(_end, process)
    return process if _line(process) == ANSWER else None


def _answers(process: Any, path: Path) -> bool:
    """Whether it comes back from a file; where not, another is started for the next file."""
    came = False
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(os.path.abspath(path)) + "\n")
            process.stdin.flush()
        came = _line(process) == ANSWER
    finally:
        if not came:  # after Ctrl-C, its answer would be taken for that to the next file
            _end(process)
            del _running[os.getpid()]
    return came


def _line(process: Any) -> str:
    """Return what the process says; nothing where it ended, or was ended for its silence."""
    late = Timer(WAIT_S, process.kill)
    late.daemon = True
    late.start()
    try:
        return process.stdout.readline()
    finally:
        late.cancel()


def _end(process: Any) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # of what it had not taken in
            pipe.close()


def serve(limit_s: float) -> None:
    """Look through the files named on the lines that come in, and say so after each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import h5py

    sys.stdout.write(ANSWER)
    sys.stdout.flush()
    for line in sys.stdin:
        _limit(limit_s)
        with suppress(Exception), h5py.File(json.loads(line), "r") as file:
            _look_through(file)
        _limit(0)
        sys.stdout.write(ANSWER)
        sys.stdout.flush()


def _limit(seconds: float) -> None:
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process, in C too


def _look_through(file: Any) -> None:
    left = [ALL_BYTES]
    _look(file, left)
    file.visititems(lambda _, item: _look(item, left))


def _look(item: Any, left: list[int]) -> None:
    """Read what lies with a group or an array; what fails will fail again, and be said then.

    `left` counts down the bytes that may still be read of the file.
    """
    for name in list(item.attrs):
        with suppress(Exception):
            item.attrs[name]
    with suppress(Exception):  # a group has no bytes
        if item.nbytes <= min(READ_BYTES, left[0]):
            left[0] -= item.nbytes
            item[...]
        elif item.chunks and item.size < INDEXED * math.prod(item.chunks):
            item.id.get_num_chunks()


if __name__ == "__main__":
    serve(float(sys.argv[1]))
