"""Every notebook: equal to its source, and thin. `validation/test_notebooks.py` runs them."""

import ast
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NAMES = sorted({p.stem for p in [*FOLDER.glob("*.ipynb"), *(FOLDER / "src").glob("*.py")]})


@cache
def _pair() -> dict[str, Any]:
    """Return what `pair.py` has. It takes seconds, which each process that collects would pay."""
    return runpy.run_path(str(FOLDER / "pair.py"))


def render(text: str) -> str:
    """Return the notebook of its source."""
    return _pair()["render"](text)


def read(text: str) -> Any:
    """Return a notebook of its text."""
    import nbformat  # as slow

    return nbformat.reads(text, as_version=4)


def faults(notebook: Any) -> list[str]:
    """Return what makes a notebook more than a thin story told with calls."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    code = [cell.source for cell in cells]
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    lines = [[line for line in source.splitlines() if line.strip()] for source in code]
    python = "\n".join(line for cell in lines for line in cell if line[0] not in "%!")
    nodes = list(ast.walk(ast.parse(python)))
    found = {
        "a class is defined": any(isinstance(n, ast.ClassDef) for n in nodes),
        "more than one def": sum(isinstance(n, ast.FunctionDef) for n in nodes) > 1,
        "a cell of more than 12 lines": any(len(cell) > 12 for cell in lines),
        "more than 80 lines of code": sum(map(len, lines)) > 80,
        "less than half of the cells are prose": len(prose) < len(code),
        "it begins without a title": not notebook.cells[0].source.startswith("# "),
        "no cell tagged assert": not any("assert" in c.metadata.get("tags", ()) for c in cells),
    }
    return [fault for fault, there in found.items() if there]


@pytest.mark.parametrize("name", NAMES)
def test_is_paired(name: str):
    source, notebook = FOLDER / "src" / f"{name}.py", FOLDER / f"{name}.ipynb"
    assert source.exists(), f"{notebook} has no {source}: edit the source, then `make notebooks`"
    assert notebook.exists(), f"{source} has no notebook: `make notebooks`"
    same = notebook.read_text() == render(source.read_text())
    assert same, f"{notebook} differs from {source}: `make notebooks`"


@pytest.mark.parametrize("name", NAMES)
def test_is_thin(name: str):
    text = (FOLDER / "src" / f"{name}.py").read_text()
    assert faults(read(render(text))) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_for_the_tests_alone_is_folded_away(name: str):
    notebook = read((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook.cells:
        hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert hidden == ("assert" in cell.metadata.get("tags", ()))


CODE = "# %%\nx = 1\n"
PROSE = "# %% [markdown]\n# # Title\n\n"
CLAIM = PROSE + '# %% tags=["assert"]\nassert x == 1\n'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (PROSE + "# %%\nclass A: ...\n" + CLAIM, "a class is defined"),
        (PROSE + "# %%\ndef f(): ...\n\ndef g(): ...\n" + CLAIM, "more than one def"),
        (PROSE + "# %%\n" + "x = 1\n" * 13 + CLAIM, "a cell of more than 12 lines"),
        (8 * (PROSE + "# %%\n" + "x = 1\n" * 11) + CLAIM, "more than 80 lines of code"),
        (PROSE + CODE + CODE + CLAIM, "less than half of the cells are prose"),
        (CODE + PROSE + CLAIM, "it begins without a title"),
        (PROSE + CODE, "no cell tagged assert"),
    ],
)
def test_a_planted_fault_is_found(text: str, fault: str):
    assert faults(read(render(text))) == [fault]


def test_remaking_changes_nothing_and_ids_differ():
    text = PROSE + CODE + PROSE + CODE + CLAIM
    notebook = read(render(text))
    assert render(text) == render(text)
    assert len({cell.id for cell in notebook.cells}) == 6
    assert faults(notebook) == []


def test_tags_stay_and_outputs_do_not_exist():
    notebook = read(render(CLAIM))
    assert notebook.cells[1].metadata == {"tags": ["assert"], "jupyter": {"source_hidden": True}}
    assert notebook.cells[1].outputs == []
    assert notebook.metadata.kernelspec.name == "python3"
