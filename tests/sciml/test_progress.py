"""Bars: shown by default, and hidden by the environment or by who knows that they are short."""

import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from sciml.ode.methods import blocks

BAR = """
from tqdm.auto import tqdm
from sciml._progress import hidden
list(tqdm(range(3), **hidden({when})))
"""


@pytest.mark.parametrize(
    ("when", "environment", "shown"),
    [(False, {}, True), (False, {"TQDM_DISABLE": "1"}, False), (True, {}, False)],
)
def test_the_environment_hides_a_bar_that_would_be_shown(when, environment, shown):
    """In a process of its own, since tqdm reads the variable when it is imported."""
    inherited = {k: v for k, v in os.environ.items() if k != "TQDM_DISABLE"}
    command = [sys.executable, "-c", BAR.format(when=when)]
    ran = subprocess.run(
        command, env=inherited | environment, capture_output=True, text=True, check=True
    )
    assert ("3/3" in ran.stderr) is shown


@pytest.mark.parametrize(
    ("rows", "progress", "disabled"),
    [(600, True, False), (600, False, True), (10, True, True)],
)
def test_blocks_leave_the_choice_to_the_environment(monkeypatch, rows, progress, disabled):
    """`disable=False` would overrule it, so nothing is said where the bar may be shown."""
    asked = []
    shown = blocks.tqdm
    monkeypatch.setattr(blocks, "tqdm", lambda **k: asked.append(k) or shown(disable=True))
    method = SimpleNamespace(chunk=256, dtype="float32")
    given = np.arange(rows, dtype=np.float32)[:, None]
    found = blocks.in_blocks(jax.jit(lambda x: 2 * x), (given,), method, progress=progress)
    np.testing.assert_array_equal(found, 2 * given)
    assert asked[0].get("disable") == (True if disabled else None)
