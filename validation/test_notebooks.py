"""Every notebook runs at fast scale, shows a figure, and warns of nothing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
EXECUTED = ROOT / ".cache" / "notebooks"  # docs/conf.py shows these
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs(name: str, monkeypatch):
    import nbformat  # takes seconds, which every process that collects tests would pay
    from nbclient import NotebookClient

    # As in JupyterLab: figures appear below their cells, and programs are compiled as for users.
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    place = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=1500, kernel_name="python3", resources=place).execute()
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, EXECUTED / f"{name}.ipynb")
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in outputs), "it shows no figure"
    said = [out.text for out in outputs if out.output_type == "stream"]
    assert not any("Warning" in text for text in said), said
    shown = [
        out["data"]["text/plain"] for out in outputs if [*out.get("data", ())] == ["text/plain"]
    ]
    raw = re.compile(r"\barray\(|\bArray\(|\d{6,}\.py|np\.float|object at 0x")
    assert [text for text in (*shown, *said) if raw.search(text)] == []
