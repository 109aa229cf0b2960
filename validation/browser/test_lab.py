"""The first hour, in the browser that its reader has: JupyterLab in headless Chromium.

Notebooks are opened, run from the menu, and looked at: no cell and no script fails, figures,
tables and progress bars are there, sliders move what they should. Pictures of the pages are kept
in `.cache/browser/`.
"""

import importlib.util
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from validation.browser.lab import CHROMIUM, ROOT, Notebook, browser, lab

VIEWER = """\
# %%
import numpy as np
from sciml import wind
from sciml.figure import view
truth = wind.gaussian(seed=0, snapshots=3, n=32).wind_speed
coarse = wind.block_mean(truth.values, 4)
ways = {"bicubic": wind.bicubic, "conservative": wind.conservative_bicubic}
view(truth, {name: np.asarray(way(coarse, 4)) for name, way in ways.items()}, 4)
"""
PICTURES = ROOT / ".cache" / "browser"
CHANGED = "old => document.querySelector('.jp-Notebook .widget-image').src !== old"
MISSING = [name for name in ("playwright", "jupyterlab") if not importlib.util.find_spec(name)]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, as `apt-get install chromium`"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}: pip install them"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """JupyterLab on a copy of the notebooks, so that the originals stay without outputs."""
    folder: Path = tmp_path_factory.mktemp("lab")
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(path, folder)
    render = runpy.run_path(str(ROOT / "notebooks" / "pair.py"))["render"]
    (folder / "viewer.ipynb").write_text(render(VIEWER))
    with lab(folder) as found:
        yield found


def ran(page, address: str, name: str, picture: str) -> Notebook:
    """Open and run a notebook; refuse errors in its cells and in the browser's console."""
    notebook = Notebook(page, address, name)
    try:
        notebook.run(timeout_s=240)
    finally:
        notebook.photograph(PICTURES / f"{picture}.png")
    assert notebook.errors() == []
    assert notebook.complaints == []
    return notebook


def test_the_first_ten_minutes(address):
    with browser() as page:
        notebook = ran(page, address, "00_ten_minutes", "00_ten_minutes")
        assert notebook.count("[data-mime-type='image/png'] img") == 1
        assert notebook.count("[data-mime-type='text/html'] table") == 3  # fit, answer, time
        assert notebook.bars() >= 3  # of a simulation and two fits


def test_training_times_on_a_dark_page(address):
    with browser("dark") as page:
        notebook = ran(page, address, "07_training_times", "07_training_times_dark")
        assert page.get_attribute("body", "data-jp-theme-light") == "false"
        assert notebook.count("[data-mime-type='image/png'] img") == 2
        assert notebook.count("[data-mime-type='text/html'] table") >= 3


def test_fields_at_a_click(address):
    with browser() as page:
        notebook = ran(page, address, "viewer", "viewer")
        picture = page.locator(".jp-Notebook .widget-image")
        pictures = [picture.get_attribute("src")]
        page.click(".widget-toggle-button:has-text('bicubic') >> nth=0")
        page.wait_for_function(CHANGED, arg=pictures[-1])
        pictures.append(picture.get_attribute("src"))
        page.locator(".widget-hslider .noUi-handle").press("ArrowRight")
        page.wait_for_function(CHANGED, arg=pictures[-1])
        notebook.photograph(PICTURES / "viewer_moved.png")
        assert notebook.complaints == []


def rate_in(text: str) -> float:
    """Return the samples per second that the explorer's table says."""
    (rate,) = re.findall(r"samples/s\s+([\d,.]+)", text)
    return float(rate.replace(",", ""))


def test_sliders_move_the_estimate(address):
    with browser() as page:
        notebook = ran(page, address, "08_would_it_port", "08_would_it_port")
        picture, table = ".jp-Notebook .widget-image", ".jp-Notebook .widget-html"
        before = page.get_attribute(picture, "src"), page.inner_text(table)
        assert "1 x CS-2, streaming" in before[1]
        handle = page.locator(".widget-hslider:has-text('systems') .noUi-handle")
        handle.press("ArrowRight")
        page.wait_for_selector(f"{table}:has-text('2 x CS-2, streaming')")
        rates = [rate_in(text) for text in (before[1], page.inner_text(table))]
        assert 1.9 < rates[1] / rates[0] < 2.01
        assert page.get_attribute(picture, "src") != before[0]
        notebook.photograph(PICTURES / "08_would_it_port_moved.png")
        assert notebook.complaints == []
