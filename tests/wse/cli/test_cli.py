"""The command line: answers, refuses, lists."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from wse.cli.main import app

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
        ("--model", "GPT-J-7B", "did you mean 'GPT-J-6B'"),
        ("--machine", "cs9", "machine is 'cs9'; known are"),
        ("--mode", "steaming", "mode is 'steaming'; it must be one of"),
        ("--density", "1.5", "density of layer 'hidden_1' is 1.5; it must lie between 0 and 1"),
        ("--systems", "-1", "systems is -1; it must be a positive integer"),
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


@pytest.mark.parametrize("command", ["machines", "workloads"])
def test_a_full_disk_is_one_line_and_a_reader_that_went_is_none(command, monkeypatch) -> None:
    echo = typer.echo

    def stopped(error: OSError):
        return lambda message="", **said: echo(message, **said) if said else _raise(error)

    for error, code, told in ((28, 2, "error: [Errno 28] full\n"), (32, 1, "")):
        monkeypatch.setattr(typer, "echo", stopped(OSError(error, "full")))
        result = CliRunner().invoke(app, [command])
        assert (result.exit_code, result.output) == (code, told)


def _raise(error: OSError):
    raise error


def test_estimate_of_a_model_by_name_is_the_function_s() -> None:
    asked = ["--model", "GPT-J-6B", "--machine", "cs2", "--systems", "2", "--batch", "130"]
    asked += ["--sequence", "2048", "--mode", "streaming", "--release", "R1.8", "--json"]
    document = json.loads(run.invoke(app, ["estimate", *asked]).output)
    assert document["samples_per_s"] == pytest.approx(33.98, rel=1e-3)
    assert document["release"] == "R1.8"
    assert document["systems"] == 2


def test_estimate_from_two_files(tmp_path) -> None:
    model, machine = tmp_path / "model.yaml", tmp_path / "machine.yaml"
    model.write_text("family: perceptron\nshape: {sizes: [784, 500, 300, 10]}\n")
    machine.write_text("based_on: CS-3\nsystems: 4\n")
    asked = ["--model", str(model), "--machine", str(machine), "--batch", "8", "--json"]
    document = json.loads(run.invoke(app, ["estimate", *asked]).output)
    assert (document["machine"], document["systems"]) == ("CS-3", 4)
    assert document["parameters"] == 545_810


def test_a_forward_pass_alone() -> None:
    asked = ["estimate", "--model", "GPT-2-small", "--forward", "--batch", "8"]
    assert "samples/s" in run.invoke(app, asked).output
    document = json.loads(run.invoke(app, [*asked, "--json"]).output)
    assert document["fastest_s"] <= document["latency_s"] <= document["slowest_s"]


def test_sweep_prints_every_case_and_leaves_out_what_does_not_divide() -> None:
    asked = ["sweep", "--model", "GPT-2-small", "--systems", "1,3", "--batch", "100,300"]
    table = run.invoke(app, asked).output.splitlines()
    assert len(table) == 5
    assert table[2].endswith("systems do not divide the batch")
    cases = json.loads(run.invoke(app, [*asked, "--json"]).output)
    assert [case["step_s"] is None for case in cases] == [False, True, False, False]
    reasons = [case["reason"] for case in cases]
    assert reasons == [None, "systems do not divide the batch", None, None]
    large = run.invoke(app, ["sweep", "--model", "U-Net-3D", "--batch", "1"]).output
    assert "the activations of one sample do not fit" in large
    whole = run.invoke(app, [*asked[:3], "--batch", "100"]).output.splitlines()
    assert whole[0].split()[-1] == "micro_batches"


def test_bad_lists_are_one_error() -> None:
    result = run.invoke(app, ["sweep", "--model", "GPT-2-small", "--systems", "1,x"])
    assert result.exit_code == 2
    assert "systems is '1,x'; it must be numbers with commas between" in result.stderr


def test_workloads_lists_models_and_kernels() -> None:
    output = run.invoke(app, ["workloads"]).output
    for text in ("GPT-120T", "6,050,882,784", "TLR-MVM on 48 CS-2", "0.76"):
        assert text in output


@pytest.mark.slow
def test_check_of_a_model_by_name() -> None:
    result = run.invoke(app, ["check", "FC-MNIST"])
    assert result.exit_code == 0
    assert "dot_general" in result.output
    image = run.invoke(app, ["check", "ResNet-50"])
    assert image.exit_code == 0
    assert "conv_general_dilated" in image.output


@pytest.mark.parametrize("command", [[], ["estimate"], ["machines"], ["sweep"], ["workloads"]])
def test_help_shows_examples(command: list[str]) -> None:
    result = run.invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    example = f"wse {command[0]}" if command else "wse estimate --width 2048"
    assert example in result.output.partition("Examples:")[2]


def test_check_answers_in_json_and_by_exit_code() -> None:
    result = run.invoke(app, ["check", "FC-MNIST", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.output)["verdict"] in ("native", "decomposed")
    old = run.invoke(app, ["check", "FC-MNIST", "--machine", "cs1", "--json"])
    assert old.exit_code == 1
    assert json.loads(old.output)["verdict"] in ("unknown", "unsupported")


OWN = """
import jax.numpy as jnp

def loss(params, batch):
    x, y = batch
    return jnp.mean((jnp.tanh(x @ params["w"]) - y) ** 2)

def whole():
    return loss, {"w": jnp.ones((6, 3))}, (jnp.ones((4, 6)), jnp.ones((4, 3)))

def half():
    return loss

def paired():
    def pair(params, batch):
        return jnp.mean((batch["x"] @ params["w"]) ** 2) + jnp.mean(batch["mask"]), params
    batch = {"x": jnp.ones((4, 6)), "mask": jnp.ones((9, 9))}
    return pair, {"w": jnp.ones((6, 3))}, batch
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's own on the path."""
    (tmp_path / "mine_to_check.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_function_of_one_s_own_is_checked_and_estimated(own) -> None:
    checked = run.invoke(app, ["check", "mine_to_check:whole", "--mode", "streaming", "--json"])
    assert checked.exit_code == 0, checked.output
    answer = json.loads(checked.output)
    assert answer["verdict"] == "native"
    estimated = run.invoke(app, ["estimate", "--model", "mine_to_check:whole", "--json"])
    assert json.loads(estimated.output)["parameters"] == 18


def test_what_is_said_of_a_loss_is_said_on_the_command_line_too(own) -> None:
    """As the functions take it, with their answers; and only of a program."""
    name = "mine_to_check:paired"

    def asked(*words: str) -> Any:
        result = run.invoke(app, [*words, "--json"])
        return json.loads(result.output) if result.exit_code < 2 else result.stderr

    estimate = ("estimate", "--model", name, "--has-aux")
    guessed, told = asked(*estimate), asked(*estimate, "--batch-size", "4")
    assert (guessed["batch"], told["batch"]) == (9, 4)
    assert any("--batch-size" in x for x in guessed["cautions"])
    assert not any("--batch-size" in x for x in told["cautions"])
    compare = ("compare", "--model", name, "--has-aux", "--machines", "cs2")
    port = ("port", name, "--has-aux", "--beside", "h100", "--batch-size", "4")
    for words in (compare, ("check", name, "--has-aux"), port):
        assert isinstance(asked(*words), dict | list), words
    for words in (compare[:3] + compare[4:], ("check", name), ("port", name)):
        assert "on the command line --has-aux" in asked(*words), words
    for words in (("check", "FC-MNIST"), ("port", "FC-MNIST"), ("compare", "--model", "FC-MNIST")):
        assert "has_aux is False beside model 'FC-MNIST'" in asked(*words, "--no-has-aux"), words
        assert "batch_size is 4 beside model 'FC-MNIST'" in asked(*words, "--batch-size", "4")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("mine_to_check:none", "must name a function as package.module:function"),
        ("mine_to_check:half", "must return (loss, params, batch)"),
        ("no_such_module:whole", "its folder on PYTHONPATH"),
        (":whole", "its folder on PYTHONPATH"),
    ],
)
def test_a_function_that_is_not_there_is_one_error(own, name: str, rule: str) -> None:
    for command in (["check", name], ["estimate", "--model", name]):
        result = run.invoke(app, command)
        assert result.exit_code == 2
        assert rule in result.stderr
        assert result.stderr.count("\n") == 1
