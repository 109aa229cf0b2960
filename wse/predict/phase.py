"""One additive part of the time, with its interval; set-up and a streamed training as such."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wse.machine import catalog
from wse.machine.catalog import PIPELINED, Pipelined
from wse.machine.cluster import Cluster
from wse.machine.constants import LLAMA_PARAMETERS, SETUP, SETUPS, Setup
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
        interval_s: the least and the most seconds that it may take.

    Raises:
        ValueError: a time outside its interval, or below its limit.
    """

    name: str
    resource: Resource
    time_s: float
    limit_s: float
    status: Status
    interval_s: tuple[float, float]

    def __post_init__(self) -> None:
        low, high = self.interval_s
        if not (self.limit_s <= low * (1 + 1e-9) and low <= self.time_s <= high):
            raise ValueError(
                f"phase {self.name} takes {self.time_s} s in {self.interval_s} s with a limit of "
                f"{self.limit_s} s; they must be in order: correct the phase"
            )


def spanned(
    name: str,
    resource: Resource,
    times_s: Sequence[float],
    status: Status = "calibrated",
    limit_s: float = 0.0,
) -> Phase:
    """A phase with the time that it takes, at the fast ends and at the slow, raised to the limit.

    A fast end that is slower than the usual time, as where more is waited for, is none. Where the
    limit is the longer one, it sets the time, and the status is "derived".
    """
    usual, fast, slow = (max(float(time_s), limit_s) for time_s in times_s)
    status = "derived" if times_s[0] < limit_s else status
    ends = min(usual, fast), max(usual, slow)
    return Phase(name, resource, usual, limit_s, status, ends)


def _ends(number: Sourced) -> tuple[float, float, float]:
    """A number of seconds, and both its ends."""
    low, high = number.interval or (number.value, number.value)
    return float(number.value), float(low), float(high)


def pipelined_setup(workload: Workload, constants: Pipelined = PIPELINED) -> tuple[Phase, ...]:
    """Set-up in layer-pipelined mode: S0 + c (P / 1e6)^1.5 with S0 split by what logs show.

    Beyond the most parameters that c was calibrated on, placing grows with P, or with a power of it
    between 0.5 and 1.5: nobody published how long larger nets were compiled.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.0f}" for x in pipelined_setup(dense(width=512))]
    ['setup_front 25', 'setup_job 50', 'setup_program 85', 'setup_rest 13', 'setup_place 13']
    """
    most = constants.most_parameters.value
    law = min(workload.parameters, most) / 1e6
    beyond = max(1.0, workload.parameters / most)
    place_s = [
        c * law**1.5 * beyond**power
        for c, power in zip(
            _ends(constants.setup_s_per_mparam_1p5), _ends(constants.beyond_power), strict=True
        )
    ]
    parts = {
        "front": SETUP.front_s,
        "job": SETUP.pipelined_job_s,
        "program": SETUP.pipelined_program_s,
        "rest": constants.setup_rest_s,
    }
    return (
        *(
            spanned(f"setup_{name}", "host compiler", _ends(part), part.status)
            for name, part in parts.items()
        ),
        spanned(
            "setup_place", "host compiler", place_s, "calibrated" if beyond == 1 else "assumed"
        ),
    )


def streaming_setup(workload: Workload, searched: bool, setup: Setup = SETUP) -> tuple[Phase, ...]:
    """Set-up in weight streaming: searching and making programs grow with powers of P.

    Args:
        workload: the model, of P parameters.
        searched: whether the compiler looks for a micro-batch size; not where one is given.
        setup: the constants, of a wafer.

    >>> from wse.workload import dense
    >>> [x.name for x in streaming_setup(dense(), searched=False)][:2]
    ['setup_front', 'setup_codegen']
    """
    size = workload.parameters / LLAMA_PARAMETERS
    sent, each = _ends(setup.weights_s), _ends(setup.weights_s_per_parameter)
    prime = setup.prime_s if workload.layers[0].kind == "lookup" else setup.prime_other_s
    found: dict[str, tuple[Sequence[float], Status]] = {
        "front": (_ends(setup.front_s), setup.front_s.status),
        "search": (
            [x * size**setup.search_power.value for x in _ends(setup.search_s)],
            "calibrated",
        ),
        "codegen": (
            [x * size**setup.codegen_power.value for x in _ends(setup.codegen_s)],
            "calibrated",
        ),
        "job": (_ends(setup.job_s), "calibrated"),
        "prepare": (_ends(setup.prepare_s), "calibrated"),
        "weights": (
            [x + y * workload.parameters for x, y in zip(sent, each, strict=True)],
            "calibrated",
        ),
        "program": (_ends(setup.program_s), "calibrated"),
        "prime": (_ends(prime), prime.status),
    }
    return tuple(
        spanned(f"setup_{name}", "host compiler", *what)
        for name, what in found.items()
        if searched or name != "search"
    )


RESOURCES: dict[str, Resource] = {  # phase of training -> what the step waits for in it
    "compute": "fabric",
    "weights": "weights in",
    "gradients": "gradients out",
    "update": "store",
    "input": "host link",
    "step": "systems",
}


def streamed_phases(steps: tuple[float, tuple[Step, ...]], least_s: float) -> tuple[Phase, ...]:
    """The training phases of a run, by what the steps wait for: together the time of training.

    Args:
        steps: their number, and one step as it is, at the fast and at the slow ends.
        least_s: of compute, what the arithmetic of the machine allows.
    """
    count, made = steps
    waits = [one.exposed_s() for one in made]
    statuses: dict[str, Status] = {
        "compute": made[0].share.status,
        "step": "calibrated",
        "input": "assumed",
    }
    return tuple(
        spanned(
            name,
            resource,
            [count * one[name] for one in waits],
            statuses.get(name, "assumed"),
            least_s if name == "compute" else 0.0,
        )
        for name, resource in RESOURCES.items()
    )


def streamed_cautions(workload: Workload, cluster: Cluster, share: Sourced) -> tuple[str, ...]:
    """What lies outside the models that weight streaming was calibrated on, and the main share."""
    tree = cluster.tree or catalog.TREES[cluster.machine.wafer]
    kinds = {layer.kind for layer in workload.layers}
    sparse = any(layer.density < 1 or layer.zeros > 0 for layer in workload.layers)
    low, high = share.interval or (share.value, share.value)
    found = {
        f"efficiency {share.value:.3g} is {share.status} ({low:.2g} to {high:.2g}): "
        f"{share.source}": share.status != "calibrated",
        "convolutions: by their layouts and what kernels of transformers reach of these, as for "
        "convolutions nothing was published": "convolution" in kinds,
        "efficiencies were calibrated on transformers: for dense nets nothing was published but "
        "the time of a small step": kinds == {"dense"},
        "the host's rate of making samples is not known: what comes as 32-bit numbers at 0.125 to "
        "2 GB/s may bind": workload.layers[0].kind != "lookup" and workload.tokens > 1,
        "zero weights are assumed to cost nothing": sparse,
        f"{cluster.systems} systems are more than the {tree.most_systems.value:g} planned for": (
            cluster.systems > tree.most_systems.value
        ),
    }
    return tuple(text for text, holds in found.items() if holds)


def setup_of(cluster: Cluster) -> Setup:
    """The constants of set-up for a cluster's wafer."""
    return SETUPS.get(cluster.machine.wafer, SETUP)
