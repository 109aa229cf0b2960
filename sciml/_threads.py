"""Calls side by side, for programs of which XLA runs the greater part on one core."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

from sciml._random import for_threads
from wse._processor import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result], items: Sequence[Item], *, compiled: bool = False
) -> Iterator[Result]:
    """Yield `function(item)` of each item, in their order, from a thread for each core.

    Unless all that it calls is `compiled`, the first call runs alone, so that no program is
    compiled twice. An accelerator has one thread.
    """
    threads = usable_cores() if jax.default_backend() == "cpu" else 1
    alone = len(items) if threads == 1 else 0 if compiled else 1
    yield from map(function, items[:alone])
    if len(items) > alone:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(for_threads(function), items[alone:])
