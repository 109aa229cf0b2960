"""Random losses on several devices, as `fuzz.py` draws them: none wrong, few refused."""

import ast
import subprocess
import sys
from pathlib import Path

PAIRS, MOST_REFUSED = 200, 0.05


def test_random_losses_have_the_gradients_of_plain_jax():
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), "--pairs", str(PAIRS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    counts = ast.literal_eval(done.stdout.splitlines()[-1])
    assert counts["equal"] >= (1 - MOST_REFUSED) * PAIRS, done.stdout
