"""One additive part of the time, and set-up as such parts."""

from dataclasses import dataclass
from typing import Literal

from wse.catalog import PIPELINED, Pipelined
from wse.constants import SETUP, Setup
from wse.machine import Status
from wse.workload import Workload

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


def pipelined_setup(
    workload: Workload, constants: Pipelined = PIPELINED, setup: Setup = SETUP
) -> tuple[Phase, ...]:
    """Set-up in layer-pipelined mode: S0 + c (P / 1e6)^1.5 with S0 split by what logs show.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.0f}" for x in pipelined_setup(dense(width=512))]
    ['setup_front 25', 'setup_job 50', 'setup_program 85', 'setup_rest 13', 'setup_place 13']
    """
    front, job, program = setup.front_s, setup.pipelined_job_s, setup.pipelined_program_s
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
    weights_s = setup.weights_s_per_parameter.value * workload.parameters
    times_s = {
        "search": setup.search_s.value,
        "codegen": setup.codegen_s.value,
        "job": setup.job_s.value,
        "prepare": setup.prepare_s.value,
        "weights": weights_s,
        "program": setup.program_s.value,
        "prime": setup.prime_s.value,
    }
    return tuple(
        Phase(f"setup_{name}", "host compiler", float(time_s), 0.0, "calibrated")
        for name, time_s in times_s.items()
        if searched or name != "search"
    )
