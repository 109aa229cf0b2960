"""What a wafer-scale machine is: numbers from the world, each with its source and status."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from wse import _render
from wse._numbers import check_kinds, one_of

Status: TypeAlias = Literal["sourced", "derived", "calibrated", "assumed"]
STATUSES: tuple[str, ...] = get_args(Status)
HEADER = ("number", "value", "unit", "status", "source")

UNITS: dict[str, str] = {  # the unit that the name of each field of Machine promises
    "cores": "count",
    "fabric_columns": "count",
    "fabric_rows": "count",
    "sram_bytes": "B",
    "sram_per_core_bytes": "B",
    "memory_bytes_per_s": "B/s",
    "fabric_bits_per_s": "bit/s",
    "host_bits_per_s": "bit/s",
    "host_channel_bits_per_s": "bit/s",
    "clock_hz": "Hz",
    "other_clock_hz": "Hz",
    "fp16_flops_per_cycle": "FLOP/cycle",
    "power_w": "W",
}


@dataclass(frozen=True)
class Sourced:
    """A number from the world.

    Attributes:
        value: the number, finite.
        unit: its unit, in SI: "B", "B/s", "bit/s", "Hz", "s", "W", "count", ...
        status: "sourced" (read in a source), "derived" (arithmetic on sourced numbers),
            "calibrated" (fitted to published results) or "assumed".
        source: where it was read, or what it was derived from or fitted to.
        note: what a reader should know before relying on it.
        interval: the least and the most that it may be; None: nothing is said.

    Raises:
        ValueError: an unknown status, a number that is not finite, no unit or source, or an
            interval that does not hold the number.

    >>> Sourced(850e6, "Hz", "sourced", "vendor's tools").value
    850000000.0
    """

    value: int | float
    unit: str
    status: Status
    source: str
    note: str = ""
    interval: tuple[int | float, int | float] | None = None

    def __post_init__(self) -> None:
        one_of("status", self.status, STATUSES)
        check_kinds(self)
        if not math.isfinite(self.value):
            raise ValueError(f"value is {self.value}; it must be finite: leave the number out")
        _, low, high = self.ends
        if not low <= self.value <= high:
            raise ValueError(
                f"interval is {self.interval} around {self.value} {self.unit}; it must hold the "
                "number: pass interval=(least, most)"
            )
        if not self.unit:
            raise ValueError(f"unit of {self.value} is empty; a number needs one: pass unit='B/s'")
        if not self.source:
            raise ValueError(
                f"source of {self.value} {self.unit} is empty; a number from the world needs one: "
                "pass source='where it was read'"
            )

    @property
    def ends(self) -> tuple[float, float, float]:
        """The number, the least and the most that it may be; three times itself if none is said."""
        low, high = self.interval or (self.value, self.value)
        return float(self.value), float(low), float(high)

    def __str__(self) -> str:
        """The number with its unit and status."""
        return f"{self.value:g} {self.unit} ({self.status})"


@dataclass(frozen=True)
class Machine:
    """One wafer and the system around it.

    A user's own machine is made from a known one by `dataclasses.replace`.

    Attributes:
        name: the system's name, as "CS-2".
        wafer: the name of its wafer, as "WSE-2".
        cores: cores as the vendor counts them.
        fabric_columns: columns of the grid of cores that a program may use.
        fabric_rows: rows of that grid.
        sram_bytes: memory on the wafer.
        sram_per_core_bytes: memory of one core.
        memory_bytes_per_s: bandwidth of all memories on the wafer together.
        fabric_bits_per_s: bandwidth of all links between cores together.
        host_bits_per_s: bandwidth of the system's network ports together.
        host_channel_bits_per_s: bandwidth of one host channel.
        clock_hz: the clock that the vendor's tools use.
        fp16_flops_per_cycle: half-precision operations of one core in one cycle (dense).
        power_w: power drawn by the system.
        other_clock_hz: a second clock that circulates for the same wafer, if one does.

    Raises:
        ValueError: a number that is not positive, or in another unit than its name promises.

    >>> import wse
    >>> wse.CS2().machine
    Machine(CS-2, WSE-2: 850,000 cores, 40 GB on the wafer)
    """

    name: str
    wafer: str
    cores: Sourced
    fabric_columns: Sourced
    fabric_rows: Sourced
    sram_bytes: Sourced
    sram_per_core_bytes: Sourced
    memory_bytes_per_s: Sourced
    fabric_bits_per_s: Sourced
    host_bits_per_s: Sourced
    host_channel_bits_per_s: Sourced
    clock_hz: Sourced
    fp16_flops_per_cycle: Sourced
    power_w: Sourced
    other_clock_hz: Sourced | None = None

    def __post_init__(self) -> None:
        check_kinds(self)
        if not self.name or not self.wafer:
            raise ValueError(
                f"name is {self.name!r} and wafer is {self.wafer!r}; both must be given: "
                "pass name='CS-2', wafer='WSE-2'"
            )
        check_numbers(self.name, self.numbers(), UNITS)

    def numbers(self) -> dict[str, Sourced]:
        """Every number of the machine by its field's name, in the order of the fields."""
        return numbers(self)

    def __repr__(self) -> str:
        """One line: the system, its wafer, cores and memory; `numbers()` has all of it."""
        return (
            f"Machine({self.name}, {self.wafer}: {self.cores.value:,} cores, "
            f"{self.sram_bytes.value / 1e9:g} GB on the wafer)"
        )

    def _repr_html_(self) -> str:
        """Every number as a table for a notebook."""
        return self.table(f"{self.name}, {self.wafer}")

    def table(self, caption: str) -> str:
        """Every number with its unit, status and source, as HTML under a caption."""
        rows = [
            (name, f"{x.value:,g}", x.unit, x.status, x.source)
            for name, x in self.numbers().items()
        ]
        return _render.html(caption, HEADER, rows)

    @property
    def peak_fp16_flops_per_s(self) -> float:
        """Dense half-precision peak, cores x operations per cycle x clock (derived), in FLOP/s."""
        return self.cores.value * self.fp16_flops_per_cycle.value * self.clock_hz.value

    @property
    def cores_on_grid(self) -> int:
        """Columns x rows: the cores that a program may use, fewer than the vendor counts."""
        return int(self.fabric_columns.value * self.fabric_rows.value)

    def at_other_clock(self) -> "Machine":
        """The same machine at the other clock that circulates for it.

        Raises:
            ValueError: only one clock circulates.
        """
        if self.other_clock_hz is None:
            raise ValueError(
                f"{self.name} has one clock; another must be given by you: "
                "dataclasses.replace(machine, clock_hz=...)"
            )
        return replace(self, clock_hz=self.other_clock_hz, other_clock_hz=self.clock_hz)


def numbers(specification: Any) -> dict[str, Sourced]:
    """Every number of a specification by its field's name, in the order of the fields."""
    values = {field.name: getattr(specification, field.name) for field in fields(specification)}
    return {name: value for name, value in values.items() if isinstance(value, Sourced)}


def check_numbers(owner: str, found: Mapping[str, Sourced], units: Mapping[str, str]) -> None:
    """Refuse numbers that are not positive, or in another unit than their names promise.

    Raises:
        ValueError: the first such number, with its owner's name.
    """
    for name, number in found.items():
        if number.value <= 0:
            raise ValueError(
                f"{name} of {owner} is {number.value}; it must be positive: "
                f"correct it, as in dataclasses.replace(wse.catalog.CS2, {name}=...)"
            )
        if number.unit != units[name]:
            raise ValueError(
                f"{name} of {owner} is in {number.unit!r}; it must be in {units[name]!r}: "
                "convert the value and give that unit"
            )
