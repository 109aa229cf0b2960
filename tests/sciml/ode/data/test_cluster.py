"""Simulations by the processes of `dask.distributed`, of which one is killed on its way."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import xarray as xr

from sciml.ode import RungeKutta4, accumulate, lotka_volterra, open_simulations

pytestmark = pytest.mark.usefixtures("quick_compilation")
ROOT = Path(__file__).parents[4]

PROGRAM = """
import json, os, signal, sys, threading, time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from numpyro.distributions import Uniform

import sciml
from sciml.ode import RungeKutta4, accumulate, lotka_volterra

# A script of its own, as users have one: what workers are given is not importable there.
def slow(p, rng):
    time.sleep(0.01)
    return p["rate"] * np.arange(3) + rng.normal(size=3)

def kill_one(when, pids):
    while not when():
        time.sleep(0.01)
    os.kill(pids.pop(), signal.SIGKILL)

def main():
    path = Path(sys.argv[1])
    two = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with two as cluster, Client(cluster) as client:
        pids = [*client.run(os.getpid).values()]
        marks = lambda: len([*path.glob("written/c/*")]) >= 4
        killer = threading.Thread(target=kill_one, args=(marks, pids))
        killer.start()
        accumulate(lotka_volterra(), path, samples=400, method=RungeKutta4(chunk=10), client=client)
        killer.join()
        given = {"prior": {"rate": Uniform(0.0, 1.0)}, "samples": 60, "seed": 3}
        alone = sciml.ode.black_box(slow, **given, scheduler="synchronous")
        client.wait_for_workers(2)
        other = sciml.ode.black_box(slow, **given, scheduler=client)
        found = {"left": len(pids), "black box": bool(other.equals(alone))}
    print(json.dumps(found))

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_and_doubles_nothing(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "script.py").write_text(textwrap.dedent(PROGRAM))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1"}
    process = subprocess.Popen(
        [sys.executable, "script.py", "store.zarr"],  # relative: workers have a folder of their own
        cwd=tmp_path, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        printed, errors = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, errors[-3000:]
    assert printed.splitlines()[-1] == '{"left": 1, "black box": true}'
    alone = accumulate(
        lotka_volterra(), tmp_path / "alone.zarr", samples=400, method=RungeKutta4(chunk=10)
    )
    found = open_simulations(tmp_path / "store.zarr")
    assert len([*(tmp_path / "store.zarr" / "written" / "c").iterdir()]) == 40
    xr.testing.assert_identical(found.load(), alone.load())


def test_a_client_that_is_none_is_refused(tmp_path):
    with pytest.raises(TypeError, match="client is 'processes'; it must be"):
        accumulate(lotka_volterra(), tmp_path / "store", samples=1, client="processes")
    assert not (tmp_path / "store").exists()
