"""Calls side by side, for programs of which XLA runs the greater part on one core."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def each(
    function: Callable[[Item], Result], items: Sequence[Item], *, compiled: bool = False
) -> Iterator[Result]:
    """Yield `function(item)` of each item, in their order, from a thread for each core.

    Unless all that it calls is `compiled`, the first call runs alone, so that no program is
    compiled twice. An accelerator has one thread.
    """
    import jax

    threads = usable_cores() if jax.default_backend() == "cpu" else 1
    alone = len(items) if threads == 1 else 0 if compiled else 1
    yield from map(function, items[:alone])
    if len(items) > alone:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(function, items[alone:])
