"""Some of the cases of `mutations.py`: what is damaged is refused in a line, or as it was."""

import subprocess
import sys
from pathlib import Path

CASES = 280


def test_no_reader_lets_a_fault_of_a_library_through():
    command = [sys.executable, str(Path(__file__).with_name("mutations.py")), "--cases", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert int(done.stdout.split()[-8]) > CASES / 2  # refused
