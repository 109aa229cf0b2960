"""Convolutions on the wafer's grid: the share of the dense peak that their layouts leave them.

b samples at once take, each convolution in its own cheapest layout or in that of the one before it,

    cycles = compute or weights + halo + sums over channels + sums of gradients + norm + move

At the peak the same operations would take less. Their share is the one over the other, times what
kernels reach of that (`wse.machine.share`). b is rounded down to a power of
two: a sweep asks for few.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

from wse.layout.cost import norm_cycles
from wse.layout.pieces import Shape, Wafer
from wse.layout.pipeline import Kernel, pipeline
from wse.layout.plan import Placed, candidates, fitting, shortest
from wse.machine.machine import Machine
from wse.models.shapes.workload import Workload

# Of numbers of parts that are tried: 4 to 16 % more cycles than `wse.layout.plan` finds.
RATIO = 1.5
PARTS = ("compute", "halo", "channels", "gradients", "norm", "move")


@dataclass(frozen=True)
class Laid:
    """A convolution in its layout, with all samples that are on a system at once.

    Attributes:
        name: of the layer.
        placed: its loops, laid out: several where its filters meet several images.
        norm_cycles: of the sums and broadcasts of a norm over the batch; 0 without.
    """

    name: str
    placed: tuple[Placed, ...]
    norm_cycles: int

    @property
    def cycles(self) -> int:
        """Forward and backward."""
        return sum(x.cost.cycles + x.relayout_cycles for x in self.placed) + self.norm_cycles

    @property
    def multiplies(self) -> int:
        """Multiply-adds, forward and backward."""
        return 3 * sum(x.shape.multiplies for x in self.placed)

    def parts(self) -> dict[str, int]:
        """The cycles by what they are spent on: `PARTS`."""
        costs = [x.cost for x in self.placed]
        found = {
            "halo": sum(x.halo_cycles for x in costs),
            "channels": sum(x.reduce_cycles for x in costs),
            "gradients": sum(x.gradient_cycles for x in costs),
            "norm": self.norm_cycles,
            "move": sum(x.relayout_cycles for x in self.placed),
        }
        return {"compute": self.cycles - sum(found.values()), **found}


def laid_out(workload: Workload, machine: Machine, held: int) -> tuple[Laid, ...]:
    """The convolutions of a workload in their layouts; those of unknown loops are left out.

    Args:
        workload: the model.
        machine: whose grid it is.
        held: samples at once on one system; 0: not one fits, and nothing is laid out.
    """
    samples = 2 ** int(log2(max(1, held)))
    layers = [x for x in workload.layers if held and x.grid and x.kind == "convolution"]
    chain = tuple(
        replace(one, name=f"{i}", batch=one.batch * samples)
        for i, layer in enumerate(layers)
        for one in layer.grid
    )
    placed: dict[str, list[Placed]] = {}
    for one in _placed(chain, Wafer.of(machine)) if chain else ():
        placed.setdefault(one.shape.name, []).append(one)
    return tuple(
        Laid(layer.name, (*here,), sum(norm_cycles(x.shape, x.layout) for x in here) * layer.normed)
        for i, layer in enumerate(layers)
        if len(here := placed.get(f"{i}", [])) == len(layer.grid)
    )


def shares(workload: Workload, machine: Machine, held: int) -> Mapping[str, float]:
    """By layer, what its layout leaves of the machine's dense peak; nothing of the kernels yet."""
    per_cycle = machine.peak_fp16_flops_per_s / machine.clock_hz.value
    return {
        one.name: 2 * one.multiplies / (per_cycle * one.cycles)
        for one in laid_out(workload, machine, held)
    }


def pipelined_cycles(workload: Workload, machine: Machine) -> int | None:
    """Cycles a sample of the slowest layer where all lie on the wafer at once, each a rectangle.

    Returns:
        Those of `wse.layout.pipeline`; None of layers of unknown loops, of volumes, of which the
        contest has no kernel, and of nets that it places nowhere.

    >>> from wse.machine.catalog import CS2
    >>> from wse.models.shapes import get
    >>> pipelined_cycles(get("U-Net-Severstal"), CS2)
    41184
    """
    kernels: list[Kernel] = []
    for layer in workload.layers:
        if layer.grid and all(len(one.size) == 2 for one in layer.grid):
            kernels += [replace(Kernel.of(one), name="") for one in layer.grid]
        elif layer.kind == "dense" and layer.forward_flops == 2 * layer.inputs * layer.outputs:
            kernels.append(Kernel("", layer.inputs, layer.outputs))
        elif layer.forward_flops:
            return None
    return _fewest(tuple(kernels), Wafer.of(machine)) if kernels else None


@lru_cache(maxsize=64)
def _fewest(kernels: tuple[Kernel, ...], wafer: Wafer) -> int | None:
    try:
        return pipeline(kernels, wafer).cycles_per_sample
    except ValueError:  # they fit nowhere
        return None


@lru_cache(maxsize=64)
def _placed(chain: tuple[Shape, ...], wafer: Wafer) -> tuple[Placed, ...]:
    path: tuple[Placed, ...] = ()
    for shape in chain:
        own = fitting(shape, wafer, 1, RATIO)
        # One that moves nothing may be cheaper than the best.
        near = [x.layout for x in path[-1:] if len(x.layout.size) == len(shape.size)]
        options = [own, *candidates([shape], [near], wafer)]
        found = [shortest([shape], [some], wafer, path) for some in options if some]
        if found:
            path = min(found, key=lambda one: one[-1].cost.cycles + one[-1].relayout_cycles)
    return path
