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


@pytest.mark.slow
def test_builds_without_a_warning_and_is_read_without_a_network():
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["docs", "docs/_build/html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES.rglob("*.html")}
    assert {
        path.name: FETCHED.findall(text) for path, text in pages.items() if FETCHED.search(text)
    } == {}
    formulas = (PAGES / "estimate.html").read_text(encoding="utf-8")
    assert formulas.count("<math") > 40
    assert "\\text{" not in re.sub(r"<pre.*?</pre>", "", formulas, flags=re.DOTALL)
