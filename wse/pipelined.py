"""Seconds on one layer-pipelined wafer: set-up once, then samples flow through the whole net.

    tau     = a max(1, V / V0) + b W            seconds per sample, V numbers per sample, width W
    T_setup = S0 + c (P / 1e6)^1.5              P parameters
    T       = T_setup + samples tau

a, b, S0 and c are calibrated on four published points (`wse.calibrate`), all with V0 = 1002. What
the machine's own numbers forbid bounds each phase from below: the bits of a sample on all network
ports, and a sample's operations at the peak of all cores.
"""

from dataclasses import dataclass
from typing import Literal

from wse.catalog import CS2, PIPELINED, Pipelined
from wse.machine import Machine, Status
from wse.workload import Workload

Resource = Literal["host compiler", "host link", "fabric"]

WIDTHS = (32, 2048)  # calibrated: the range of Table 4 of the OSTI brief
DEPTH = 8  # calibrated: every net of that table
BATCH = 100  # assumed: below it, filling and draining the pipeline starts to count


@dataclass(frozen=True)
class Phase:
    """One additive part of the time.

    Attributes:
        name: "setup_floor", "setup_place", "input" or "units".
        resource: what is busy in it.
        time_s: the seconds it takes.
        limit_s: the least that the machine's own numbers allow; 0 where they do not say.
        status: "calibrated" where fitted constants set the time, "derived" where the limit does.
    """

    name: str
    resource: Resource
    time_s: float
    limit_s: float
    status: Status


def phases(
    workload: Workload, machine: Machine, samples: int, constants: Pipelined = PIPELINED
) -> tuple[Phase, ...]:
    """The time of a training run by phase, in the order in which it is spent.

    Args:
        workload: the model.
        machine: one system whose wafer the constants were calibrated on.
        samples: samples processed, every epoch counted.
        constants: of the model of this module.

    Returns:
        Set-up's floor, set-up's placement, input, units. Their times add up to the total.

    Raises:
        ValueError: another wafer than the calibrated one, or a net that the wafer cannot hold.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.1f}" for x in phases(dense(width=512), CS2, 1_000_000)]
    ['setup_floor 172.9', 'setup_place 12.9', 'input 4.6', 'units 1.1']
    """
    _refuse(workload, machine, constants)
    place_s = constants.setup_s_per_mparam_1p5.value * (workload.parameters / 1e6) ** 1.5
    values = workload.inputs + workload.outputs
    input_s = constants.input_s_per_sample.value * max(1.0, values / constants.values.value)
    link_s = values * constants.bytes_per_value.value * 8 / machine.host_bits_per_s.value
    flops = workload.forward_flops + workload.backward_flops
    return (
        Phase("setup_floor", "host compiler", constants.setup_floor_s.value, 0.0, "calibrated"),
        Phase("setup_place", "host compiler", place_s, 0.0, "calibrated"),
        _bounded("input", "host link", samples * input_s, samples * link_s),
        _bounded(
            "units",
            "fabric",
            samples * constants.unit_s_per_sample.value * workload.width,
            samples * flops / machine.peak_fp16_flops_per_s,
        ),
    )


def cautions(workload: Workload, machine: Machine, batch: int) -> tuple[str, ...]:
    """What lies outside the four nets calibrated on, one sentence each; none for those nets.

    >>> from wse.workload import dense
    >>> cautions(dense(width=512), CS2, batch=100)
    ()
    """
    values = workload.inputs + workload.outputs
    low, high = WIDTHS
    found = {
        f"width {workload.width} lies outside the calibrated {low} to {high} units": (
            not low <= workload.width <= high
        ),
        f"depth {workload.depth} is not the calibrated {DEPTH} hidden layers": (
            workload.depth != DEPTH
        ),
        "the model is no plain chain of dense layers, and only such nets were calibrated": (
            not workload.is_dense_chain
        ),
        f"{values} numbers per sample are not the calibrated {PIPELINED.values.value}: more are "
        "assumed to take longer in proportion, fewer to take no less": (
            values != PIPELINED.values.value
        ),
        f"batch {batch} is below {BATCH}: filling and draining the pipeline at every step is not "
        "modelled": batch < BATCH,
        f"{machine.name} is not the catalogue's CS-2: only its limits enter, the calibrated "
        "constants stay": machine != CS2,
    }
    return tuple(text for text, holds in found.items() if holds)


def _bounded(name: str, resource: Resource, time_s: float, limit_s: float) -> Phase:
    status: Status = "calibrated" if time_s >= limit_s else "derived"
    return Phase(name, resource, max(time_s, limit_s), limit_s, status)


def _refuse(workload: Workload, machine: Machine, constants: Pipelined) -> None:
    if machine.wafer != constants.wafer:
        raise ValueError(
            f"machine is {machine.name} with {machine.wafer}; the pipelined constants were "
            f"calibrated on {constants.wafer} and hold for no other: pass machine=wse.CS2()"
        )
    weights_bytes = workload.parameters * constants.bytes_per_weight.value
    if weights_bytes > machine.sram_bytes.value:
        raise ValueError(
            f"{workload.name} has {workload.parameters} parameters, at least "
            f"{weights_bytes / 1e9:.1f} GB; in pipelined mode they must stay within the "
            f"{machine.sram_bytes.value / 1e9:.0f} GB of {machine.wafer}: make the model smaller "
            "(weight streaming is not built yet)"
        )
