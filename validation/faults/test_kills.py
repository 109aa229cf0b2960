"""Some kills of each program of `kills.py`: nothing is lost, and nothing is left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.xla_flags import QUICK


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the processes that it kills")
def test_what_is_killed_goes_on_to_the_same_result():
    harness = Path(__file__).with_name("kills.py")
    numbers = {"--kills": "10", "--aimed": "10", "--each": "2", "--seed": "7"}
    call = [sys.executable, str(harness), *(word for pair in numbers.items() for word in pair)]
    env = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "XLA_FLAGS": QUICK}
    done = subprocess.run(call, capture_output=True, text=True, cwd=harness.parents[2], env=env)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.splitlines()[-1].startswith("20 kills"), done.stdout
