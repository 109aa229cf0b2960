"""The types of the whole project hold, checked beside the other tests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_types_hold():
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
