"""Ctrl-C, and the SIGTERM that schedulers send before they kill: work ends when it is saved."""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

TERMINATED = 143  # a shell's exit code: 128 + SIGTERM

log = logging.getLogger(__name__)


@contextmanager
def terminable() -> Generator[None]:
    """Within, SIGTERM raises `SystemExit` of code 143, so every `finally` runs.

    Nothing changes in threads other than the main one, nor where a program handles the signal
    itself.
    """
    if not _is_free(signal.SIGTERM, signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGTERM, _raised)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stopping() -> Generator[Callable[[], bool]]:
    """Within, the first Ctrl-C or SIGTERM waits: the work asks for it, saves, and leaves.

    Yields:
        whether one has come. Leaving raises it then: `KeyboardInterrupt`, or `SystemExit` of code
        143. A second one acts at once. As `terminable`, it leaves others' handlers alone.
    """
    came: list[int] = []
    before = {
        number: signal.getsignal(number)
        for number, usual in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGTERM, _raised),
        )
        if _is_free(number, usual)
    }

    def wait(number: int, frame: Any) -> None:
        if came:
            _raised(number, frame)
        came.append(number)
        log.warning("stopping as soon as what is done is saved; once more stops at once")

    for number in before:
        signal.signal(number, wait)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        _raised(came[0], None)


def _is_free(number: int, usual: Any) -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(number) is usual


def _raised(number: int, frame: Any) -> None:
    if number == signal.SIGINT:
        signal.default_int_handler(number, frame)
    sys.exit(TERMINATED)
