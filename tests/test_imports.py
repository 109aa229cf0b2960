"""What an import costs, counted in the libraries it brings along; seconds are never asserted."""

import subprocess
import sys

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


def test_the_machine_runs_without_the_science():
    assert "sciml" not in loaded_by("import wse; [getattr(wse, name) for name in dir(wse)]")


def test_the_count_finds_what_is_there():
    assert "matplotlib" in loaded_by("import matplotlib")
