"""Machines and clusters: validated, frozen, and equal to what was published."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

import wse
from wse.machine.cluster import Cluster
from wse.machine.machine import STATUSES, UNITS, Machine, Sourced

FACTS = {  # catalogue's field -> name, without the wafer, in facts.json and its size in SI units
    "cores": ("cores", 1),
    "sram_bytes": ("sram", 1e9),
    "memory_bytes_per_s": ("mem_bw", 1e15),
    "fabric_bits_per_s": ("fabric_bw", 1e15),
}
DOCS = {  # row of the table in docs/machine.md -> catalogue's field and the row's unit
    "cores": ("cores", 1),
    "memory on the wafer (GB)": ("sram_bytes", 1e9),
    "memory bandwidth (PB/s)": ("memory_bytes_per_s", 1e15),
    "fabric bandwidth (Pb/s)": ("fabric_bits_per_s", 1e15),
    "clock (MHz)": ("clock_hz", 1e6),
}


@pytest.fixture(scope="module")
def facts() -> dict[str, float]:
    shared = os.environ.get("SCIML_SHARED")
    if not shared:
        pytest.skip("SCIML_SHARED is not set: the published facts are not at hand")
    document = json.loads((Path(shared) / "data" / "wse" / "facts.json").read_text())
    return {fact["name"]: fact["value"] for fact in document["facts"]}


@pytest.mark.parametrize("machine", wse.catalog.MACHINES, ids=lambda machine: machine.name)
def test_every_number_has_the_unit_of_its_name_a_status_and_a_source(machine: Machine) -> None:
    for name, number in machine.numbers().items():
        assert number.unit == UNITS[name]
        assert number.status in STATUSES
        assert number.source


def test_units_name_every_number_of_a_machine() -> None:
    names = {field.name for field in dataclasses.fields(Machine)} - {"name", "wafer"}
    assert set(UNITS) == names


@pytest.mark.parametrize(
    ("machine", "cores", "sram_bytes", "memory_bytes_per_s", "fabric_bits_per_s"),
    [
        (wse.catalog.CS1, 400_000, 18e9, 9e15, 100e15),
        (wse.catalog.CS2, 850_000, 40e9, 20e15, 220e15),
        (wse.catalog.CS3, 900_000, 44e9, 21e15, 214e15),
    ],
    ids=["CS-1", "CS-2", "CS-3"],
)
def test_published_figures(
    machine: Machine,
    cores: int,
    sram_bytes: float,
    memory_bytes_per_s: float,
    fabric_bits_per_s: float,
) -> None:
    assert machine.cores.value == cores
    assert machine.sram_bytes.value == sram_bytes
    assert machine.memory_bytes_per_s.value == memory_bytes_per_s
    assert machine.fabric_bits_per_s.value == fabric_bits_per_s


@pytest.mark.parametrize("machine", wse.catalog.MACHINES, ids=lambda machine: machine.name)
def test_catalogue_equals_the_collected_facts(machine: Machine, facts: dict[str, float]) -> None:
    numbers, prefix = machine.numbers(), machine.wafer.replace("-", "").lower()
    for field, (name, size) in FACTS.items():
        assert numbers[field].value == facts[f"{prefix}_{name}"] * size
    assert machine.host_bits_per_s.value == facts["system_io"] * 1e12
    assert machine.host_channel_bits_per_s.value == facts["host_io_channel"] * 1e9
    assert machine.sram_per_core_bytes.value == facts["sram_per_pe"] * 1024
    assert machine.power_w.value == facts[f"{machine.name.replace('-', '').lower()}_power"] * 1e3


def test_grids_clocks_and_rates_equal_the_collected_facts(facts: dict[str, float]) -> None:
    cs1, cs2, cs3 = wse.catalog.MACHINES
    assert [cs1.fabric_columns.value, cs1.fabric_rows.value] == facts["wse1_grid"]
    assert [cs2.fabric_columns.value, cs2.fabric_rows.value] == facts["wse2_sdk_fabric_dims"]
    assert [cs3.fabric_columns.value, cs3.fabric_rows.value] == facts["wse3_sdk_fabric_dims"]
    assert cs2.clock_hz.value == facts["clock_tools_wse2"]
    assert cs2.other_clock_hz is not None
    assert cs2.other_clock_hz.value == facts["clock_hc34_wse2"]
    assert cs3.clock_hz.value == facts["clock_wse3_user_code"]
    assert cs2.fp16_flops_per_cycle.value == facts["wse2_fp16_ops_per_cycle"]
    assert cs3.fp16_flops_per_cycle.value == facts["wse3_fp16_ops_per_cycle"]


def test_peaks_are_those_derived_from_the_clock() -> None:
    assert wse.catalog.CS2.peak_fp16_flops_per_s == pytest.approx(5.78e15)
    assert wse.catalog.CS3.peak_fp16_flops_per_s == pytest.approx(12.6e15)


def test_the_site_equals_the_collected_facts(facts: dict[str, float]) -> None:
    site = wse.catalog.CG1
    assert site.systems.value == facts["cg1_systems"]
    assert site.cores.value == facts["cg1_cores"]
    assert site.fp16_flops_per_s.value == facts["cg1_compute_fp16"] * 1e18
    assert site.capacity_bytes.value == facts["cg1_parameter_memory"] * 1e12
    assert site.internal_bits_per_s.value == facts["cg1_internal_bandwidth"] * 1e12
    assert site.host_cores.value == facts["cg1_epyc_cores"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Sourced(value, "B", "assumed", "nowhere")


@pytest.mark.parametrize(
    ("unit", "source", "rule"), [("", "x", "unit .* empty"), ("B", "", "source .* empty")]
)
def test_a_number_needs_a_unit_and_a_source(unit: str, source: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        Sourced(1, unit, "assumed", source)


def test_an_interval_holds_its_number() -> None:
    with pytest.raises(ValueError, match=r"interval is \(2, 3\) around 1 B; it must hold"):
        Sourced(1, "B", "assumed", "nowhere", interval=(2, 3))


def test_the_status_is_one_of_four() -> None:
    with pytest.raises(Exception, match="guessed"):
        Sourced(1, "B", "guessed", "nowhere")  # pyright: ignore[reportArgumentType]


def test_a_machine_without_cores_is_refused() -> None:
    none = Sourced(0, "count", "assumed", "a test")
    with pytest.raises(ValueError, match="cores of CS-2 is 0; it must be positive: correct"):
        dataclasses.replace(wse.catalog.CS2, cores=none)


def test_a_machine_with_mixed_up_units_is_refused() -> None:
    clock = Sourced(850, "MHz", "assumed", "a test")
    with pytest.raises(ValueError, match="clock_hz of CS-2 is in 'MHz'; it must be in 'Hz'"):
        dataclasses.replace(wse.catalog.CS2, clock_hz=clock)


def test_a_machine_needs_a_name() -> None:
    with pytest.raises(ValueError, match="both must be given"):
        dataclasses.replace(wse.catalog.CS2, name="")


@pytest.mark.parametrize(
    ("systems", "mode", "rule"),
    [
        (0, "pipelined", "systems is 0; it must be a positive integer"),
        (1, "piplined", "mode is 'piplined'; it must be one of 'streaming', 'pipelined'"),
    ],
)
def test_a_cluster_accepts_only_what_works(systems: int, mode: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.CS2(systems=systems, mode=mode)


@pytest.mark.parametrize(
    ("name", "value"),
    [("fabric", (2,)), ("fabric", (0, 1)), ("fabric", [1, 1]), ("host_budget_bytes", 0)],
)
def test_a_cluster_names_what_is_wrong(name: str, value: object, untyped: None) -> None:
    with pytest.raises(ValueError, match=f"{name} is "):
        wse.CS2(**{name: value})  # pyright: ignore[reportArgumentType]


def test_specifications_are_frozen_values() -> None:
    assert wse.CS2() == Cluster(wse.catalog.CS2)
    assert hash(wse.CS2()) == hash(wse.CS2())
    with pytest.raises(dataclasses.FrozenInstanceError):
        wse.CS2().systems = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_the_table_of_the_docs_equals_the_catalogue() -> None:
    page = (Path(__file__).parents[3] / "docs" / "machine.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    found = [row for row in cells if len(row) == 4 and row[0] in DOCS]
    rows = {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in found}
    for name, (field, size) in DOCS.items():
        values = [machine.numbers()[field].value / size for machine in wse.catalog.MACHINES]
        assert rows[name] == pytest.approx(values)
