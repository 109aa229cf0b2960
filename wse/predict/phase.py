"""One additive part of the time, with its interval; set-up and a streamed training as such."""

from collections.abc import Sequence
from dataclasses import dataclass

from wse.machine import catalog
from wse.machine.catalog import PIPELINED, Pipelined
from wse.machine.cluster import Cluster
from wse.machine.constants import LLAMA_PARAMETERS, SETUP, SETUPS, Setup
from wse.machine.machine import Sourced, Status
from wse.models.shapes.workload import Workload
from wse.predict.step import RESOURCES, Resource, Step


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


def pipelined_numbers(constants: Pipelined = PIPELINED) -> dict[str, Sourced]:
    """What each phase of set-up in layer-pipelined mode hangs on."""
    setup = SETUPS[constants.wafer]
    return {
        "setup_front": setup.front_s,
        "setup_job": setup.pipelined_job_s,
        "setup_program": setup.pipelined_program_s,
        "setup_rest": constants.setup_rest_s,
        "setup_place": constants.setup_s_per_mparam_1p5,
    }


def pipelined_setup(workload: Workload, constants: Pipelined = PIPELINED) -> tuple[Phase, ...]:
    """Set-up in layer-pipelined mode: S0 + c (P / 1e6)^1.5 with S0 split by what logs show.

    Beyond the most parameters that c was calibrated on, placing grows with P, or with a power of it
    between 0.5 and 1.5: nobody published how long larger nets were compiled. Of WSE-1 one
    compilation is known, of FC-MNIST in 25 s; front and placing of WSE-2 together give 26.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.0f}" for x in pipelined_setup(dense(width=512))]
    ['setup_front 25', 'setup_job 50', 'setup_program 85', 'setup_rest 13', 'setup_place 13']
    """
    most, parts = constants.most_parameters.value, pipelined_numbers(constants)
    law = min(workload.parameters, most) / 1e6
    beyond = max(1.0, workload.parameters / most)
    pairs = zip(parts.pop("setup_place").ends, constants.beyond_power.ends, strict=True)
    place_s = [c * law**1.5 * beyond**power for c, power in pairs]
    return (
        *(spanned(name, "host compiler", part.ends, part.status) for name, part in parts.items()),
        spanned(
            "setup_place",
            "host compiler",
            place_s,
            constants.setup_s_per_mparam_1p5.status if beyond == 1 else "assumed",
        ),
    )


def streaming_numbers(workload: Workload, setup: Setup = SETUP) -> dict[str, Sourced]:
    """What each phase of set-up in weight streaming hangs on."""
    return {
        "setup_front": setup.front_s,
        "setup_search": setup.search_s,
        "setup_codegen": setup.codegen_s,
        "setup_job": setup.job_s,
        "setup_prepare": setup.prepare_s,
        "setup_weights": setup.weights_s_per_parameter,
        "setup_program": setup.program_s,
        "setup_prime": setup.prime_s if workload.looks_up else setup.prime_other_s,
    }


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
    count = workload.parameters
    powers = {"setup_search": setup.search_power, "setup_codegen": setup.codegen_power}
    grown = {name: (count / LLAMA_PARAMETERS) ** power.value for name, power in powers.items()}
    found: list[Phase] = []
    for name, number in streaming_numbers(workload, setup).items():
        times_s = [x * grown.get(name, 1.0) for x in number.ends]
        if name == "setup_weights":
            pairs = zip(setup.weights_s.ends, number.ends, strict=True)
            times_s = [x + y * count for x, y in pairs]
        if searched or name != "setup_search":
            found.append(spanned(name, "host compiler", times_s, number.status))
    return tuple(found)


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
    _, low, high = share.ends
    found = {
        f"efficiency {share.value:.3g} is {share.status} ({low:.2g} to {high:.2g}): "
        f"{share.source}": share.status != "calibrated",
        "convolutions: by their layouts and what kernels of transformers reach of these, as for "
        "convolutions nothing was published": "convolution" in kinds,
        "efficiencies were calibrated on transformers: for dense nets nothing was published but "
        "the time of a small step": kinds == {"dense"},
        "the host's rate of making samples is not known: what comes as 32-bit numbers at 0.125 to "
        "2 GB/s may bind": not workload.looks_up and workload.tokens > 1,
        "zero weights are assumed to cost nothing": sparse,
        f"{cluster.systems} systems are more than the {tree.most_systems.value:g} planned for": (
            cluster.systems > tree.most_systems.value
        ),
    }
    return tuple(text for text, holds in found.items() if holds)


def setup_of(cluster: Cluster) -> Setup:
    """The constants of set-up for a cluster's wafer."""
    return SETUPS.get(cluster.machine.wafer, SETUP)
