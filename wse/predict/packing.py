"""Dense layers packed on the grid of cores, as the vendor's own estimate counts.

A layer of C inputs and K units on c x k parts of the grid takes, by the ISPD 2020 contest's model,

    cycles per sample = ceil(C / c) ceil(K / k)         cores = 3 k (c + 1)

three for forward, delta and weight update, and a row for input and output. All layers work at once
on different samples, so the slowest sets the rate: f / cycles samples per second.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from wse.machine.machine import Machine
from wse.models.shapes.workload import Layer, Workload


@dataclass(frozen=True)
class Packed:
    """The smallest rectangle of one layer that keeps to so many cycles per sample.

    Attributes:
        cycles: that it takes, per sample.
        cores: of its rectangle.
    """

    cycles: int
    cores: int


def pack(layer: Layer, cycles: int) -> Packed:
    """The fewest cores on which a dense layer takes at most so many cycles per sample.

    >>> sum(pack(Layer(f"{c}", c, k, 0), 464).cores for c, k in ((784, 500), (500, 300), (300, 10)))
    3660
    """
    if cycles < 1:
        raise ValueError(f"cycles is {cycles}; it must be a positive integer: pass cycles=464")
    rows = np.arange(1, min(layer.inputs, cycles) + 1)
    c = -(-layer.inputs // rows)
    kept = -(-layer.inputs // c)
    k = -(-layer.outputs // (cycles // kept))
    cores = 3 * k * (c + 1)
    best = cores.argmin()
    return Packed(int(kept[best] * -(-layer.outputs // k[best])), int(cores[best]))


def fewest_cycles(workload: Workload, cores: int) -> int:
    """The fewest cycles per sample at which all layers together fit on so many cores.

    Rectangles are only added up: a real placement needs some more.

    Raises:
        ValueError: no plain chain of dense layers, or too few cores for one of each.

    >>> from wse.workload import dense
    >>> fewest_cycles(dense(width=32), cores=753_972)
    1
    """
    if not workload.is_dense_chain:
        raise ValueError(
            f"{workload.name} is no plain chain of dense layers; only such are packed: "
            "pass wse.workload.dense(...)"
        )
    most = max(layer.inputs * layer.outputs for layer in workload.layers)
    if _cores(workload, most) > cores:
        raise ValueError(
            f"cores is {cores}; {workload.name} needs at least {_cores(workload, most)}: "
            "pass more cores"
        )
    return 1 + bisect_left(range(1, most), True, key=lambda n: _cores(workload, n) <= cores)


def vendor_samples_per_s(workload: Workload, machine: Machine) -> float:
    """What the vendor's estimate promises: clock over the fewest whole cycles per sample.

    Small nets ran at 0.08 to 0.38 of it: they waited for their samples.
    """
    return machine.clock_hz.value / fewest_cycles(workload, machine.cores_on_grid)


def _cores(workload: Workload, cycles: int) -> int:
    return sum(pack(layer, cycles).cores for layer in workload.layers)
