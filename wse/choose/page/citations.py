"""Where each number of the page comes from, numbered as they are first used."""

from wse.machine.catalog import PIPELINED
from wse.machine.constants import SETUP, STREAMING, Setup
from wse.machine.machine import Sourced
from wse.predict.phase import setup_of
from wse.predict.result import Estimate


class Sources:
    """A list of sources that grows as the page is written."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, source: str) -> int:
        """The number of a source; a new one at its first use."""
        return self._numbers.setdefault(source, len(self._numbers) + 1)

    def of(self, *found: Sourced) -> list[int]:
        """The numbers of what some sourced numbers say of themselves."""
        return [self.number(words(one)) for one in found]

    @property
    def listed(self) -> list[str]:
        """All sources in the order of their numbers."""
        return [*self._numbers]


def words(number: Sourced) -> str:
    """A number's status, source and note."""
    note = f" ({number.note})" if number.note else ""
    return f"{number.status}: {number.source}{note}"


def of_phase(name: str, estimate: Estimate) -> tuple[Sourced, ...]:
    """The numbers that the time of one phase hangs on."""
    machine = estimate.cluster.machine
    if name.startswith("setup_"):
        return _of_setup(name.removeprefix("setup_"), estimate, setup_of(estimate.cluster))
    if estimate.step is None:
        resident = {
            "input": (PIPELINED.input_s_per_sample, machine.host_bits_per_s),
            "units": (PIPELINED.unit_s_per_sample, machine.clock_hz),
        }
        return resident.get(name, ())
    streamed = {
        "compute": (estimate.step.share, machine.clock_hz, machine.fp16_flops_per_cycle),
        "weights": (STREAMING.weight_bytes, machine.host_bits_per_s),
        "gradients": (STREAMING.gradient_bytes, machine.host_bits_per_s),
        "update": (STREAMING.gradient_bytes,),
        "input": (STREAMING.input_bytes_per_s, STREAMING.input_value_bytes),
        "step": (STREAMING.step_s,),
    }
    return streamed.get(name, ())


def _of_setup(name: str, estimate: Estimate, streamed: Setup) -> tuple[Sourced, ...]:
    if estimate.step is None:
        resident = {
            "front": SETUP.front_s,
            "job": SETUP.pipelined_job_s,
            "program": SETUP.pipelined_program_s,
            "rest": PIPELINED.setup_rest_s,
            "place": PIPELINED.setup_s_per_mparam_1p5,
        }
        return (resident[name],) if name in resident else ()
    found = {
        "front": streamed.front_s,
        "search": streamed.search_s,
        "codegen": streamed.codegen_s,
        "job": streamed.job_s,
        "prepare": streamed.prepare_s,
        "weights": streamed.weights_s_per_parameter,
        "program": streamed.program_s,
        "prime": streamed.prime_s
        if estimate.workload.layers[0].kind == "lookup"
        else streamed.prime_other_s,
    }
    return (found[name],) if name in found else ()
