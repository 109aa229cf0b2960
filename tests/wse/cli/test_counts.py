"""A number that is no such number is refused by its name, on the command line and in Python.

Only what is left out, or None, is "not given": 0 is a number that somebody wrote.
"""

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import wse
from wse.cli.main import app
from wse.show.explorer import Choice
from wse.workload import dense

run = CliRunner()
PARAMS = """
train_input: {data_dir: none, batch_size: 100}
model: {name: gpt2, num_hidden_layers: 2, hidden_size: 64, num_heads: 2, filter_size: 256,
  vocab_size: 512, max_position_embeddings: 32}
runconfig: {max_steps: 10}
"""
OWN = """
import jax.numpy as jnp

def loss(params, batch):
    return jnp.mean(batch @ params)

def whole():
    return loss, jnp.ones((6, 3)), jnp.ones((4, 6))
"""
# Of each command what makes it read the option; all others are read by the command alone.
MODEL = ("--model", "GPT-2-small")
BESIDE = {
    ("estimate", "--sequence"): MODEL,
    ("estimate", "--batch-size"): ("--model", "OWN"),
    ("estimate", "--micro-batch"): ("--mode", "streaming"),
    ("sweep", "--systems"): MODEL,
    ("sweep", "--batch"): MODEL,
    ("sweep", "--density"): MODEL,
    ("sweep", "--sequence"): MODEL,
    ("check", "--sequence"): ("GPT-2-small",),
    ("check", "--batch-size"): ("OWN",),
    ("compare", "--batch-size"): ("--model", "OWN"),
    ("port", "--batch-size"): ("OWN",),
    ("port", "--steps"): ("OWN", "--data", "DATA"),
    ("port", "--batch"): ("FC-MNIST",),
    ("port", "--samples"): ("FC-MNIST",),
    ("port", "--systems"): ("FC-MNIST",),
    ("run", "--num_csx"): ("CSX", "--params", "PARAMS", "--compile_only"),
    ("run", "--num_steps"): ("CSX", "--params", "PARAMS", "--compile_only"),
}
TEXTS = {
    ("sweep", "--systems"),
    ("sweep", "--batch"),
    ("sweep", "--density"),
    ("port", "--systems"),
}


def counted() -> list[tuple[str, str]]:
    """Every option of every command that is a number, or a row of numbers."""
    found = set(TEXTS)
    for command in app.registered_commands:
        function: Any = command.callback
        for name, hint in get_type_hints(function).items():
            if {int, float} & {hint, *get_args(hint)}:
                plain = function.__name__ == "run"
                found.add((function.__name__, f"--{name if plain else name.replace('_', '-')}"))
    return sorted(found)


@pytest.fixture
def files(tmp_path):
    """A program, its samples and a params file, by the words that stand for them above."""
    paths = {"OWN": "mine.py", "DATA": "data.npz", "PARAMS": "params.yaml"}
    made = {word: str(tmp_path / name) for word, name in paths.items()}
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "params.yaml").write_text(PARAMS)
    np.savez(made["DATA"], x=np.ones((8, 6), "f4"))
    return {**made, "OWN": f"{made['OWN']}:whole"}


def refused(words: list[str], name: str, value: str) -> None:
    result = run.invoke(app, words)
    assert result.exit_code == 2, (words, result.output)
    assert result.stderr.count("\n") == 1, (words, result.stderr)
    said = result.stderr.removeprefix("error: ")
    assert said.startswith((f"{name} is ", f"{name} of ", f"runconfig.{name} is ")), words
    assert value in said.partition(";")[0], words


def test_the_options_that_are_numbers_are_these() -> None:
    assert {*BESIDE} < {*counted()}
    assert len(counted()) >= 28


@pytest.mark.parametrize(("command", "option"), counted())
@pytest.mark.parametrize("value", ["0", "-1"])
def test_no_number_of_a_command_means_not_given(files, command, option, value) -> None:
    if (command, option, value) in {("estimate", "--density", "0"), ("sweep", "--density", "0")}:
        value = "2"  # no weight is a share of them; two of one are none
    words = [files.get(word, word) for word in BESIDE.get((command, option), ())]
    refused([command, *words, option, value], option.strip("-").replace("-", "_"), value)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
def test_shares_and_prices_are_numbers_between_their_ends(value) -> None:
    refused(["estimate", "--density", value], "density", value.replace("1e400", "inf"))
    refused(["sweep", *MODEL, "--density", value], "density", value.replace("1e400", "inf"))
    refused(["compare", "--price", f"h100={value}"], "price", value.replace("1e400", "inf"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["estimate", *MODEL, "--width", "64"], "width is 64 beside model 'GPT-2-small'"),
        (["compare", *MODEL, "--width", "64"], "width is 64 beside model 'GPT-2-small'"),
        (["estimate", "--params", "PARAMS", "--depth", "2"], "depth is 2 beside params"),
        (["estimate", "--sequence", "64"], "sequence is 64 beside a dense net"),
        (["estimate", "--model", "OWN", "--sequence", "64"], "sequence is 64 beside model"),
        (["check", "OWN", "--sequence", "64"], "sequence is 64 beside model"),
        (["estimate", "--forward", "--samples", "9"], "samples is 9 beside --forward"),
        (["estimate", "--forward", "--micro-batch", "9"], "micro_batch is 9 beside --forward"),
        (["port", "FC-MNIST", "--steps", "9"], "steps is 9 beside no --data"),
        (["estimate", "--machine", "8 x h100", "--systems", "4"], "systems is 4 beside machine"),
        (["estimate", "--machine", "2 x cs2", "--systems", "4"], "systems is 4 beside machine"),
        (["compare", "--price", "h100=2,h100=3"], "price names 'h100' twice"),
        (["port", "FC-MNIST", "--beside", "h100=2,h100=3"], "beside names 'h100' twice"),
    ],
)
def test_a_number_that_nothing_would_read_is_refused(files, words, said) -> None:
    result = run.invoke(app, [files.get(word, word) for word in words])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"error: {said}")
    assert result.stderr.count("\n") == 1


def test_as_many_systems_as_the_machine_says_are_no_contradiction() -> None:
    result = run.invoke(app, ["estimate", "--machine", "8 x h100", "--systems", "8"])
    assert "8 x H100" in result.output


def test_a_file_s_attention_is_the_estimate_s(files) -> None:
    for command in ("check", "estimate"):
        assert "attention fused" in run.invoke(app, [command, "--params", files["PARAMS"]]).output


NET, WEIGHTS, BATCH = dense(width=64), jnp.ones((6, 3)), jnp.ones((4, 6))


def loss(params, batch):
    return jnp.mean(batch @ params)


COUNTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "estimate": ("samples", lambda x: wse.estimate(NET, samples=x)),
    "estimate of a step": ("batch", lambda x: wse.estimate(NET, batch=x)),
    "estimate of parts": (
        "micro_batch",
        lambda x: wse.estimate(NET, machine=wse.CS2(mode="streaming"), micro_batch=x),
    ),
    "estimate of copies": ("replicas", lambda x: wse.estimate(NET, replicas=x)),
    "estimate of a loss": (
        "batch_size",
        lambda x: wse.estimate(loss, WEIGHTS, BATCH, batch_size=x),
    ),
    "check": ("batch_size", lambda x: wse.check(loss, WEIGHTS, BATCH, batch_size=x)),
    "trace": ("batch_size", lambda x: wse.trace(loss, WEIGHTS, BATCH, batch_size=x)),
    "inference": ("batch", lambda x: wse.inference(NET, x)),
    "explore": ("samples", lambda x: wse.explore(NET, samples=x)),
    "explore of a step": ("batch", lambda x: wse.explore(NET, batch=x)),
    "choice": ("batch", lambda x: Choice(batch=x)),
    "compare": ("samples", lambda x: wse.compare(NET, samples=x, machines=["cs2"])),
    "compare of a step": ("batch", lambda x: wse.compare(NET, None, x, machines=["cs2"])),
    "port": ("samples", lambda x: wse.port(NET, samples=x, beside=["h100"])),
    "port of a step": ("batch", lambda x: wse.port(NET, None, x, beside=["h100"])),
    "port on several": ("systems", lambda x: wse.port(NET, systems=(1, x), beside=["h100"])),
    "sweep": ("batch", lambda x: wse.sweep(NET, [x])),
    "sweep on several": ("systems", lambda x: wse.sweep(NET, [100], systems=[x])),
    "cluster": ("systems", lambda x: wse.CS2(x)),
    "job": ("steps", lambda x: wse.job.Job(wse.job.Params(), steps=x)),
}
ODD = (0, -1, float("nan"), float("inf"), 2.5, "3", "", 10**19, 10**400, True, [3], 3j, np.ones(2))
OPTIONAL = ("batch", "micro_batch", "batch_size", "steps")


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("call", COUNTS)
@pytest.mark.parametrize("value", ODD, ids=lambda value: str(value)[:8])
def test_what_is_no_count_is_refused_in_one_line_by_its_name(call, value) -> None:
    name, asked = COUNTS[call]
    with pytest.raises((ValueError, TypeError), match=rf"^{name}( of \w+)? is .*must ") as found:
        asked(value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 250


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("value", [0, "", "yes", 2.0, [True]])
def test_whether_a_loss_returns_more_is_true_or_false(value) -> None:
    for asked in (wse.trace, wse.check, wse.estimate, wse.port):
        with pytest.raises(ValueError, match=r"has_aux is .*; it must be True or False"):
            asked(loss, WEIGHTS, BATCH, has_aux=value)
    assert wse.trace(loss, WEIGHTS, BATCH, has_aux=np.False_)  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("untyped")
def test_an_empty_mode_is_no_mode() -> None:
    for value in ("", 0, False):
        with pytest.raises(ValueError, match=r"mode is .*; it must be one of"):
            wse.check(NET, mode=value)  # pyright: ignore[reportArgumentType]
