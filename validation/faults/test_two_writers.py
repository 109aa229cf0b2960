"""Two processes that begin one store of simulations at the same moment."""

import subprocess
import sys

import numpy as np

from sciml.ode import RungeKutta4, accumulate, lotka_volterra, open_simulations


def test_two_processes_may_start_one_store(tmp_path):
    program = """
import sys
from sciml.ode import RungeKutta4, accumulate, lotka_volterra
print("ready", flush=True)
sys.stdin.readline()
data = accumulate(lotka_volterra(), sys.argv[1], samples=8, method=RungeKutta4(chunk=4))
print(float(data.observation.sum()))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "store.zarr")]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    both = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    method = RungeKutta4(chunk=4)
    alone = accumulate(lotka_volterra(), tmp_path / "alone.zarr", samples=8, method=method)
    found = open_simulations(tmp_path / "store.zarr").load()
    np.testing.assert_array_equal(found.parameters, alone.parameters)
    np.testing.assert_allclose(found.observation, alone.observation, rtol=1e-4)
    assert [out for out, _ in answers] == [f"{float(found.observation.sum())}\n"] * 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["alone.zarr", "store.zarr"]
