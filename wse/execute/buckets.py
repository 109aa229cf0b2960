"""Gradients of several systems, added up in few large pieces instead of one by one."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

# Up to this size, starting a reduction costs more than copying into a bucket; a larger array goes
# alone, for the copy would cost more (measured on CPU devices by benchmarks/reduction.py).
BUCKET_BYTES = 256 * 2**10


def buckets(arrays: Sequence[Any], bucket_bytes: int = BUCKET_BYTES) -> list[list[int]]:
    """Group arrays of one type, in order, into buckets of at most so many bytes, or of one array.

    >>> buckets([jnp.ones(3), jnp.ones(2), jnp.ones(4)], 20)
    [[0, 1], [2]]
    """
    found: list[list[int]] = []
    filled: dict[Any, tuple[list[int], int]] = {}
    for i, array in enumerate(arrays):
        size = array.size * array.dtype.itemsize
        if size > bucket_bytes:
            found.append([i])
            continue
        bucket, held = filled.get(array.dtype, ([], 0))
        if not bucket or held + size > bucket_bytes:
            bucket, held = [], 0
            found.append(bucket)
        bucket.append(i)
        filled[array.dtype] = (bucket, held + size)
    return found


def summed(arrays: Sequence[Any], axis: str, bucket_bytes: int = BUCKET_BYTES) -> list[Any]:
    """Within a mapped program: the sums of arrays over an axis of the mesh, bucket by bucket."""
    found: dict[int, Any] = {}
    for bucket in buckets(arrays, bucket_bytes):
        if len(bucket) == 1:
            found[bucket[0]] = jax.lax.psum(arrays[bucket[0]], axis)
            continue
        flat = jnp.concatenate([jnp.ravel(arrays[i]) for i in bucket])
        total, start = jax.lax.psum(flat, axis), 0
        for i in bucket:
            stop = start + arrays[i].size
            found[i] = jnp.reshape(total[start:stop], arrays[i].shape)
            start = stop
    return [found[i] for i in range(len(arrays))]


def reducer(mesh: Any, bucket_bytes: int = BUCKET_BYTES) -> Callable[[Any], Any]:
    """Return the program that adds up arrays which hold one entry per system along a first axis."""

    def local(stacks: list[Any]) -> list[Any]:
        return summed([stack[0] for stack in stacks], "system", bucket_bytes)

    return jax.jit(
        jax.shard_map(
            local,
            mesh=mesh,
            in_specs=PartitionSpec("system"),
            out_specs=PartitionSpec(),
            check_vma=False,
        )
    )
