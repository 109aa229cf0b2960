"""Devices that share each batch: weights on all of them, samples dealt out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from sciml._numbers import short

Devices = int | Sequence[Any] | None


@dataclass(frozen=True)
class Shared:
    """Devices along one axis, over which the samples of a batch are laid.

    The program of an epoch is that of one device; only where its arrays lie is said here, so that
    more devices change sums by rounding and nothing else. Empty: JAX's default device, alone.
    """

    devices: tuple[Any, ...] = ()

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return len(self.devices) > 1

    @property
    def spans(self) -> bool:
        """Whether some belong to other processes, which `jax.distributed` has joined."""
        return any(device.process_index != jax.process_index() for device in self.devices)

    @property
    def everywhere(self) -> Any:
        """Where weights and data lie: whole, on each device."""
        return self.laid() if self.several else self.devices[0]

    def laid(self, *axes: str | None) -> NamedSharding:
        """Return how an array lies: an axis along the devices, or None for one that is whole."""
        return NamedSharding(Mesh(np.array(self.devices), ("batch",)), PartitionSpec(*axes))

    def on_all(self, tree: PyTree) -> PyTree:
        """Return the arrays on every device."""
        if self.spans:
            return jax.tree.map(self.across, tree)
        return jax.device_put(tree, self.everywhere) if self.devices else tree

    def across(self, leaf: Any) -> Any:
        """Return an array that every process has as one that lies on the devices of all."""
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            kind = jax.random.key_impl(leaf)
            return jax.random.wrap_key_data(self.across(jax.random.key_data(leaf)), impl=kind)
        here = np.asarray(leaf)
        return jax.make_array_from_callback(here.shape, self.everywhere, lambda index: here[index])

    @property
    def share_read(self) -> tuple[int, int]:
        """Which share of the data this process reads, and of how many; the rest others send it."""
        by_process = sorted(self.devices, key=lambda device: device.process_index)
        if not self.spans or (*by_process,) != self.devices:
            return 0, 1
        return jax.process_index(), jax.process_count()

    def batches(self, tree: PyTree) -> PyTree:
        """Return arrays (step, batch, …) of the host with each batch dealt out to the devices.

        Where each process has read its share, the others' samples are zeros in its arrays.
        """
        if not self.several:
            return jax.device_put(tree)
        where = self.laid(None, "batch")
        if not self.spans:
            return jax.device_put(tree, where)
        if self.share_read[1] > 1:
            return jax.tree.map(partial(joined, self), tree)

        def share(leaf: Any) -> Any:
            return jax.make_array_from_callback(leaf.shape, where, lambda index: leaf[index])

        return jax.tree.map(share, tree)

    def at_home(self, tree: PyTree) -> PyTree:
        """Return the arrays on the first device alone, of this process if they are everywhere."""
        if self.spans:
            return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)
        return jax.device_put(tree, self.devices[0]) if self.several else tree

    def dealt(self, tree: PyTree) -> PyTree:
        """Within a program: each device has its share of the first axis, if they divide it."""
        return self.constrained(tree, "batch")

    def whole(self, tree: PyTree) -> PyTree:
        """Within a program: each device has all."""
        return self.constrained(tree)

    def constrained(self, tree: PyTree, *axes: str) -> PyTree:
        """Return arrays laid so within a program; those that cannot be cut stay as they are."""
        if not self.several:
            return tree

        def put(leaf: Any) -> Any:
            if axes and (not leaf.ndim or leaf.shape[0] % len(self.devices)):
                return leaf
            return jax.lax.with_sharding_constraint(leaf, self.laid(*axes))

        return jax.tree.map(put, tree)


def joined(on: Shared, leaf: np.ndarray) -> jax.Array:
    """Return an array (step, batch, …) of which each process has some samples, zeros elsewhere.

    Bits are added, as numbers without a sign: a sum with zeros, exact for any number.
    """
    leaf = np.asarray(leaf, jax.dtypes.canonicalize_dtype(leaf.dtype))
    bits = leaf.view(f"u{leaf.dtype.itemsize}")
    grid = np.array(on.devices).reshape(jax.process_count(), -1)
    where = NamedSharding(
        Mesh(grid, ("process", "device")), PartitionSpec("process", None, "device")
    )
    parts = jax.make_array_from_callback(
        (len(grid), *bits.shape), where, lambda index: bits[(index or ())[1:]][None]
    )
    return added(on, str(leaf.dtype))(parts)


@cache
def added(on: Shared, dtype: str) -> Any:
    """Return the program that adds bits of all processes and lays batches over the devices."""

    def run(parts: Any) -> Any:
        bits = parts.sum(axis=0, dtype=parts.dtype)
        return bits != 0 if dtype == "bool" else jax.lax.bitcast_convert_type(bits, dtype)

    return jax.jit(run, out_shardings=on.laid(None, "batch"))


def shared(devices: Devices, batch: int) -> Shared:
    """Return the devices that an argument `devices` means for batches of a size.

    None: all local ones, or the most of them that divide the batch; where `jax.distributed` has
    joined processes, so many of each. A number: so many of this process.
    """
    present = jax.local_devices()
    if devices is None:
        return Shared(of_each_process(batch))
    if isinstance(devices, int | np.integer):
        if not 0 < devices <= len(present) or isinstance(devices, bool):
            raise ValueError(
                f"devices is {devices!r}, and this process has {len(present)} of "
                f"{jax.default_backend()}; it must be a number from 1 to {len(present)}: leave it "
                "out to use all of them"
            )
        devices = present[:devices]
    row = isinstance(devices, Iterable) and not isinstance(devices, str) and np.ndim(devices) == 1
    chosen: tuple[Any, ...] = tuple(devices) if row else ()
    known = {*present, *others(chosen), *jax.devices()}
    if not chosen or len({*chosen}) < len(chosen) or not {*chosen} <= known:
        raise ValueError(
            f"devices is {short(devices)}; it must be a number, or devices as jax.local_devices() "
            "or, of several processes, jax.devices() gives them, each once"
        )
    counts = [sum(d.process_index == p for d in chosen) for p in range(jax.process_count())]
    if Shared(chosen).spans and len({*counts}) > 1:
        raise ValueError(
            f"devices are {', '.join(map(str, counts))} of the {len(counts)} processes; all must "
            "have the same number of them: pass jax.devices(), or this process's own"
        )
    if batch % len(chosen):
        fits = [n for n in range(1, len(chosen)) if batch % n == 0]
        raise ValueError(
            f"devices is {len(chosen)}, which does not divide the batch of {batch}; every device "
            f"takes the same share: pass devices={fits[-1]}, or "
            f"Recipe(batch={batch - batch % len(chosen) or len(chosen)})"
        )
    return Shared(chosen)


def of_each_process(batch: int) -> tuple[Any, ...]:
    """Return as many devices of each process as divide the batch; none where that is one alone."""
    processes = range(jax.process_count())
    all_of = [[d for d in jax.devices() if d.process_index == p] for p in processes]
    fits = [n for n in range(1, min(map(len, all_of)) + 1) if batch % (n * len(all_of)) == 0]
    if not fits:
        raise ValueError(
            f"the batch of {batch} is shared by {len(all_of)} processes, which do not divide it: "
            f"pass Recipe(batch={batch - batch % len(all_of) or len(all_of)}), or "
            "devices=jax.local_devices(), and this process trains by itself"
        )
    chosen = tuple(device for own in all_of for device in own[: fits[-1]])
    return chosen if len(chosen) > 1 else ()


def check_devices(executor: Any, devices: Devices) -> None:
    """Refuse devices beside an executor."""
    if executor is not None and devices is not None:
        raise ValueError(
            f"devices is {devices!r} beside an executor, {executor!r}, which has devices of its "
            "own: leave one of the two out"
        )


def others(chosen: Sequence[Any]) -> list[Any]:
    """Return the local devices of the platforms of some devices."""
    platforms = {getattr(device, "platform", None) for device in chosen}
    if len(platforms) != 1 or None in platforms:
        return []
    return jax.local_devices(backend=platforms.pop())
