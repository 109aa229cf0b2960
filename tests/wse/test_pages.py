"""The pages on check and mesh: their code runs, and gives what stands beside it."""

import ast
import re
from pathlib import Path

import pytest

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


def run(page: str) -> int:
    """Run a page's Python and compare it with the values beside it; return how many there are."""
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
    return checked


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("operator-check", 3), ("mesh", 7), ("port", 4)])
def test_code_runs_and_gives_what_the_page_says(page, least):
    assert run(page) >= least


@pytest.mark.parametrize("page", ["layout", "mesh"])
def test_figures_are_there(page):
    for figure in re.findall(r"\]\((figures/[^)]+)\)", (DOCS / f"{page}.md").read_text()):
        assert (DOCS / figure).stat().st_size > 1000


def test_what_the_page_of_the_check_says_of_sort_is_so():
    named = {name for rule in RULES for name in rule.operations}
    assert not named & {"sort", "cumsum", "sin", "cos"}
