"""The pages on own systems run as they are printed."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("quick_compilation")
DOCS = Path(__file__).parents[3] / "docs"
PAGES = {  # -> how many blocks of code it has
    "own-ode": 3,
    "priors": 2,
    "conditions": 2,
    "noise": 3,
    "solving": 3,
    "many-simulations": 2,
}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.S)


@pytest.mark.parametrize("page", PAGES)
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(blocks(page)) == PAGES[page]
    exec(compile("\n".join(blocks(page)), page, "exec"), {})


def test_the_title_promises_ten_lines():
    first = [line for line in blocks("own-ode")[0].splitlines() if line]
    assert len(first[3:]) <= 10
