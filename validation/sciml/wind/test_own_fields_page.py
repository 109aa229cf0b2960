"""The page on one's own fields runs as it stands, with every claim it asserts."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("quick_compilation")
PAGE = Path(__file__).parents[3] / "docs" / "own-fields.md"


def test_every_block_of_the_page_runs(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 9
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "u10 converted from knots to m s-1" in said
    assert "a random split tests on what it trained on" in said
