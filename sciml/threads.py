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


def each(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield `function(item)` of each item, in their order, from a thread for each core.

    The first call runs alone: what it compiles is compiled once. An accelerator has one thread.
    """
    import jax

    if not items:
        return
    yield function(items[0])
    threads = usable_cores() if jax.default_backend() == "cpu" else 1
    if len(items) == 1 or threads == 1:
        yield from map(function, items[1:])
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items[1:])
