"""Weights in pages that a card reads by itself."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding
from numpy.typing import NDArray

from wse._processor import usable_cores
from wse.graph.equations import Weight

KIND = "pinned_host"
THREADS = 4  # copy memory: one alone reaches a tenth of what a card's bus takes
UPDATES = 8  # side by side: eight layers took 9 ms for 31 one after the other (docs/lab/h200.md)
# derived: from ordinary memory an H200 took 1.1 GB/s, so less than this within 0.2 ms, about what
# two more calls cost (docs/lab/h200.md).
LEAST_BYTES = 2**18


class Pinned:
    """Copies of weights in pinned pages, made beside the step that will need them.

    A card takes pinned pages at the pace of its bus, ordinary memory at a tenth of that or less. So
    each large weight is copied once after its update, while other layers compute, and sent from the
    copy in both passes. The copies take as much of the computer's memory as the weights.
    """

    def __init__(self, device: Any) -> None:
        """Copy for this device; nothing is copied yet."""
        self._where = SingleDeviceSharding(device, memory_kind=KIND)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="pinned")
        self._updates = ThreadPoolExecutor(min(UPDATES, usable_cores()), "updates")
        self._copies: dict[Weight, tuple[Any, Future[Any]]] = {}

    def updated(
        self,
        reads: Mapping[int, Sequence[Weight]],
        update: Callable[[], Iterable[tuple[int, Any]]],
    ) -> Future[None]:
        """Begin an update; what is read of the parameters that it makes is copied at once."""

        def run() -> None:
            for leaf, array in update():
                for weight in reads.get(leaf, ()):
                    self.ahead(weight, array)

        return self._updates.submit(run)

    def ahead(self, weight: Weight, held: Any) -> None:
        """Begin to copy a parameter, or the slice of one, unless that was done.

        `held` is the whole parameter; as long as it is the same object it must not be written to.
        """
        known = weight in self._copies and self._copies[weight][0] is held
        if held.nbytes >= LEAST_BYTES and not known:
            self._copies[weight] = held, self._pool.submit(self._copied, held, weight.index)

    def of(self, weight: Weight, held: Any) -> Any:
        """The copy; None of a small one, the array itself where no more pinned pages are free."""
        self.ahead(weight, held)
        return self._copies[weight][1].result() if weight in self._copies else None

    def fetched(self, arrays: Sequence[jax.Array]) -> list[NDArray[Any]]:
        """Arrays of the device, the large ones read through pinned pages."""
        large = [i for i, x in enumerate(arrays) if x.nbytes >= LEAST_BYTES]
        moved = jax.device_put([arrays[i] for i in large], self._where)
        found = dict(zip(large, moved, strict=True))
        return [np.asarray(found.get(i, x)) for i, x in enumerate(arrays)]

    def _copied(self, held: Any, index: tuple[int, ...]) -> Any:
        array: NDArray[Any] = _view(held)[index]
        try:
            return jax.device_put(array, self._where).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            warnings.warn(
                f"no pinned memory is left for {array.nbytes:,} bytes of weights: they are sent "
                "from ordinary memory, about ten times slower. XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB "
                "sets how much there may be",
                stacklevel=2,
            )
            return array


def can_pin(device: Any) -> bool:
    """Whether a device has pinned pages to read from."""
    return KIND in {memory.kind for memory in device.addressable_memories()}


def _view(held: Any) -> NDArray[Any]:
    """An array as NumPy sees it. No copy, and none that JAX keeps: a later step writes over it."""
    if not isinstance(held, jax.Array):
        return np.asanyarray(held)
    held.block_until_ready()
    try:
        return np.from_dlpack(held)  # pyright: ignore[reportArgumentType] # JAX's is narrower
    except (BufferError, RuntimeError, TypeError):  # such as bfloat16, unknown to NumPy
        return np.array(held)
