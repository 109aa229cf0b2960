"""Machines put to work: how many, and in which mode."""

from dataclasses import dataclass

from wse import catalog
from wse.machine import Machine


@dataclass(frozen=True)
class Cluster:
    """Systems of one kind and the mode in which they execute a model.

    Attributes:
        machine: the specification of one system.
        systems: how many work on one model. Only 1 is estimated so far.
        mode: "pipelined": the whole model stays on the wafer and samples flow through it.

    Raises:
        ValueError: a number of systems or a mode that is not built yet.
    """

    machine: Machine
    systems: int = 1
    mode: str = "pipelined"

    def __post_init__(self) -> None:
        if self.systems < 1:
            raise ValueError(
                f"systems is {self.systems}; it must be a positive integer: pass systems=1"
            )
        if self.mode == "streaming":
            raise ValueError(
                "mode is 'streaming'; weight streaming is not built yet: pass mode='pipelined'"
            )
        if self.mode != "pipelined":
            raise ValueError(f"mode is {self.mode!r}; it must be 'pipelined': pass that")
        if self.systems != 1:
            raise ValueError(
                f"systems is {self.systems}; the pipelined estimate holds for one system, "
                "because its constants were measured on one: pass systems=1"
            )


def CS2(systems: int = 1, mode: str = "pipelined") -> Cluster:
    """CS-2 systems with the published numbers of `wse.catalog.CS2`.

    Args:
        systems: how many; only 1 so far.
        mode: how they execute; only "pipelined" so far.

    Returns:
        The cluster, frozen.

    Raises:
        ValueError: a number of systems or a mode that is not built yet.

    >>> CS2().machine.cores.value
    850000
    """
    return Cluster(catalog.CS2, systems, mode)
