"""Samples that are read while a net trains: in windows of whole pieces, shuffled within."""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Int, PyTree

from wse._agreement import any_says

THREAD = "window reader"


@dataclass(frozen=True)
class Window:
    """Batches (step, batch, …) of which the first `count` are filled; where the epoch has them."""

    arrays: PyTree[np.ndarray]
    first: int
    count: int


@dataclass(frozen=True)
class Stream:
    """Pieces of a data set, in a fresh order each epoch.

    Every sample comes once an epoch, but for a last batch that is not full. Samples of a window are
    shuffled over all its batches; those of two windows are never in one batch. How far that is from
    a shuffle of everything: the mean of a batch over b samples has the variance σ²/b + τ²/W, where
    σ² is that of a sample within a piece, τ² that of the means of pieces and W the number of pieces
    in a window. For pieces of n independent samples τ² = σ²/n: more by the share b/(W n), one
    batch in a window, and over an epoch nothing.

    Attributes:
        sizes: samples of each piece.
        window: samples that are shuffled together.
        read: piece ↦ a pytree of arrays of that many samples.
        held: arrays that tell this data set from others.
    """

    sizes: Int[np.ndarray, " piece"]
    window: int
    read: Callable[[int], PyTree[np.ndarray]]
    held: Any = ()

    @property
    def samples(self) -> int:
        """How many samples an epoch has."""
        return int(self.sizes.sum())

    def steps(self, batch: int) -> int:
        """Return how many whole batches a full window holds, one at least."""
        return max(1, min(self.window, self.samples) // batch)

    def order(self, seed: int, epoch: int) -> Int[np.ndarray, " piece"]:
        """Return the pieces as an epoch takes them."""
        return chance(seed, epoch).permutation(len(self.sizes))

    def places(self, batch: int, epochs: int, done: int) -> Iterator[tuple[int, int]]:
        """Yield the epoch and the number of each window, from where so many steps are done."""
        whole, steps = self.samples // batch, self.steps(batch)
        windows = -(-whole // steps)
        start = done // whole * windows + done % whole // steps
        yield from (divmod(place, windows) for place in range(start, epochs * windows))

    def filled(
        self, seed: int, batch: int, epoch: int, index: int, share: tuple[int, int] = (0, 1)
    ) -> Window:
        """Read one window; of share (i, n) only every n-th piece from the i-th, zeros elsewhere."""
        steps, order = self.steps(batch), self.order(seed, epoch)
        size, ends = steps * batch, np.cumsum(self.sizes[order])
        start, stop = index * size, min((index + 1) * size, self.samples)
        count = (stop - start) // batch
        slots = chance(seed, epoch, index).permutation(stop - start)
        flat: Any = None
        here = np.flatnonzero((ends > start) & (ends - self.sizes[order] < stop))
        for at in own_share(here, *share):
            piece, end = int(order[at]), int(ends[at])
            begin = end - self.sizes[piece]
            low, high = max(begin, start), min(end, stop)
            arrays = jax.tree.map(
                lambda x, s=slice(low - begin, high - begin): x[s], self.read(piece)
            )
            if flat is None:
                flat = jax.tree.map(lambda x: np.zeros((size, *x.shape[1:]), x.dtype), arrays)
            if at not in here[share[0] :: share[1]]:
                break  # read for its shapes alone
            to = slots[low - start : high - start]
            kept = to < count * batch
            jax.tree.map(lambda out, x, to=to, kept=kept: put(out, to[kept], x[kept]), flat, arrays)
        cut = jax.tree.map(lambda x: x.reshape(steps, batch, *x.shape[1:]), flat)
        return Window(cut, index * steps, count)


def own_share(pieces: Int[np.ndarray, " piece"], first: int, each: int) -> list[int]:
    """Return every `each`-th piece from the `first`; where there is none, one to see its shapes.

    >>> own_share(np.arange(5), 1, 2), own_share(np.arange(5), 7, 8)
    ([1, 3], [0])
    """
    return pieces[first::each].tolist() or pieces[:1].tolist()


def put(out: np.ndarray, to: Int[np.ndarray, " row"], rows: np.ndarray) -> None:
    """Write rows at their places."""
    out[to] = rows


def chance(seed: int, *place: int) -> np.random.Generator:
    """Return a generator of one place's own."""
    return np.random.default_rng([int(seed) % 2**64, *place])


def taken(
    windows: Iterator[tuple[int, Window]], several: bool
) -> tuple[int, Window] | tuple[None, None]:
    """Return the next epoch and window, once every process has read its share of it.

    Raises:
        RuntimeError: another process could not read its share.
    """
    failed, found = None, (None, None)
    try:
        found = next(windows, found)
    except Exception as error:
        failed = error
    if several and any_says(failed is not None) and failed is None:
        raise RuntimeError(
            "another process could not read its share of the data, and says why; none goes on "
            "without the others"
        )
    if failed is not None:
        raise failed
    return found


def ahead(
    make: Callable[[int, int], Window], places: Iterable[tuple[int, int]]
) -> Generator[tuple[int, Window]]:
    """Yield epoch and window of each place, while a thread reads the next: two are in memory."""
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD) as reader:
        waiting: Any = None
        for place in places:
            coming = place[0], reader.submit(make, *place)
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = coming
        if waiting is not None:
            yield waiting[0], waiting[1].result()
