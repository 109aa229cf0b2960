"""A user's own machine: names, YAML files, and what is wrong with them."""

import dataclasses

import pytest

import wse
from wse import _document
from wse.machine import catalog, installation, specification
from wse.machine.machine import Sourced


@pytest.fixture
def write(tmp_path):
    def written(text: str):
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("name", ["cs2", "CS-2", "Cs2"])
def test_names_are_found_in_any_spelling(name: str) -> None:
    assert specification.find(name).machine == catalog.CS2


def test_the_site_is_all_its_systems_with_its_memory() -> None:
    cluster = specification.find("cg1")
    assert cluster == wse.CG1()
    assert cluster.systems == catalog.CG1.systems.value
    assert cluster.store is not None
    assert cluster.store.capacity_bytes == catalog.CG1.capacity_bytes
    cores = cluster.systems * cluster.machine.cores.value
    assert cores == pytest.approx(catalog.CG1.cores.value, rel=0.01)


def test_a_file_changes_what_it_says_and_nothing_else(write) -> None:
    path = write(
        "based_on: CS-3\nname: mine\nclock_hz: 1.1e9\nsystems: 4\nmode: streaming\n"
        "host_bits_per_s: {value: 1e9, status: sourced, source: our net, interval: [5e8, 1e9]}\n"
        "store: {name: shelf, capacity_bytes: 8.0e+12}\ntree: {level_latency_s: 2e-6}\n"
    )
    cluster = specification.find(str(path))
    assert (cluster.machine.name, cluster.systems, cluster.mode) == ("mine", 4, "streaming")
    assert cluster.machine.clock_hz == Sourced(1.1e9, "Hz", "assumed", str(path))
    link = cluster.machine.host_bits_per_s
    assert (link.value, link.status, link.source) == (1e9, "sourced", "our net")
    assert link.interval == (5e8, 1e9)
    same = {"name": "CS-3", "clock_hz": catalog.CS3.clock_hz}
    same |= {"host_bits_per_s": catalog.CS3.host_bits_per_s}
    assert dataclasses.replace(cluster.machine, **same) == catalog.CS3
    assert cluster.store is not None
    assert cluster.tree is not None
    assert cluster.store.capacity_bytes.value == 8e12
    assert cluster.store.bytes_per_s == catalog.STORES["WSE-3"][0].bytes_per_s
    assert cluster.tree.level_latency_s.value == 2e-6


def test_a_file_may_build_on_another_beside_it_but_not_on_itself(tmp_path) -> None:
    texts = {"a": "based_on: b.yaml\nsystems: 4\n", "b": "based_on: CS-3\nname: b\n"}
    texts |= {"c": "based_on: d.yaml\n", "d": "based_on: ./c.yaml\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    found = specification.read(tmp_path / "a.yaml")
    assert (found.machine.name, found.machine.wafer, found.systems) == ("b", "WSE-3", 4)
    with pytest.raises(ValueError, match=r"c\.yaml is based on itself, by d\.yaml; say based_on"):
        specification.find(str(tmp_path / "c.yaml"))


@pytest.mark.parametrize("name", ["", ".", "~"])
def test_a_folder_is_no_machine(name: str, write) -> None:
    for said in (
        lambda: specification.find(name),
        lambda: specification.read(write(name_of(name))),
    ):
        with pytest.raises(ValueError, match=rf"machine is '{name}'; known are CS-1"):
            said()


def name_of(base: str) -> str:
    """Return a file based on something."""
    return f"based_on: '{base}'\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("name: mine\n\tclock_hz: 1\n", "line 2: a tab indents; .* replace the tab"),
        (
            "name: !!python/object/apply:os.system ['true']\n",
            r"line 1: tag 'python/object/apply:os.system'; only plain values are read: remove",
        ),
        ("name: [unclosed\n", "it is no YAML: correct that line"),
        ("- a\n- b\n", "holds list at its top level"),
        ("", "is empty; it must hold names and values"),
        ("1: x\n", "has the key 1; keys are words"),
        ("clock_herz: 1e9\n", "'clock_herz', which is not known: did you mean 'clock_hz'?"),
        ("qqq: 1\n", "'qqq', which is not known: known are based_on, systems"),
        ("clock_hz: 850 MHz\n", "clock_hz is '850 MHz'; it must be a plain number in Hz: convert"),
        ("clock_hz: yes\n", "clock_hz is True; it must be a plain number in Hz"),
        ("clock_hz: {value: 850, unit: MHz}\n", "is in 'MHz'; it must be in 'Hz': convert"),
        ("clock_hz: {valu: 850}\n", "did you mean 'value'"),
        ("clock_hz: {value: }\n", "clock_hz is None; it must be a plain number in Hz"),
        ("clock_hz: {unit: Hz}\n", "clock_hz of .* lacks value; it must be given: add a line"),
        ("clock_hz: {value: 1, interval: 3}\n", "clock_hz.interval in .* is 3; .* a list: write"),
        ("clock_hz: {value: 1, interval: [1]}\n", r"clock_hz.interval in .* is \[1\]; .* longer"),
        ("clock_hz: {value: 1, status: read}\n", "status .* is 'read'; .* one of sourced, derived"),
        ("clock_hz: {value: 1, source: 3}\n", "clock_hz.source in .* is 3; it must be of type str"),
        ("clock_hz: {value: 1, interval: [2, 3]}\n", "interval is .* it must hold the number"),
        ("cores: 0\n", "cores of CS-2 is 0; it must be positive"),
        ("cores: .inf\n", "cores.value in .* is inf; it must be finite: write"),
        ("systems: four\n", "systems in .* is 'four'; it must be of type int: write a"),
        ("mode: streamin\n", "mode in .* is 'streamin'; .*: did you mean 'streaming'?"),
        ("systems: 0\n", "systems is 0; it must be a positive integer"),
        ("name: 3\n", "name in .* is 3; it must be of type str: put it in quotes"),
        ("based_on: CS-9\n", "machine is 'CS-9'; known are CS-1, CS-2, CS-3 and CG-1, or a file"),
        ("store: 3\n", "it must hold names and values: indent them below"),
        ("store: {capacity: 1e12}\n", "did you mean 'capacity_bytes'?"),
        ("based_on: CS-1\nstore: {name: x}\n", "weights are not streamed to that wafer"),
    ],
)
def test_a_wrong_file_is_one_clear_error(write, text: str, rule: str, untyped) -> None:
    with pytest.raises(ValueError, match=rule):
        specification.read(write(text))


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="is no file; it must be a YAML file"):
        specification.find(str(tmp_path / "none.yaml"))
    large = tmp_path / "large.yaml"
    large.write_bytes(b"a" * (_document.MOST_BYTES + 1))
    with pytest.raises(ValueError, match="is larger than"):
        specification.read(large)


def test_bytes_that_are_no_text_are_refused(tmp_path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01\xff")
    with pytest.raises(ValueError, match="is no YAML text in UTF-8"):
        specification.read(path)


def test_both_clocks_of_a_wafer() -> None:
    fast = catalog.CS2.at_other_clock()
    assert fast.clock_hz.value == 1.1e9
    assert fast.peak_fp16_flops_per_s == pytest.approx(7.48e15)
    assert fast.at_other_clock() == catalog.CS2
    with pytest.raises(ValueError, match="CS-3 has one clock"):
        catalog.CS3.at_other_clock()


@pytest.mark.parametrize("wafer", ["WSE-2", "WSE-3"])
def test_stores_stand_in_order_and_hold_what_was_told(wafer: str) -> None:
    sizes = [store.capacity_bytes.value for store in catalog.STORES[wafer]]
    assert sizes == sorted(sizes)
    largest = catalog.STORES[wafer][-1]
    assert largest.most_parameters > (120e12 if wafer == "WSE-2" else 24e12)


def test_gpt3_needs_over_two_terabytes() -> None:
    state_bytes = catalog.STORES["WSE-2"][0].bytes_per_parameter.value
    assert 2e12 < 175e9 * state_bytes < 2.2e12  # "over 2 TB": Freund, Cambrian-AI 2021


def test_levels_of_the_tree() -> None:
    assert [installation.levels(n) for n in (1, 2, 3, 4, 5, 192)] == [0, 1, 2, 2, 3, 8]


def test_the_surroundings_are_checked_as_machines_are() -> None:
    store = catalog.STORES["WSE-2"][0]
    none = Sourced(0, "B", "assumed", "a test")
    with pytest.raises(ValueError, match="capacity_bytes of MemoryX 4 TB is 0; it must"):
        dataclasses.replace(store, capacity_bytes=none)
    with pytest.raises(ValueError, match="must be in 'B/s'"):
        dataclasses.replace(store, bytes_per_s=Sourced(1, "bit/s", "assumed", "a test"))
