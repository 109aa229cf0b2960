"""Several processes: they go on from one step, with the same arguments, or none of them does."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import zlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

NOTHING, REFUSED = -1, -2  # in place of the number of a complete step


def agreed(count: int) -> int:
    """Return the number of the last step that every process has completed.

    A step needs all processes, so none is more than one step ahead of another.

    Args:
        count: of this process; `NOTHING` where it has none, `REFUSED` where it could not look.

    Raises:
        ValueError: a process could not look, or has lost what it had.
    """
    if jax.process_count() == 1:
        return count
    counts = _gathered(count)
    if REFUSED in counts:
        if count == REFUSED:
            return count
        raise ValueError(
            f"process {counts.index(REFUSED)} could not open its store, and says why; no process "
            "goes on without the others"
        )
    least = min(counts)
    if max(counts) > least + 1:
        raise ValueError(
            f"the last writes of the processes' stores are {', '.join(map(str, counts))}, by "
            f"process ({NOTHING}: none); they must be at most one apart: restore the folder that "
            "is behind, or remove all"
        )
    return least


def check_alike(what: str, arrays: Sequence[Any]) -> None:
    """Refuse arguments that differ between processes."""
    if jax.process_count() == 1:
        return
    sums = _gathered(checksum(arrays))
    if len(set(sums)) > 1:
        said = ", ".join(f"{value:08x}" for value in sums)
        raise ValueError(
            f"{what} differ between the processes (checksums {said}); each must be given the same: "
            "the whole batch, and the same seed"
        )


def said_by_first(number: float) -> float:
    """Return the number that the first process has, in single precision.

    What depends on a clock, or on rounding of one processor, is decided by one of them.
    """
    if jax.process_count() == 1:
        return number
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return float(broadcast_one_to_all(np.float32(number)))


def any_says(flag: bool) -> bool:
    """Tell whether some process says so."""
    return flag if jax.process_count() == 1 else any(_gathered(int(flag)))


def checksum(arrays: Sequence[Any]) -> int:
    """Return one number that tells arrays by type, shape and bytes; shapes alone by those."""
    found = 0
    for array in map(_here, arrays):
        found = zlib.crc32(f"{array.dtype}{tuple(array.shape)}".encode(), found)
        if isinstance(array, np.ndarray):
            found = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, found)
    return found


def _here(leaf: Any) -> Any:
    """A leaf with its numbers, where they are all in this process."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if isinstance(leaf, jax.Array):
        plain = leaf.is_fully_addressable and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(leaf) if plain else leaf
    return np.asarray(leaf)


def _gathered(number: int) -> list[int]:
    """The same number of every process, in their order."""
    from jax.experimental.multihost_utils import process_allgather

    halves = np.array([number >> 16, number & 0xFFFF], np.int32)  # 64 bits would be cut to 32
    found = np.asarray(process_allgather(halves)).reshape(-1, 2)
    return [(int(high) << 16) + int(low) for high, low in found]
