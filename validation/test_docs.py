"""The documentation builds, strictly and offline, and needs no network to be read."""

import re
import shutil
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
}


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
    assert all(text.count('<form class="bd-search') <= 1 for text in pages.values())


@pytest.mark.slow
@pytest.mark.parametrize("query", SEARCHES)
def test_a_search_finds_the_right_page_first(query):
    """In a browser: the ranking is that of the site's own script. After the build above."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as browsers:
        path = shutil.which("chromium") or browsers.chromium.executable_path
        if not Path(path).exists():
            pytest.skip("there is no Chromium")
        browser = browsers.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((PAGES / "search.html").as_uri() + "?q=" + query.replace(" ", "+"))
        first = page.locator("#search-results ul.search li a").first
        first.wait_for(timeout=60_000)
        page.wait_for_timeout(2000)  # results come one by one, the best on top
        found = page.locator("#search-results ul.search li a").first.get_attribute("href") or ""
        browser.close()
    assert Path(found.partition("?")[0]).stem == SEARCHES[query]
