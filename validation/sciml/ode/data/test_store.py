"""A store whose writer was killed: nothing is lost but the chunk that was being written."""

import subprocess
import sys
import time

import pytest
import xarray as xr

from sciml.ode import RungeKutta4, accumulate, lotka_volterra, open_simulations

KILLED = """
import sys, time
from sciml.ode import RungeKutta4, accumulate, lotka_volterra
from sciml.ode.data import store
write = store.write
def slowly(*arguments):
    time.sleep(0.05)
    write(*arguments)
store.write = slowly
accumulate(lotka_volterra(), sys.argv[1], samples=2000, method=RungeKutta4(chunk=4))
"""


@pytest.mark.validation
def test_a_kill_leaves_a_readable_store_that_goes_on(tmp_path):
    path, other = tmp_path / "killed.zarr", tmp_path / "whole.zarr"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                time.sleep(0.1)
                if path.exists() and open_simulations(path).sizes["sample"] >= 12:
                    break
        finally:
            process.kill()
    left = open_simulations(path)
    count = left.sizes["sample"]
    assert count >= 12
    method = RungeKutta4(chunk=4)
    left.load()
    grown = accumulate(lotka_volterra(), path, samples=count + 8, method=method)
    one_go = accumulate(lotka_volterra(), other, samples=count + 8, method=method)
    xr.testing.assert_equal(grown.load(), one_go.load())
    xr.testing.assert_equal(left, one_go.isel(sample=slice(count)))
