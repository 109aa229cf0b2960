"""One additive part of the time; set-up and a streamed training as such parts."""

from dataclasses import dataclass
from typing import Literal

from wse.machine import catalog
from wse.machine.catalog import PIPELINED, Pipelined
from wse.machine.cluster import Cluster
from wse.machine.constants import SETUP, Setup, efficiency
from wse.machine.machine import Sourced, Status
from wse.models.shapes.workload import Workload
from wse.predict.step import Step

Resource = Literal[
    "host compiler", "host link", "fabric", "weights in", "gradients out", "store", "systems"
]


@dataclass(frozen=True)
class Phase:
    """One additive part of the time.

    Attributes:
        name: of a part of set-up it begins with `setup_`.
        resource: what is busy in it.
        time_s: the seconds it takes.
        limit_s: the least that the machine's own numbers allow; 0 where they do not say.
        status: "calibrated" where fitted constants set the time, "sourced" where one was read,
            "derived" where the limit sets it, "assumed" where nothing was published.
    """

    name: str
    resource: Resource
    time_s: float
    limit_s: float
    status: Status


def pipelined_setup(workload: Workload, constants: Pipelined = PIPELINED) -> tuple[Phase, ...]:
    """Set-up in layer-pipelined mode: S0 + c (P / 1e6)^1.5 with S0 split by what logs show.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.0f}" for x in pipelined_setup(dense(width=512))]
    ['setup_front 25', 'setup_job 50', 'setup_program 85', 'setup_rest 13', 'setup_place 13']
    """
    front, job, program = SETUP.front_s, SETUP.pipelined_job_s, SETUP.pipelined_program_s
    rest_s = constants.setup_floor_s.value - front.value - job.value - program.value
    place_s = constants.setup_s_per_mparam_1p5.value * (workload.parameters / 1e6) ** 1.5
    return (
        Phase("setup_front", "host compiler", float(front.value), 0.0, front.status),
        Phase("setup_job", "host compiler", float(job.value), 0.0, job.status),
        Phase("setup_program", "host compiler", float(program.value), 0.0, program.status),
        Phase("setup_rest", "host compiler", rest_s, 0.0, "calibrated"),
        Phase("setup_place", "host compiler", place_s, 0.0, "calibrated"),
    )


def streaming_setup(workload: Workload, searched: bool, setup: Setup = SETUP) -> tuple[Phase, ...]:
    """Set-up in weight streaming, as one log shows it; sending weights grows with parameters.

    Args:
        workload: the model.
        searched: whether the compiler looks for a micro-batch size; not where one is given.
        setup: the constants.

    >>> from wse.workload import dense
    >>> [x.name for x in streaming_setup(dense(), searched=False)][:2]
    ['setup_codegen', 'setup_job']
    """
    times_s = {
        "search": setup.search_s.value,
        "codegen": setup.codegen_s.value,
        "job": setup.job_s.value,
        "prepare": setup.prepare_s.value,
        "weights": setup.weights_s_per_parameter.value * workload.parameters,
        "program": setup.program_s.value,
        "prime": setup.prime_s.value,
    }
    return tuple(
        Phase(f"setup_{name}", "host compiler", float(time_s), 0.0, "calibrated")
        for name, time_s in times_s.items()
        if searched or name != "search"
    )


RESOURCES: dict[str, Resource] = {  # phase of training -> what is busy in it
    "compute": "fabric",
    "weights": "weights in",
    "gradients": "gradients out",
    "update": "store",
    "input": "host link",
    "step": "systems",
}


def streamed_phases(
    workload: Workload, cluster: Cluster, step: Step, release: str, run: tuple[int, int]
) -> tuple[Phase, ...]:
    """The training phases of a run, samples in all and in a step, as if nothing overlapped."""
    samples, batch = run
    busy_s = {name: float(time_s[0]) for name, time_s in step.times.busy_s.items()}
    # The last layer's weights wait on the wafer; without overlap they would come again.
    busy_s["weights in"] += step.upper_s - step.step_s - sum(busy_s.values())
    busy_s["systems"] = step.step_s
    flops = samples * (workload.forward_flops + workload.backward_flops)
    dense = all(layer.density == 1 for layer in workload.layers)
    at_peak_s = flops / (cluster.systems * cluster.machine.peak_fp16_flops_per_s) if dense else 0.0
    statuses: dict[str, Status] = {
        "compute": widest(workload, cluster, release).status,
        "step": "calibrated",
        "input": "derived",
    }
    return tuple(
        Phase(
            name,
            resource,
            samples / batch * busy_s[resource],
            at_peak_s if name == "compute" else 0.0,
            statuses.get(name, "assumed"),
        )
        for name, resource in RESOURCES.items()
    )


def streamed_cautions(workload: Workload, cluster: Cluster, release: str) -> tuple[str, ...]:
    """What lies outside the one model that weight streaming was calibrated on."""
    share = widest(workload, cluster, release)
    tree = cluster.tree or catalog.TREES[cluster.machine.wafer]
    kinds = {layer.kind for layer in workload.layers}
    sparse = any(layer.density < 1 or layer.zeros > 0 for layer in workload.layers)
    low, high = share.interval or (share.value, share.value)
    found = {
        f"efficiency {share.value:.3g} is {share.status} ({low:.2g} to {high:.2g}): "
        f"{share.source}": share.status != "calibrated",
        "efficiencies were calibrated on a transformer: for convolutions nothing was published": (
            "convolution" in kinds
        ),
        "efficiencies were calibrated on a transformer: for dense nets nothing was published but "
        "the time of a small step": kinds == {"dense"},
        "zero weights are assumed to cost nothing": sparse,
        f"{cluster.systems} systems are more than the {tree.most_systems.value:g} planned for": (
            cluster.systems > tree.most_systems.value
        ),
    }
    return tuple(text for text, holds in found.items() if holds)


def widest(workload: Workload, cluster: Cluster, release: str) -> Sourced:
    """The efficiency of the layer with the most work."""
    layer = max(workload.layers, key=lambda x: x.forward_flops)
    return efficiency(cluster.machine.wafer, release, layer.features or layer.inputs)
