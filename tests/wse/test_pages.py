"""The pages on check, layouts and mesh: their code runs, and gives what stands beside it."""

import ast
import re
from pathlib import Path

import pytest

from wse import layout
from wse.checks import RULES

DOCS = Path(__file__).parents[2] / "docs"


def literal(comment: str):
    """The value that a comment begins with, or None."""
    for text in (comment, comment.split(": ")[0], comment.split(", ")[0]):
        try:
            return ast.literal_eval(text.strip())
        except (SyntaxError, ValueError):
            continue
    return None


def claims(block: str):
    """Yield each line of a block that is an expression with a value beside it."""
    for line in block.splitlines():
        code, mark, comment = line.partition("  # ")
        if mark and (value := literal(comment)) is not None:
            yield code.strip(), value


@pytest.mark.parametrize(("page", "least"), [("operator-check", 3), ("layout", 6), ("mesh", 7)])
def test_code_runs_and_gives_what_the_page_says(page, least):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    names: dict = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, page, "exec"), names)
        for code, value in claims(block):
            found = eval(code, names)
            expected = pytest.approx(value, rel=0.005) if isinstance(value, float) else value
            assert found == expected, code
            checked += 1
    assert checked >= least


@pytest.mark.parametrize("page", ["layout", "mesh"])
def test_figures_are_there(page):
    for figure in re.findall(r"\]\((figures/[^)]+)\)", (DOCS / f"{page}.md").read_text()):
        assert (DOCS / figure).stat().st_size > 1000


def test_the_table_of_images():
    wafer = layout.Wafer.of()
    text = (DOCS / "layout.md").read_text()
    filters = (32, 64, 128, 256, 512, 1024)
    for net in (
        layout.unet((5120, 5120), filters, inputs=3),
        layout.unet((160, 512, 512), outputs=5, strided=True),
        layout.unet((512, 512, 512)),
    ):
        assert f"{layout.needed_bytes(net, wafer):,}" in text
    assert "largest is 7168" in text
    assert "largest cube is 408" in text
    wide = [layout.unet((n, n), filters, inputs=3) for n in (7168, 7200)]
    cubes = [layout.unet((n, n, n), strided=True) for n in (408, 416)]
    for fits, exceeds in (wide, cubes):
        assert layout.needed_bytes(fits, wafer) <= wafer.data_bytes
        assert layout.needed_bytes(exceeds, wafer) > wafer.data_bytes


def test_what_the_page_of_the_check_says_of_sort_is_so():
    named = {name for rule in RULES for name in rule.operations}
    assert not named & {"sort", "cumsum", "sin", "cos"}
