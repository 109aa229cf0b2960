"""What no machine can beat: its links, its memory and its arithmetic, whatever a model says.

B samples on N systems take at least

    max(B bytes / (N link), B FLOP / (N R))        bytes of a sample on its way in, R the dense peak

Every answer of this room is held against these: a time below them is raised to them.
"""

from wse.machine.catalog import PIPELINED, STORES
from wse.machine.cluster import Cluster
from wse.machine.machine import Machine
from wse.models.shapes.workload import Workload

LEAST_BYTES = 1.0  # of a number on its way in: pixels come in bytes, nothing comes in less


def least_s(
    workload: Workload,
    cluster: Cluster,
    samples: int | float,
    *,
    training: bool = True,
    value_bytes: float = LEAST_BYTES,
) -> dict[str, float]:
    """The seconds below which links and arithmetic do not let so many samples through.

    Zeros among weights and activations take no arithmetic.

    Args:
        workload: the model.
        cluster: the machine and how many.
        samples: of all systems together.
        training: forward and backward; else forward alone.
        value_bytes: in which a number of a sample comes in.

    Returns:
        Seconds by resource: "host link", "fabric".

    >>> from wse.machine.cluster import CS2
    >>> from wse.models.shapes.workload import dense
    >>> f"{least_s(dense(width=512), CS2(), 1e6)['host link']:.4f}"
    '0.0067'
    """
    each = samples / cluster.systems
    values = workload.entering if training else workload.inputs
    machine = cluster.machine
    flops = sum(
        (x.forward_flops + training * x.backward_flops) * x.density * (1 - x.zeros)
        for x in workload.layers
    )
    first = workload.layers[0]
    flops -= training * first.of_inputs_flops * first.density * (1 - first.zeros)
    return {
        "host link": each * values * value_bytes * 8 / machine.host_bits_per_s.value,
        "fabric": each * flops / machine.peak_fp16_flops_per_s,
    }


def check_resident(workload: Workload, cluster: Cluster, copies: int = 1) -> None:
    """Refuse a model whose weights do not stay on the wafers that hold one copy each.

    Raises:
        ValueError: more bytes of weights than memory.
    """
    machine = cluster.machine
    weights_bytes = copies * workload.parameters * PIPELINED.bytes_per_weight.value
    if weights_bytes > machine.sram_bytes.value:
        raise ValueError(
            f"{workload.name} has {workload.parameters} parameters, at least "
            f"{weights_bytes / 1e9:.1f} GB in {copies} copies; in pipelined mode they must stay "
            f"within the {machine.sram_bytes.value / 1e9:.0f} GB of {machine.wafer}: make the "
            f"model smaller, or pass {streamed(machine)}"
        )


def streamed(machine: Machine) -> str:
    """What to pass for weight streaming in place of what was asked."""
    never = STORES.get(machine.wafer) == ()
    return "machine=wse.CS2(mode='streaming')" if never else "mode='streaming'"
