"""What an import costs, counted in the libraries it brings along; seconds are never asserted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

# Imported where they are used, never by `import sciml` or `import wse`.
HEAVY = {"jinja2", "matplotlib", "numpyro", "pandas", "pooch", "scipy", "torch", "xarray", "yaml"}


def loaded_by(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after `code`."""
    report = "import sys; print('\\nLOADED', *sys.modules)"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = done.stdout.rpartition("\nLOADED ")[2].split()
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", ["sciml", "wse"])
def test_a_package_brings_nothing_heavy_but_jax(package: str):
    # What JAX and Flax bring by themselves is not ours to count.
    brought = loaded_by(f"import {package}") - loaded_by("import jax, flax.nnx")
    assert brought & HEAVY == set()


@pytest.mark.parametrize("package", ["sciml", "wse"])
def test_help_needs_no_jax(package: str):
    code = f"""
import sys
from importlib.metadata import entry_points
(command,) = entry_points(group="console_scripts", name="{package}")
sys.argv = ["{package}", "--help"]
try:
    command.load()()
except SystemExit as stop:
    assert not stop.code, stop.code
"""
    assert loaded_by(code) & (HEAVY | {"flax", "jax", "optax"}) == set()


@pytest.mark.slow
def test_the_machine_runs_without_the_science():
    assert "sciml" not in loaded_by("import wse; [getattr(wse, name) for name in dir(wse)]")


def test_the_count_finds_what_is_there():
    assert "matplotlib" in loaded_by("import matplotlib")


@pytest.mark.slow
def test_names_of_the_pages_are_there_once_the_package_is_imported():
    root = Path(__file__).parents[1]
    text = "".join(path.read_text() for path in [root / "README.md", *root.glob("docs/*.md")])
    names = {*re.findall(r"`((?:sciml|wse)(?:\.[A-Za-z_]\w*)+)(?!\.md|\w)", text)}
    assert len(names) > 40
    code = f"import sciml, wse\nfor name in {sorted(names)}: eval(name)"
    assert loaded_by(code)
