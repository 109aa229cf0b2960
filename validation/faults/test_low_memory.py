"""A limit of the process is a limit of its simulations."""

import subprocess
import sys

import pytest

LIMITED = """
import resource, psutil, sciml
neuron = sciml.ode.fitzhugh_nagumo()
sciml.simulate(neuron, samples=10)
taken = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (taken + 600_000_000,) * 2)
try:
    sciml.simulate(neuron, samples=500_000)
except ValueError as error:
    print(error)
print(int(sciml.simulate(neuron, samples=2000).valid.sum()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_limit_of_the_process_counts():
    made = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    refused, valid = made.stdout.splitlines()
    assert "500000 samples of 4000 bytes" in refused
    assert valid == "2000"
