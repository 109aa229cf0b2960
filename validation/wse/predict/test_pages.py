"""The pages of the machine and of the estimate: their code runs, and says what stands beside it."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[3] / "docs"


def said(page: str) -> dict[str, object]:
    """Run a page's Python and return what its commented lines gave, by the comment."""
    names: dict = {}
    found: dict[str, object] = {}
    for block in re.findall(
        r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL
    ):
        exec(compile(block, page, "exec"), names)
        for line in block.splitlines():
            code, _, comment = line.partition("  #")
            assigns = "=" in code.partition("(")[0]
            if comment and not assigns and not code.startswith((" ", "import", "from", "print")):
                found[comment.strip()] = eval(code, names)
    plt.close("all")
    return found


def test_the_machine_s_page() -> None:
    values = said("machine.md")
    assert round(values["810.2"], 1) == 810.2
    slow = values["36.4, where one CS-2 of the catalogue takes 8.9"]
    assert round(slow, 1) == 36.4
    assert values["126: 6.7 million samples/s"] == 126
    assert values["3660 cores in 464 cycles"] == 3660


def test_the_estimate_s_page(tmp_path, monkeypatch) -> None:
    # Rates measured beside other tests are no use: each kernel is timed once, and not remembered.
    monkeypatch.setenv("SCIML_CACHE", str(tmp_path))
    for name, value in {"LEAST_S": 1e-6, "ROUNDS": 1}.items():
        monkeypatch.setattr(f"wse.computer.measure.{name}", value)
    monkeypatch.chdir(tmp_path)
    values = said("estimate.md")
    assert values["6,738,415,616"] == 6_738_415_616
    assert round(values["43.7"], 1) == 43.7
    (name,) = [key for key in values if "attention, embedding and head stay dense" in key]
    assert round(values[name], 2) == float(name.split(":")[0])
