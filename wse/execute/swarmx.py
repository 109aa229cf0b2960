"""SwarmX: systems that share a batch, folded onto the devices present."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from wse.execute import fabric, uneven
from wse.graph.cuts import nbytes


@dataclass(frozen=True)
class SwarmX:
    """Broadcasts weights to the systems, deals out the batch, reduces gradients.

    The program of a step is that of the whole batch, laid out over a mesh of devices by its first
    axis: batch statistics are global, and a loss need not be a mean. Systems beyond the devices
    present share them evenly: more devices change speed, not numbers.

    Attributes:
        systems: how many; they divide the batch.
        present: the devices to choose from; empty: all that this process has, or all processes
            together where they are several.
        grid: rows and columns over which the arrays of one system lie, as
            `wse.execute.fabric` says.
    """

    systems: int = 1
    present: tuple[Any, ...] = ()
    grid: tuple[int, int] = (1, 1)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Systems, rows and columns as they are folded evenly onto the devices present."""
        sizes, most = (self.systems, *self.grid), len(self._present)
        divisors = [[n for n in range(1, size + 1) if size % n == 0] for size in sizes]
        folds = [(a, b, c) for a, b, c in product(*divisors) if a * b * c <= most]
        return max(folds, key=lambda fold: (prod(fold), fold))

    @cached_property
    def devices(self) -> tuple[Any, ...]:
        """The devices used: of several processes, as many of each where they divide them."""
        several = {device.process_index for device in self._present} if self._several else {0}
        count = prod(self.shape)
        if not self._several or count % len(several):
            return self._present[:count]
        share = count // len(several)
        own = [[x for x in self._present if x.process_index == i] for i in sorted(several)]
        return tuple(device for each in own for device in each[:share])

    @cached_property
    def mesh(self) -> Mesh:
        """The devices along the axis "system"; rows and columns lie within a system."""
        return Mesh(np.array(self.devices).reshape(self.shape), ("system", "row", "column"))

    @property
    def _several(self) -> bool:
        """Whether the devices are those of several processes."""
        return not self.present and jax.process_count() > 1

    @cached_property
    def _present(self) -> tuple[Any, ...]:
        return self.present or tuple(jax.devices())

    @property
    def parallel(self) -> bool:
        """Whether programs hold collectives: several devices work on one."""
        return len(self.devices) > 1

    @cached_property
    def at_host(self) -> bool:
        """Whether the device is where the store computes: nothing need be fetched from it."""
        return self.devices == tuple(jax.local_devices(backend="cpu")[:1])

    @property
    def lanes(self) -> int:
        """Devices that can each run a system's own program: none is part of a fabric."""
        return 1 if self._fabric else self.shape[0]

    def broadcast(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """Every system gets all of each array, laid over its fabric."""
        if not self.parallel and all(_is_at(x, self._only) for x in arrays):
            return list(arrays)  # at once: what a step made is there
        return _put(arrays, [self._weight(x) for x in arrays])

    def deal(self, leaves: Sequence[Any], size: int) -> list[jax.Array]:
        """Every system gets its share of so many samples; arrays without samples go to all.

        Raises:
            ValueError: the systems do not divide the samples.
        """
        self.check(size)
        where = [self._dealt(x) if np.shape(x)[:1] == (size,) else self._everywhere for x in leaves]
        return _put(leaves, where)

    def check(self, size: int) -> None:
        """Refuse samples that the systems do not divide, or systems that leave out a process."""
        used = {device.process_index for device in self.devices}
        if self._several and len(used) < jax.process_count():
            raise ValueError(
                f"{self.systems} systems use devices of {len(used)} of {jax.process_count()} "
                f"processes; each must take part: pass systems={jax.process_count()}"
            )
        if size % self.systems:
            raise ValueError(
                f"the batch has {size} samples for {self.systems} systems; every system takes the "
                f"same share: pass a batch that {self.systems} divides, or batch_size if it has "
                "another number of samples"
            )

    def reduce(self, arrays: Any) -> Any:
        """Within a program: the same sum on every system."""
        if not self.parallel:
            return arrays
        return [jax.lax.with_sharding_constraint(x, self._weight(x)) for x in arrays]

    def laid(self, closed: core.ClosedJaxpr, axes: Sequence[uneven.Axes]) -> core.ClosedJaxpr:
        """A layer's program with its arrays laid over the fabric, or right on several devices.

        Samples may lie along `axes` of its inputs.
        """
        if self._fabric:
            return fabric.laid(closed, self.mesh, self._laid)
        if not self.parallel:
            return closed
        return uneven.whole_where_uneven(closed, axes, len(self.devices), self._laid)

    def _laid(self, array: Any, at: fabric.Roles | None) -> Any:
        where = self._everywhere if at is None else self._activation(array, at)
        return jax.lax.with_sharding_constraint(array, where)

    def collect(self, array: Any) -> Any:
        """All of an array in this process, where others hold parts of it."""
        if not isinstance(array, jax.Array) or array.is_fully_addressable:
            return array
        return jax.jit(lambda x: x, out_shardings=self._everywhere)(array)

    @property
    def _fabric(self) -> bool:
        return self.shape[1] * self.shape[2] > 1

    @property
    def _everywhere(self) -> Any:
        return self._sharding(())

    def _weight(self, array: Any) -> Any:
        # Every process holds all weights: what comes back to its host must be there.
        whole = not self._fabric or self._several or _is_key(array)
        return self._sharding(() if whole else fabric.weight(np.shape(array), self.shape))

    def _dealt(self, array: Any) -> Any:
        rank = np.ndim(array)
        if not self._fabric or rank < 2 or _is_key(array):
            return self._sharding(("system",))
        return self._activation(array, fabric.roles(None, rank))

    def _activation(self, array: Any, at: fabric.Roles) -> Any:
        whole = _is_key(array)
        spec = () if whole else fabric.activation(np.shape(array), self.shape, at)
        return self._sharding(spec)

    def _sharding(self, spec: fabric.Spec) -> Any:
        return NamedSharding(self.mesh, PartitionSpec(*spec)) if self.parallel else self._only

    @cached_property
    def _only(self) -> SingleDeviceSharding:
        return SingleDeviceSharding(self.devices[0])


def _put(arrays: Sequence[Any], where: Sequence[Any]) -> list[jax.Array]:
    if jax.process_count() == 1:
        found = list(arrays)
        moved = [i for i, x in enumerate(arrays) if not _is_at(x, where[i])]
        if not moved:
            return found
        put = jax.device_put([arrays[i] for i in moved], [where[i] for i in moved])
        for i, array in zip(moved, put, strict=True):
            found[i] = array
        return found
    return [_part(array, at) for array, at in zip(arrays, where, strict=True)]


def _is_at(array: Any, where: Any) -> bool:
    """Whether an array lies on this one device: to put it there takes longer than to ask."""
    return isinstance(array, jax.Array) and array.committed and array.sharding == where


def _part(array: Any, where: Any) -> jax.Array:
    """What this process holds of an array that every process has, as part of one over all."""
    elsewhere = isinstance(array, jax.Array) and not array.is_fully_addressable
    if elsewhere or not isinstance(where, NamedSharding):
        return jax.device_put(array, where)
    if _is_key(array):
        data = _part(np.asarray(jax.random.key_data(array)), where)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(array))
    held = np.asarray(array)
    return jax.make_array_from_callback(held.shape, where, lambda index: held[index])


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(jax.typeof(array).dtype, jax.dtypes.extended)


def held_bytes(arrays: Iterable[Any]) -> int:
    """Bytes of arrays on one device: of what is dealt out, its share."""
    return sum(_held(array) for array in arrays)


def _held(array: Any) -> int:
    if isinstance(array, jax.Array) and isinstance(array.sharding, SingleDeviceSharding):
        return array.nbytes
    whole = nbytes(jax.typeof(array))
    if not isinstance(array, jax.Array) or not array.size:
        return whole
    share = array.sharding.shard_shape(array.shape)
    return whole * int(np.prod(share, dtype=np.int64)) // array.size
