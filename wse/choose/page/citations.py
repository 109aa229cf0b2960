"""Where each number of the page comes from, numbered as they are first used."""

from wse.machine.catalog import PIPELINED, RESIDENT
from wse.machine.constants import STREAMING
from wse.machine.machine import Sourced
from wse.predict.phase import pipelined_numbers, setup_of, streaming_numbers
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
    if estimate.step is None:
        constants = RESIDENT.get(machine.wafer, PIPELINED)
        setup = pipelined_numbers(constants)
        training = {
            "input": (constants.input_s_per_sample, machine.host_bits_per_s),
            "units": (constants.unit_s_per_sample, machine.clock_hz),
        }
        return (setup[name],) if name in setup else training.get(name, ())
    setup = streaming_numbers(estimate.workload, setup_of(estimate.cluster))
    training = {
        "compute": (estimate.step.share, machine.clock_hz, machine.fp16_flops_per_cycle),
        "weights": (STREAMING.weight_bytes, machine.host_bits_per_s),
        "gradients": (STREAMING.gradient_bytes, machine.host_bits_per_s),
        "update": (STREAMING.gradient_bytes,),
        "input": (STREAMING.input_bytes_per_s, STREAMING.input_value_bytes),
        "step": (STREAMING.step_s,),
    }
    return (setup[name],) if name in setup else training.get(name, ())
