"""What both commands owe a terminal: completion, examples, no colour where none is wanted."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.testing import CliRunner

DOCS = Path(__file__).parents[1] / "docs"
COMMANDS = ("sciml", "wse")
SHELLS = ("bash", "zsh", "fish", "powershell")
COLOUR = re.compile(r"\x1b\[[\d;]*\b3[0-7]m")


@pytest.fixture
def invoke(monkeypatch):
    """Run a command by its arguments and environment; returns what it wrote."""
    # Without it the shell is asked for by looking at the processes above.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")

    def run(name: str, arguments: list[str], **environment: str) -> str:
        (script,) = entry_points(group="console_scripts", name=name)
        done = CliRunner().invoke(script.load(), arguments, env=environment, prog_name=name)
        assert done.exit_code == 0, done.output
        return done.output

    return run


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("shell", SHELLS)
def test_it_completes_in_every_shell(invoke, name: str, shell: str):
    script = invoke(name, ["--show-completion", shell])
    assert f"_{name.upper()}_COMPLETE" in script


@pytest.mark.parametrize(
    ("name", "begun", "meant"), [("sciml", "rep", "reproduce"), ("wse", "est", "estimate")]
)
def test_what_is_begun_is_completed(invoke, name: str, begun: str, meant: str):
    asked = {
        f"_{name.upper()}_COMPLETE": "complete_bash",
        "COMP_WORDS": f"{name} {begun}",
        "COMP_CWORD": "1",
    }
    assert meant in invoke(name, [], **asked).split()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples(invoke, name: str):
    shown = invoke(name, ["--help"])
    assert "Examples:" in shown
    assert f"{name} " in shown.partition("Examples:")[2]


def test_what_a_command_does_is_not_cut(invoke):
    for name, *rest in (["sciml"], ["sciml", "wind"], ["wse"]):
        assert "..." not in invoke(name, [*rest, "--help"]).partition("Commands:")[2]


@pytest.mark.parametrize("command", ["estimate", "sweep", "workloads", "machines", "check"])
def test_help_of_a_command_shows_its_own_examples(invoke, command: str):
    shown = invoke("wse", [command, "--help"]).partition("Examples:")[2]
    named = re.findall(r"^ *wse (\w+)", shown, re.MULTILINE)
    assert set(named) == {command}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_color_is_respected(name: str):
    code = f"from importlib.metadata import entry_points as e; e(name='{name}')['{name}'].load()()"
    forced = {**os.environ, "FORCE_COLOR": "1"}
    colourless = forced | {"NO_COLOR": "1"}
    command = [sys.executable, "-c", code, "--help"]
    shown = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for environment in (forced, colourless)
    ]
    assert not any(COLOUR.search(text) for text in shown)  # both write plain text always


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_on_the_page_of_commands_exists(invoke, name: str):
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{name} ([^|]*)\|", text, re.MULTILINE)
    named = re.findall(r"\w+", " ".join(rows))
    shown = invoke(name, ["--help"])
    assert named
    assert [word for word in named if word not in shown] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_it_says_its_release(invoke, name: str):
    assert re.fullmatch(
        r"sciml-wse \d+\.\d+\.\d+ \(jax .+, numpy .+\)\n", invoke(name, ["--version"])
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("wse estimate --params|", "--params"),
        ("wse estimate --params=", "--params"),
        ("wse check|", "a word of the command"),
        ("wse compare --width 32 --machines|", "--machines"),
        ("sciml wind predict in.nc|", "a word of the command"),
        ("sciml reproduce --out|", "--out"),
    ],
)
def test_what_is_empty_is_not_taken_for_what_is_left_out(words: str, named: str):
    """As a shell writes a variable that is not set, between quotes."""
    name, *arguments = words.replace("|", " |").split()
    (script,) = entry_points(group="console_scripts", name=name)
    done = CliRunner().invoke(script.load(), [x.strip("|") for x in arguments])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0].startswith(f"error: {named} is empty")


def test_what_help_says_may_be_empty_may_be(invoke):
    assert "pipelined" in invoke("wse", ["estimate", "--width", "32", "--mode", "", "--release="])
