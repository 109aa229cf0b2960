"""Files of other kinds at the commands: one line that says what was given and what to give."""

import pytest
from typer.testing import CliRunner

from wse import _document
from wse.cli.main import app

BINARY = b"\x08\x07\x12\x07pytorch:\x00\x01\xff\xfe"
OWN = 'import jax.numpy as jnp\ndef step():\n    return lambda p, x: jnp.sum(x @ p["w"]), '
OWN += '{"w": jnp.ones((3, 2))}, jnp.ones((4, 3))\n'


def said(*words: str) -> str:
    """The one line that a command refuses with."""
    found = CliRunner().invoke(app, [*words])
    assert found.exit_code == 2
    assert isinstance(found.exception, SystemExit)
    (line,) = found.output.splitlines()
    return line


@pytest.mark.parametrize("only", [(), ("--validate_only",), ("--compile_only",)])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("net.onnx", "ONNX, which has no lines of yours and is not read"),
        ("net.pt", "a pickle, which may run anything"),
        ("net.safetensors", "weights without a model"),
        ("net.gguf", "weights without the operations of a model"),
    ],
)
def test_a_run_says_what_it_was_given(tmp_path, name, what, only):
    (tmp_path / name).write_bytes(BINARY)
    line = said("run", "CSX", "--params", str(tmp_path / name), *only)
    assert what in line
    assert line.endswith(
        "a run is told by a file in YAML: write one, and if the model is your own pass "
        "--model package.module:Class, a module of Flax"
    )


def test_a_configuration_says_no_training(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "gpt2", "n_layer": 2}')
    line = said("run", "CSX", "--params", str(path))
    assert "which says no training; wse estimate, check and port read it" in line


@pytest.mark.parametrize("option", ["--params", "--machine"])
def test_folders_and_empty_files_are_called_so(tmp_path, option):
    other = [] if option == "--params" else ["--params", str(tmp_path / "empty.yaml")]
    (tmp_path / "empty.yaml").write_text("\n# nothing\n")
    (tmp_path / "folder.yaml").mkdir()
    if option == "--params":
        assert "is a folder; it must be" in said(
            "run", "CSX", option, str(tmp_path / "folder.yaml")
        )
    line = said("run", "CSX", *other, option, str(tmp_path / "empty.yaml"))
    assert "empty.yaml is empty; it must hold names and values" in line


def test_what_stands_before_a_name_may_be_a_file(tmp_path):
    named = "--example", "2x3"
    assert "which is ONNX" in said("estimate", "--model", "net.onnx:Net", *named)
    assert "it must name a function as package.module:function" in said(
        "estimate", "--model", ".:Net", *named
    )


@pytest.mark.parametrize("name", ["", "none.npz"])
def test_data_that_is_no_file_is_refused(tmp_path, name):
    (tmp_path / "own.py").write_text(OWN)
    asked = ["port", f"{tmp_path / 'own.py'}:step", "--json", "--data", str(tmp_path / name)]
    assert "which is no file; it must be an .npz" in said(*asked)


def test_of_thousands_of_names_fifty_are_listed():
    names = [f"layer_{i}" for i in range(4000)]
    line = _document.nearest("q", names)
    assert line.endswith(f"{names[49]} and 3950 more")
    assert _document.nearest("q", names[:50]).endswith(names[49])
