"""What a layout costs: cycles, wavelets and memory of the busiest processing element."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

import numpy as np

from wse.layout.pieces import VALUE_BYTES, Layout, Shape, Wafer, part
from wse.machine import collective

WAVELET_VALUES = 2  # half-precision numbers in a wavelet of 32 bits
SUM_BYTES = 4  # a partial sum, in single precision: one wavelet


@dataclass(frozen=True)
class Cost:
    """One layer in one layout, per step of training.

    Attributes:
        compute_cycles: multiply-adds of the forward pass, of the busiest PE.
        weight_cycles: the time in which its weights arrive; hidden behind the arithmetic.
        halo_values: numbers that a PE receives from its neighbours' borders.
        halo_cycles: the time they take, forward and backward: a PE sends as many as it receives,
            in a message for each side.
        reduce_cycles: sums over the channels' PEs forward, over the filters' PEs backward.
        gradient_cycles: the sum of the weights' gradients over all PEs of a channel.
        memory_bytes: inputs, outputs, halo, weights that arrive and partial sums of a PE.

    >>> from wse import layout
    >>> dense = layout.Shape("dense", batch=8, size=(1, 1), channels=64, filters=32)
    >>> split = layout.Layout(batch=2, across=4, down=1, size=(1, 1))
    >>> found = layout.cost(dense, split, layout.Wafer(8, 8))
    >>> found.compute_cycles, found.reduce_cycles, found.cycles
    (512, 420, 2474)
    """

    compute_cycles: int
    weight_cycles: int
    halo_values: int
    halo_cycles: int
    reduce_cycles: int
    gradient_cycles: int
    memory_bytes: int

    @property
    def cycles(self) -> int:
        """Forward and backward: three times the arithmetic, weights twice, and what moves."""
        forward = max(self.compute_cycles, self.weight_cycles)
        backward = max(2 * self.compute_cycles, self.weight_cycles)
        return forward + backward + self.halo_cycles + self.reduce_cycles + self.gradient_cycles


def cost(shape: Shape, layout: Layout, wafer: Wafer) -> Cost:
    """Cost of a layer in a layout.

    With parts b, c, y, x per PE (ceilings), K filters of R S taps and v multiply-adds a cycle:

    - compute: R S K b c y x / v
    - weights: R S K max(c, C / lanes) / 2 wavelets
    - halo: b c [(y + R - 1)(x + S - 1) - y x], along axes that are split, sent and received
    - sums over channels: K b y x words over the PEs of the channels, `wse.collective`
    - memory: 2 bytes of inputs, outputs, halo and of two filters' weights; 4 of sums

    Args:
        shape: the layer.
        layout: how it is split.
        wafer: the grid.


    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> wafer = layout.Wafer.of()
    >>> best = layout.plan([conv], wafer).layers[0].layout
    >>> layout.cost(conv, best, wafer).memory_bytes < wafer.data_bytes
    True
    """
    batch = part(shape.batch, layout.batch)
    channels = part(shape.channels, layout.channels)
    filters = part(shape.filters, layout.channels)
    inputs = [part(n, p) for n, p in zip(shape.size, layout.size, strict=True)]
    outputs = [part(n, p) for n, p in zip(shape.outputs, layout.size, strict=True)]
    arriving = prod(shape.taps) * shape.filters
    rims = [
        n + (r - 1 if p > 1 else 0) for n, r, p in zip(inputs, shape.taps, layout.size, strict=True)
    ]
    rim = batch * (prod(rims) - prod(inputs))
    sums = batch * shape.filters * prod(outputs)
    deltas = batch * shape.channels * prod(inputs)
    grid = (layout.across, layout.down)
    weights = prod(shape.taps) * channels
    return Cost(
        compute_cycles=compute_cycles(shape, layout, wafer),
        weight_cycles=ceil(arriving * max(channels, shape.channels / wafer.lanes) / WAVELET_VALUES),
        halo_values=rim * channels,
        halo_cycles=_halo(layout, rim * channels) + _halo(layout, rim * filters),
        reduce_cycles=_reduce(grid, sums) + _reduce(grid, deltas),
        gradient_cycles=_reduce(
            (layout.size[-1], layout.rows // layout.down),
            prod(shape.taps) * shape.filters * channels,
            spacing=layout.across,
        ),
        memory_bytes=VALUE_BYTES
        * (batch * (channels * prod(rims) + filters * prod(outputs)) + 2 * weights)
        + (SUM_BYTES * batch * prod(outputs) if layout.channels > 1 else 0),
    )


def compute_cycles(shape: Shape, layout: Layout, wafer: Wafer) -> int:
    """Multiply-adds of the forward pass, of the busiest PE, in cycles."""
    outputs = [part(n, p) for n, p in zip(shape.outputs, layout.size, strict=True)]
    held = part(shape.batch, layout.batch) * part(shape.channels, layout.channels) * prod(outputs)
    return part(shape.taps_per_output * shape.filters * held, wafer.multiplies_per_cycle)


def least_cycles(shape: Shape, ways: Sequence[Layout], wafer: Wafer) -> list[float]:
    """Cycles that `cost` of each layout exceeds: arithmetic, and one for each word that is summed.

    >>> wafer, shape = Wafer(8, 8), Shape("c", 2, (8, 8), 4, 4, (3, 3))
    >>> ways = [Layout(2, 1, 1, (4, 8)), Layout(1, 2, 1, (8, 4))]
    >>> bounds = least_cycles(shape, ways, wafer)
    >>> bounds, [cost(shape, one, wafer).cycles for one in ways]
    ([360.0, 320.0], [764, 651])
    """
    batch, channels, *size = np.array([(x.batch, x.channels, *x.size) for x in ways], float).T
    counts = shape.batch, shape.channels
    parts = [np.ceil(n / p) for n, p in zip(counts, (batch, channels), strict=True)]
    outputs, inputs = (
        np.prod([np.ceil(n / p) for n, p in zip(sizes, size, strict=True)], axis=0)
        for sizes in (shape.outputs, shape.size)
    )
    held = parts[0] * parts[1] * outputs
    compute = np.ceil(shape.taps_per_output * shape.filters * held / wafer.multiplies_per_cycle)
    words = parts[0] * (shape.filters * outputs + shape.channels * inputs)
    weights = prod(shape.taps) * shape.filters * parts[1]
    copies = batch * np.prod(size, axis=0) > 1
    return (3 * compute + words * (channels > 1) + weights * copies).tolist()


def norm_cycles(shape: Shape, layout: Layout, groups: int | None = None) -> int:
    """Cycles that a norm of a layer's output spends in sums and broadcasts, forward and backward.

    Two words (sum and sum of squares) per channel, or per group and sample, are reduced over all
    PEs that share them and sent back; the backward pass does the same with two more.

    Args:
        shape: the layer.
        layout: how it is split.
        groups: of a group norm; None: a batch norm, over all samples.

    Raises:
        ValueError: groups that are not positive, or more than channels.

    >>> from wse import layout
    >>> conv = layout.Shape("conv", batch=4, size=(64, 64), channels=3, filters=8, taps=(3, 3))
    >>> best = layout.plan([conv], layout.Wafer.of()).layers[0].layout
    >>> layout.norm_cycles(conv, best) > 0
    True
    """
    if groups is not None and not 1 <= groups <= shape.filters:
        raise ValueError(
            f"groups is {groups}; {shape.filters} channels have 1 to {shape.filters} groups"
        )
    images = prod(layout.size[:-1])
    if groups is None:
        words = part(shape.filters, layout.channels)
        grid, spacing = (layout.size[-1], images * layout.batch), layout.across
    elif groups >= layout.channels:  # a group's channels lie in one PE
        words = part(groups, layout.channels) * part(shape.batch, layout.batch)
        grid, spacing = (layout.size[-1], images), layout.across
    else:
        words = part(shape.batch, layout.batch)
        grid, spacing = (layout.columns, images * layout.down), 1
    return 2 * collective.all_reduce(grid, 2 * words, spacing=spacing).cycles


def _halo(layout: Layout, values: int) -> int:
    """Cycles in which a PE receives so many numbers from all sides, and sends as many."""
    gaps = [layout.across] * (layout.size[-1] > 1) + [1] * sum(n > 1 for n in layout.size[:-1])
    waits = sum(collective.MESSAGE_CYCLES + gap for gap in gaps)
    return 2 * part(values, WAVELET_VALUES) + 4 * waits


@lru_cache(maxsize=65_536)
def _reduce(grid: tuple[int, int], words: int, spacing: int = 1) -> int:
    return collective.reduce(grid, words, spacing=spacing).cycles
