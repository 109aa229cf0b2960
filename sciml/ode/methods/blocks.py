"""Many samples through one compiled program: in blocks that fit the cache, on all cores."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from sciml._progress import hidden
from sciml._session import each
from wse._processor import free_bytes, usable_cores

# calibrated: 2048 FitzHugh-Nagumo trajectories took 0.04 s of two cores in blocks of 256 and 0.07 s
# at once, where XLA shares out each operation, and waits, thousands of times.
BLOCK = 256
CHUNKS = 32  # at once on a card, where small blocks take as long as large ones


def in_blocks(
    function: Callable, rows: Sequence[np.ndarray], method: Any, *, progress: bool = True
) -> np.ndarray:
    """Return `function(*rows)` row by row, and show how far it is.

    At most `method.chunk` rows are computed at once, 32 times as many on an accelerator. A
    processor takes blocks of at most 256, each thread its own. Blocks are smaller where the memory
    that is free holds no such block for every thread: XLA would end the process; an accelerator
    refuses them, and is given half. The last block is padded, so that one program serves, and
    numbers do not depend on the number of threads. `function` is compiled. What calls back into
    Python runs in one thread: code wrapped so often works in memory that all its calls share.
    """
    on_cpu, size = jax.default_backend() == "cpu", _size(rows, method)
    while on_cpu and size > 1 and _block_bytes(function, rows, method, size) > free_bytes():
        size //= 2
    while True:
        try:
            return _solved(function, rows, method, size, progress)
        except jax.errors.JaxRuntimeError as error:
            if on_cpu or size == 1 or "RESOURCE_EXHAUSTED" not in str(error):
                raise
        size //= 2


def _solved(
    function: Callable, rows: Sequence[np.ndarray], method: Any, size: int, progress: bool
) -> np.ndarray:
    """Return all rows, computed in blocks of this size."""
    count = len(rows[0])
    starts = range(0, count, size)

    def block(array: np.ndarray, start: int) -> Any:
        part = array[start : start + size]
        padding = [(0, size - len(part))] + [(0, 0)] * (array.ndim - 1)
        return jnp.asarray(np.pad(part, padding, mode="edge"), dtype=method.dtype)

    def one(start: int) -> np.ndarray:
        with jax.enable_x64(method.dtype == "float64"):  # each thread has its own switch
            made = function(*(block(array, start) for array in rows))
            return np.asarray(made)[: count - start]

    solved: list[np.ndarray] = []
    quiet = hidden(not progress or len(starts) < 2)
    with tqdm(total=count, unit="sample", leave=False, **quiet) as bar:
        several = len(starts) > 1 and jax.default_backend() == "cpu"
        alone = several and _calls_python(function, rows, method, size)
        for result in map(one, starts) if alone else each(one, starts):
            solved.append(result)
            bar.update(len(result))
    return np.concatenate(solved)


def row_bytes(function: Callable, rows: Sequence[np.ndarray], method: Any) -> int:
    """Return how many bytes a compiled function gives for one row.

    It is traced for as many rows as `in_blocks` traces it for: once for both.
    """
    size = _size(rows, method)
    with jax.enable_x64(method.dtype == "float64"):
        (made,) = jax.tree.leaves(jax.eval_shape(function, *_shapes(rows, method, size)))
    return made.size * made.dtype.itemsize // size


def _size(rows: Sequence[np.ndarray], method: Any) -> int:
    """Return how many rows a block has where memory does not matter."""
    count = len(rows[0])
    on_cpu = jax.default_backend() == "cpu"
    return min(count, *((method.chunk, BLOCK) if on_cpu else (CHUNKS * method.chunk,)))


def _block_bytes(function: Any, rows: Sequence[np.ndarray], method: Any, size: int) -> int:
    """Return the memory that blocks of this size take on all threads, by what XLA plans."""
    with jax.enable_x64(method.dtype == "float64"):
        planned = function.lower(*_shapes(rows, method, size)).compile().memory_analysis()
    inside = planned.temp_size_in_bytes + planned.output_size_in_bytes
    return usable_cores() * (inside + planned.argument_size_in_bytes)


def _calls_python(function: Any, rows: Sequence[np.ndarray], method: Any, size: int) -> bool:
    """Say whether a program calls Python while it runs, as `jax.pure_callback` does."""
    with jax.enable_x64(method.dtype == "float64"):
        return "_callback[" in str(function.trace(*_shapes(rows, method, size)).jaxpr)


def _shapes(rows: Sequence[np.ndarray], method: Any, size: int) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct((size, *array.shape[1:]), method.dtype) for array in rows]
