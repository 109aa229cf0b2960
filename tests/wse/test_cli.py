"""The command line: answers, refuses, lists."""

import json

import pytest
from typer.testing import CliRunner

from wse.cli import app

run = CliRunner()


def test_estimate_prints_a_table() -> None:
    result = run.invoke(app, ["estimate", "--width", "2048"])
    assert result.exit_code == 0
    assert "810.2" in result.output
    assert "calibrated" in result.output


def test_estimate_prints_json() -> None:
    sizes = ["--width", "32", "--depth", "8", "--inputs", "1000", "--outputs", "2"]
    run_of = ["--samples", "1000000", "--batch", "100", "--json"]
    result = run.invoke(app, ["estimate", *sizes, *run_of])
    document = json.loads(result.output)
    assert document["parameters"] == 39_490
    assert document["total_s"] == pytest.approx(177.6, abs=0.05)
    assert [phase["name"] for phase in document["phases"]][-2:] == ["input", "units"]


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--width", "-3", "width is -3; it must be a positive integer"),
        ("--samples", "0", "samples is 0; it must be a positive integer"),
        ("--width", "90000", "must stay within the 40 GB"),
    ],
)
def test_bad_input_is_one_error_and_exit_code_two(option: str, value: str, rule: str) -> None:
    result = run.invoke(app, ["estimate", option, value])
    assert result.exit_code == 2
    assert rule in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_a_word_for_a_number_is_exit_code_two() -> None:
    result = run.invoke(app, ["estimate", "--width", "wide"])
    assert result.exit_code == 2


def test_machines_lists_status_and_source() -> None:
    result = run.invoke(app, ["machines"])
    assert result.exit_code == 0
    for text in ("CS-1 (WSE-1)", "CS-2 (WSE-2)", "CS-3 (WSE-3)", "assumed", "Hock, ATPESC 2020"):
        assert text in result.output


@pytest.mark.parametrize("command", [[], ["estimate"], ["machines"]])
def test_help_shows_examples(command: list[str]) -> None:
    result = run.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "wse estimate --width 2048" in result.output
