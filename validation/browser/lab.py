"""JupyterLab on a copy of the notebooks, and a page of headless Chromium that works in it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOKEN = "browser-test"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
SIZE = {"width": 1280, "height": 1600}
# Cells that are out of sight stay in the page, so that all outputs can be looked at.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"adaptive-theme": True},  # dark where the browser asks for it
}
# A progress bar is gone when its loop ends, so the page notes that there was one.
WATCH = """
window.seen = new Set();
new MutationObserver(() => {
    for (const bar of document.querySelectorAll('.widget-hprogress')) window.seen.add(bar);
}).observe(document, {childList: true, subtree: true});
"""
ERROR = ".jp-Notebook [data-mime-type='application/vnd.jupyter.error']"
NOISE = ("favicon", "ResizeObserver loop")  # of browsers, not of a page


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """Serve JupyterLab on a folder; yields its address."""
    for name, value in SETTINGS.items():
        path = folder / ".settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.news_url=None"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    places = {
        "JUPYTERLAB_SETTINGS_DIR": str(folder / ".settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / ".workspaces"),
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "PYTHONPATH": str(ROOT),
    }
    environment = {name: text for name, text in os.environ.items() if name != "MPLBACKEND"}
    with (folder / ".server.log").open("w") as log:
        server = subprocess.Popen(command, env=environment | places, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(address, server, folder / ".server.log")
            yield address
        finally:
            server.terminate()
            server.wait(timeout=30)


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers.

    Raises:
        RuntimeError: it ended, or did not answer within a minute.
    """
    for _ in range(120):
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab ended at once:\n{log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise RuntimeError(f"JupyterLab did not answer at {address}:\n{log.read_text()[-2000:]}")


@contextmanager
def browser(scheme: str = "light") -> Iterator[Any]:
    """Start Chromium; yields a page whose `complaints` are the errors of its console."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        page = chromium.new_page(viewport=SIZE, color_scheme=scheme)
        page.set_default_timeout(60_000)
        page.add_init_script(WATCH)
        yield page
        chromium.close()


class Notebook:
    """One notebook, open in a page.

    Attributes:
        complaints: errors of the browser's console and of the page's scripts.
    """

    def __init__(self, page: Any, address: str, name: str):
        """Open it, and wait for its kernel."""
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self.listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(f"{address}/lab/tree/{name}.ipynb?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        # The status bar says idle when the kernel is; the toolbar says so too early.
        page.wait_for_selector(".jp-StatusBar-TextItem:has-text('| Idle')", timeout=90_000)

    def listen(self, message: Any) -> None:
        """Keep what the console calls an error."""
        if message.type == "error" and not any(noise in message.text for noise in NOISE):
            self.complaints.append(message.text)

    def run(self, timeout_s: float) -> None:
        """Run all cells from the menu and wait until all have run, or one has failed."""
        self.page.click("text=Run >> nth=0")
        self.page.click("li[data-command='runmenu:run-all']")
        self.page.wait_for_function(
            """error => {
                const cells = [...document.querySelectorAll('.jp-CodeCell')];
                const open = cells.filter(cell => !cell.querySelector('.jp-InputPlaceholder'));
                const prompts = open.map(cell => cell.querySelector('.jp-InputPrompt'));
                const ran = prompts.every(prompt => /\\[\\d+\\]/.test(prompt.textContent));
                const status = document.querySelector('#jp-main-statusbar').textContent;
                return (ran && status.includes('| Idle')) || document.querySelector(error) !== null;
            }""",
            arg=ERROR,
            timeout=1000 * timeout_s,
        )
        self.page.wait_for_timeout(1000)  # until the last figure is drawn

    def count(self, selector: str) -> int:
        """Return how many elements of the notebook there are."""
        return self.page.locator(f".jp-Notebook {selector}").count()

    def errors(self) -> list[str]:
        """Return the error outputs of cells."""
        return [text[-2000:] for text in self.page.locator(ERROR).all_inner_texts()]

    def bars(self) -> int:
        """Return how many progress bars there have been."""
        return self.page.evaluate("() => window.seen.size")

    def photograph(self, path: Path) -> None:
        """Keep a picture of the whole notebook, however long."""
        panel = "document.querySelector('.jp-WindowedPanel-outer')"
        height = int(self.page.evaluate(f"() => {panel}.scrollHeight")) + 120
        self.page.set_viewport_size({"width": SIZE["width"], "height": min(16_000, height)})
        self.page.evaluate(f"() => {panel}.scrollTo(0, 0)")
        self.page.wait_for_timeout(800)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
        self.page.set_viewport_size(SIZE)
