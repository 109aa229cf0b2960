"""What stands around the systems: the store of the weights, the tree of links, the whole site."""

from dataclasses import dataclass
from math import ceil, log2

from wse.machine.machine import Machine, Sourced, check_numbers, numbers

UNITS: dict[str, str] = {  # the unit that the name of each field promises
    "capacity_bytes": "B",
    "bytes_per_s": "B/s",
    "optimizer_params_per_s": "params/s",
    "bytes_per_parameter": "B",
    "level_latency_s": "s",
    "most_systems": "count",
    "systems": "count",
    "cores": "count",
    "fp16_flops_per_s": "FLOP/s",
    "internal_bits_per_s": "bit/s",
    "host_cores": "count",
}


@dataclass(frozen=True)
class Store:
    """MemoryX: where weights and the optimizer's state wait, and where weights are updated.

    Attributes:
        name: what tables call it.
        capacity_bytes: what it holds.
        bytes_per_s: what it sends, and takes in, at once; SwarmX makes the copies.
        optimizer_params_per_s: parameters that it updates per second.
        bytes_per_parameter: what it keeps of each parameter: weight and optimizer's state.

    Raises:
        ValueError: a number that is not positive, or in another unit than its name promises.
    """

    name: str
    capacity_bytes: Sourced
    bytes_per_s: Sourced
    optimizer_params_per_s: Sourced
    bytes_per_parameter: Sourced

    def __post_init__(self) -> None:
        check_numbers(self.name, numbers(self), UNITS)

    @property
    def most_parameters(self) -> int:
        """Parameters that fit, their optimizer's state included."""
        return int(self.capacity_bytes.value // self.bytes_per_parameter.value)


@dataclass(frozen=True)
class Tree:
    """SwarmX: a binary tree that copies weights on the way out and adds gradients on the way back.

    Attributes:
        name: what tables call it.
        level_latency_s: seconds that one level adds, once per transfer.
        most_systems: systems that it was planned for.

    Raises:
        ValueError: a number that is not positive, or in another unit than its name promises.
    """

    name: str
    level_latency_s: Sourced
    most_systems: Sourced

    def __post_init__(self) -> None:
        check_numbers(self.name, numbers(self), UNITS)


def levels(systems: int) -> int:
    """Levels of a binary tree over so many systems: ceil(log2 N).

    >>> [levels(n) for n in (1, 2, 64, 192)]
    [0, 1, 6, 8]
    """
    return ceil(log2(systems))


@dataclass(frozen=True)
class Installation:
    """A whole site, as published.

    Attributes:
        name: the site's name.
        machine: the specification of one system.
        systems: how many systems.
        cores: of all of them, as the vendor counts.
        fp16_flops_per_s: the advertised half-precision rate, zeros skipped included.
        capacity_bytes: memory for parameters.
        internal_bits_per_s: bandwidth between the systems and their stores.
        host_cores: cores of ordinary processors.

    Raises:
        ValueError: a number that is not positive, or in another unit than its name promises.
    """

    name: str
    machine: Machine
    systems: Sourced
    cores: Sourced
    fp16_flops_per_s: Sourced
    capacity_bytes: Sourced
    internal_bits_per_s: Sourced
    host_cores: Sourced

    def __post_init__(self) -> None:
        check_numbers(self.name, numbers(self), UNITS)
