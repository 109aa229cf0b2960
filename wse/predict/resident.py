"""Seconds on one layer-pipelined wafer: set-up once, then samples flow through the whole net.

    tau     = a max(1, V / V0) + b W            seconds per sample, V numbers per sample, width W
    T_setup = S0 + c (P / 1e6)^1.5              P parameters
    T       = T_setup + samples tau

a, b, S0 and c are calibrated on four published points (`wse.calibrate`), all with V0 = 1002. What
the machine's own numbers forbid bounds each phase from below: the bits of a sample on all network
ports, and a sample's operations at the peak of all cores.
"""

from wse.machine.catalog import CS2, PIPELINED, Pipelined
from wse.machine.machine import Machine, Status
from wse.models.shapes.workload import Workload
from wse.predict.phase import Phase, Resource, pipelined_setup

WIDTHS = (32, 2048)  # calibrated: the range of Table 4 of the OSTI brief
DEPTH = 8  # calibrated: every net of that table
BATCH = 100  # assumed: below it, filling and draining the pipeline starts to count


def phases(
    workload: Workload,
    machine: Machine,
    samples: int,
    *,
    replicas: int = 1,
    constants: Pipelined = PIPELINED,
) -> tuple[Phase, ...]:
    """The time of a training run by phase, in the order in which it is spent.

    Args:
        workload: the model.
        machine: one system whose wafer the constants were calibrated on.
        samples: samples processed, every epoch counted.
        replicas: copies of the model on the wafer, each with a host channel and its share of the
            samples; all channels together are bounded by the network ports.
        constants: of the model of this module.

    Returns:
        Set-up, input, units. Their times add up to the total.

    Raises:
        ValueError: another wafer than the calibrated one, or a net that the wafer cannot hold.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.1f}" for x in phases(dense(width=512), CS2, 1_000_000)][-3:]
    ['setup_place 12.9', 'input 4.6', 'units 1.1']
    """
    _refuse(workload, machine, constants, replicas)
    values = workload.inputs + workload.outputs
    input_s = constants.input_s_per_sample.value * max(1.0, values / constants.values.value)
    link_s = values * constants.bytes_per_value.value * 8 / machine.host_bits_per_s.value
    flops = workload.forward_flops + workload.backward_flops
    return (
        *pipelined_setup(workload, constants),
        _bounded("input", "host link", samples * input_s / replicas, samples * link_s),
        _bounded(
            "units",
            "fabric",
            samples * constants.unit_s_per_sample.value * workload.width / replicas,
            samples * flops / machine.peak_fp16_flops_per_s,
        ),
    )


def cautions(
    workload: Workload, machine: Machine, batch: int, replicas: int = 1
) -> tuple[str, ...]:
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
        "zeros among the weights: nothing published in this mode, they take as long as others": (
            any(layer.density < 1 for layer in workload.layers)
        ),
        f"{replicas} replicas: nothing published was calibrated on": replicas > 1,
        f"batch {batch} is below {BATCH}: filling and draining the pipeline at every step is not "
        "modelled": batch < BATCH,
        f"{machine.name} is not the catalogue's CS-2: only its limits enter, the calibrated "
        "constants stay": machine != CS2,
    }
    return tuple(text for text, holds in found.items() if holds)


def _bounded(name: str, resource: Resource, time_s: float, limit_s: float) -> Phase:
    status: Status = "calibrated" if time_s >= limit_s else "derived"
    return Phase(name, resource, max(time_s, limit_s), limit_s, status)


def _refuse(workload: Workload, machine: Machine, constants: Pipelined, replicas: int) -> None:
    if replicas < 1:
        raise ValueError(f"replicas is {replicas}; it must be a positive integer: pass replicas=1")
    if machine.wafer != constants.wafer:
        raise ValueError(
            f"machine is {machine.name} with {machine.wafer}; the pipelined constants were "
            f"calibrated on {constants.wafer} and hold for no other: pass machine=wse.CS2()"
        )
    weights_bytes = replicas * workload.parameters * constants.bytes_per_weight.value
    if weights_bytes > machine.sram_bytes.value:
        raise ValueError(
            f"{workload.name} has {workload.parameters} parameters, at least "
            f"{weights_bytes / 1e9:.1f} GB in {replicas} copies; in pipelined mode they must stay "
            f"within the {machine.sram_bytes.value / 1e9:.0f} GB of {machine.wafer}: make the "
            "model smaller, or pass mode='streaming'"
        )
