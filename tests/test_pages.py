"""Pages are plain Markdown with tables that fit, and their numbers are those of the CSV files."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TABLES = runpy.run_path(str(DOCS / "tables.py"))
PAGES = sorted({*DOCS.glob("*.md"), *DOCS.glob("lab/*.md"), *DOCS.glob("results/*.md")})
MADE = {"bibliography.md"}  # by a script, with its own tests
COLUMNS = 6  # of a table that fits the column of the site
WORDS = 20_000  # of README and guides: what one person reads; records belong to docs/lab


def name(path: Path) -> str:
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("path", TABLES["pages"](), ids=name)
def test_tables_are_those_of_the_results(path):
    text = path.read_text(encoding="utf-8")
    assert TABLES["made"](text) == text, "run python docs/tables.py"


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in MADE], ids=name)
def test_tables_have_few_columns(path):
    wide = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and re.sub(r"`[^`]*`|\$[^$]*\$", "", line).count("|") - 1 > COLUMNS
    ]
    assert wide == []


def words(text: str) -> int:
    """Return how many words a text has outside its code blocks."""
    prose = re.sub(r"^```.*?^```\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return sum(bool(re.search(r"\w", word)) for word in prose.split())


def test_guides_are_short_enough_to_be_read():
    guides = [ROOT / "README.md", *(path for path in PAGES if path.parent == DOCS)]
    count = sum(words(path.read_text("utf-8")) for path in guides if path.name not in MADE)
    assert count <= WORDS, "say it once; a record of what was tried belongs to docs/lab"


def test_words_of_code_are_not_counted():
    assert words("Two words | - |\n```python\nx = 1\n```\n`one.more`") == 3


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: path.name)
def test_a_code_host_shows_all_of_it(path):
    text = path.read_text(encoding="utf-8")
    assert "{py:" not in text
    assert "[](" not in text
    directives = set(re.findall(r"^```\{([\w-]+)\}", text, re.MULTILINE))
    assert directives <= {"toctree"}


@pytest.mark.parametrize("path", [path for path in PAGES if path.name not in MADE], ids=name)
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!http)([^)#\s]+)(?:#[^)]*)?\)", text)
    made = ("notebooks/", "bibliography.md", "api/")
    assert [x for x in links if not x.startswith(made) and not (path.parent / x).exists()] == []
