"""The page on nets for wind runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "wind-models.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.usefixtures("quick_compilation")


def test_every_block_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, "wind-models.md", "exec"), names)
