"""The page on own systems runs as it is printed."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("quick_compilation")
PAGE = Path(__file__).parents[3] / "docs" / "own-ode.md"


def test_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) >= 7
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    first = [line for line in blocks[0].splitlines() if line]
    statement = first[3:]
    assert len(statement) <= 10, "the title promises ten lines"
