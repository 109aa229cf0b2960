"""Remake notebooks/NN_name.ipynb from notebooks/src/NN_name.py: clean, and the same every time.

Developers edit the text; users open the notebooks. A cell's id is a digest of what it says, so
an edit changes one cell in a review and remaking changes nothing.
"""

import hashlib
from collections import Counter
from pathlib import Path

import jupytext
import nbformat

HERE = Path(__file__).parent
# Any Jupyter finds this kernel: it is the Python that Jupyter itself runs in.
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def render(text: str) -> str:
    """Turn one percent script into the JSON of a notebook without outputs."""
    notebook = jupytext.reads(text, fmt="py:percent")
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        cell.id = f"{digest}-{seen[digest]}" if seen[digest] else digest
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k == "tags"})
        if "assert" in cell.metadata.get("tags", ()):  # for the tests; a click shows it
            cell.metadata["jupyter"] = nbformat.from_dict({"source_hidden": True})
        seen[digest] += 1
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    for source in sorted((HERE / "src").glob("*.py")):
        (HERE / f"{source.stem}.ipynb").write_text(render(source.read_text()))
