"""Devices that share each batch: weights on all of them, samples dealt out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
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
    def everywhere(self) -> Any:
        """Where weights and data lie: whole, on each device."""
        return self.laid() if self.several else self.devices[0]

    def laid(self, *axes: str | None) -> NamedSharding:
        """Return how an array lies: an axis along the devices, or None for one that is whole."""
        return NamedSharding(Mesh(np.array(self.devices), ("batch",)), PartitionSpec(*axes))

    def on_all(self, tree: PyTree) -> PyTree:
        """Return the arrays on every device."""
        return jax.device_put(tree, self.everywhere) if self.devices else tree

    def at_home(self, tree: PyTree) -> PyTree:
        """Return the arrays on the first device alone."""
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


def shared(devices: Devices, batch: int) -> Shared:
    """Return the devices that an argument `devices` means for batches of a size.

    None: all local ones, or the most of them that divide the batch. A number: so many of them.
    """
    present = jax.local_devices()
    if devices is None and jax.process_count() > 1:
        raise ValueError(
            f"jax.distributed has joined {jax.process_count()} processes, over which nets of sciml "
            "are not trained: pass devices=jax.local_devices(), and this one trains by itself, or "
            "an executor, as wse.CS2(systems=2), which spans them"
        )
    if devices is None:
        most = max(n for n in range(1, len(present) + 1) if batch % n == 0)
        return Shared(tuple(present[:most])) if most > 1 else Shared()
    if isinstance(devices, int | np.integer):
        if not 0 < devices <= len(present) or isinstance(devices, bool):
            raise ValueError(
                f"devices is {devices!r}, and this process has {len(present)} of "
                f"{jax.default_backend()}; it must be a number from 1 to {len(present)}: leave it "
                "out to use all of them"
            )
        devices = present[:devices]
    row = isinstance(devices, Iterable) and not isinstance(devices, str) and np.ndim(devices) == 1
    chosen = tuple(devices) if row else ()
    if not chosen or len({*chosen}) < len(chosen) or not {*chosen} <= {*present, *others(chosen)}:
        raise ValueError(
            f"devices is {short(devices)}; it must be a number, or devices of this process as "
            "jax.local_devices() gives them, each once"
        )
    if batch % len(chosen):
        fits = [n for n in range(1, len(chosen)) if batch % n == 0]
        raise ValueError(
            f"devices is {len(chosen)}, which does not divide the batch of {batch}; every device "
            f"takes the same share: pass devices={fits[-1]}, or "
            f"Recipe(batch={batch - batch % len(chosen) or len(chosen)})"
        )
    return Shared(chosen)


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
