"""Dense layers packed on the grid of cores, as the vendor's own estimate counts.

A layer of C inputs and K units on c x k parts of the grid takes, by the ISPD 2020 contest's model,

    cycles per sample = ceil(C / c) ceil(K / k)         cores = 3 k (c + 1)

three for forward, delta and weight update, and a row for input and output. All layers work at once
on different samples, so the slowest sets the rate: f / cycles samples per second.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from wse._numbers import positive
from wse.machine.catalog import PIPELINED, Pipelined
from wse.machine.machine import Machine
from wse.models.shapes.workload import Layer, Workload
from wse.predict import resident


@dataclass(frozen=True)
class Packed:
    """The smallest rectangle of one layer that keeps to so many cycles per sample.

    Attributes:
        cycles: that it takes, per sample.
        cores: of its rectangle.

    >>> from wse import packing
    >>> packing.Packed(cycles=464, cores=3660).cores
    3660
    """

    cycles: int
    cores: int


def pack(layer: Layer, cycles: int) -> Packed:
    """The fewest cores on which a dense layer takes at most so many cycles per sample.

    >>> sum(pack(Layer(f"{c}", c, k, 0), 464).cores for c, k in ((784, 500), (500, 300), (300, 10)))
    3660
    """
    positive("cycles", cycles, "pass cycles=464")
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


@dataclass(frozen=True)
class Promise:
    """What the vendor's compiler would promise of a placement, and what real runs made of it.

    Attributes:
        cycles: of the slowest kernel, per sample; of computing or of passing on, whichever is more.
        cycles_interval: the least and the most that they may be.
        samples_per_s: the clock over these cycles.
        measured: rate of real runs over such promises: the least, the usual and the most.

    >>> from wse import catalog, packing, workloads
    >>> round(packing.promised(workloads.get("FC-MNIST"), catalog.CS2).samples_per_s)
    1531532
    """

    cycles: float
    cycles_interval: tuple[float, float]
    samples_per_s: float
    measured: tuple[float, float, float]

    def summary(self) -> dict[str, float]:
        """The numbers by name."""
        return {
            "promised_cycles": self.cycles,
            "promised_samples_per_s": self.samples_per_s,
            "expected_of_promise_samples_per_s": self.measured[1] * self.samples_per_s,
        }

    def __str__(self) -> str:
        """One line."""
        low, _, high = self.measured
        fewest, most = self.cycles_interval
        return (
            f"the vendor's own estimate would be about {self.cycles:,.0f} cycles of the slowest "
            f"kernel ({fewest:,.0f} to {most:,.0f}), {self.samples_per_s:,.0f} samples/s; runs "
            f"of small nets, bound by their input, reached {low:.2g} to {high:.2g} of such: "
            f"{low * self.samples_per_s:,.0f} to {high * self.samples_per_s:,.0f}"
        )


def promised(workload: Workload, machine: Machine, constants: Pipelined = PIPELINED) -> Promise:
    """The vendor's own estimate of a placement: the clock over the slowest kernel's cycles.

    It does not fill the wafer with a small net: FC-MNIST got 464 and 669 cycles where a few would
    do, about one for each unit of its widest layer. Larger nets are bound by their operations
    (`wse.predict.resident.products_s`), and all by passing their numbers on.

    >>> from wse.machine.catalog import CS2
    >>> from wse.models.shapes import get
    >>> f"{promised(get('FC-MNIST'), CS2).cycles:.0f}"
    '555'
    """
    clock_hz = machine.clock_hz.value
    passed = constants.transmission_s_per_value.value * clock_hz * workload.entering
    found = max(
        constants.cycles_per_unit.value * resident.units(workload),
        resident.products_s(workload, machine, constants) * clock_hz,
        passed,
    )
    usual, low, high = constants.measured_over_promised.ends
    return Promise(found, (found / 1.5, found * 1.5), clock_hz / found, (low, usual, high))


def _cores(workload: Workload, cycles: int) -> int:
    return sum(pack(layer, cycles).cores for layer in workload.layers)
