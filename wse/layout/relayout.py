"""What it takes to move a tensor from one layout to another."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

import numpy as np

from wse.layout.cost import WAVELET_VALUES
from wse.layout.pieces import Layout, part


@lru_cache(maxsize=16_384)
def relayout_cycles(
    batch: int, channels: int, size: tuple[int, ...], before: Layout, after: Layout
) -> int:
    """Cycles to move a tensor from one layout to another; 0 if nothing moves.

    The most wavelets that must cross a cut between two rows or columns of PEs, by the links of that
    cut, and the longest way. Half-precision numbers travel in pairs.

    Args:
        batch: samples.
        channels: numbers per place.
        size: places along each axis.
        before: where the tensor lies.
        after: where it must lie.

    >>> from wse import layout
    >>> wide = layout.Layout(batch=1, across=1, down=1, size=(8, 8))
    >>> layout.relayout_cycles(4, 8, (64, 64), wide, wide)
    0
    """
    if before == after:
        return 0
    channel = _Runs.of(channels, before.channels, after.channels)
    width = _Runs.of(size[-1], before.size[-1], after.size[-1])
    height = _Runs.of(batch, before.batch, after.batch)
    for n, a, b in zip(size[:-1], before.size[:-1], after.size[:-1], strict=True):
        height = height.times(_Runs.of(n, a, b), a, b)
    lanes = before.across, after.across
    across = width.times(channel.within(*lanes), *lanes)
    down = height.times(channel.beyond(*lanes), before.down, after.down)
    rows, columns = max(before.rows, after.rows), max(before.columns, after.columns)
    east = across.crossing() * batch * prod(size[:-1]) / rows
    south = down.crossing() * size[-1] / columns
    return ceil(max(east, south) / WAVELET_VALUES) + across.farthest() + down.farthest()


@dataclass(frozen=True)
class _Runs:
    """Runs of values that lie in one place before and one after: along an axis, or several."""

    before: np.ndarray
    after: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, size: int, before: int, after: int) -> "_Runs":
        """An axis of some size, cut into parts before and after."""
        a, b = part(size, before), part(size, after)
        starts = np.array(sorted({*range(0, size, a), *range(0, size, b)}))
        return cls(starts // a, starts // b, np.diff(starts, append=size))

    def within(self, before: int, after: int) -> "_Runs":
        """The places along a row, where every so many parts lie in one row."""
        return _Runs(self.before % before, self.after % after, self.count)

    def beyond(self, before: int, after: int) -> "_Runs":
        """The rows, where every so many parts lie in one row."""
        return _Runs(self.before // before, self.after // after, self.count)

    def times(self, inner: "_Runs", before: int, after: int) -> "_Runs":
        """Two axes along one line of PEs; the inner one is cut into parts before and after."""
        return _Runs(
            (self.before[:, None] * before + inner.before).ravel(),
            (self.after[:, None] * after + inner.after).ravel(),
            (self.count[:, None] * inner.count).ravel(),
        )

    def crossing(self) -> float:
        """The most values that cross one cut of the line in one direction."""
        most, cuts = 0.0, int(max(self.before.max(), self.after.max())) + 2
        for start, end in ((self.before, self.after), (self.after, self.before)):
            ahead = start < end
            many = self.count[ahead]
            leave = np.bincount(start[ahead], many, cuts)
            reach = np.bincount(end[ahead], many, cuts)
            most = max(most, float(np.cumsum(leave - reach).max()))
        return most

    def farthest(self) -> int:
        """The longest way of a value, in PEs."""
        return int(np.abs(self.before - self.after).max())
