"""A fit to a store of simulations holds two windows of it, whatever its size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.validation
ROOT = Path(__file__).parents[3]
WINDOW = 32 * 2**20
BESIDE = 320 * 2**20  # measured 80 to 255 MiB: chunks being decoded, and what allocators keep

PROGRAM = """
import json, resource, sys, threading, time
import dask.array, numpy as np, psutil, xarray as xr
import sciml
from sciml.inverse import Windows
from sciml.models import Dense
from sciml.train import Recipe

path, size_bytes, window_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
samples = size_bytes // (4 * 503)

def made(block_info=None):
    low, high = block_info[None]["array-location"][0]
    rng = np.random.default_rng(low)
    theta = rng.uniform(size=(high - low, 3)).astype("f4")
    theta[:, 0] = np.repeat(theta[::50, 0], 50)[: len(theta)]  # sines are dear
    waves = np.sin(np.outer(theta[::50, 0], np.linspace(1, 9, 500)).astype("f4"))
    waves = np.repeat(waves, 50, axis=0)[: len(theta)] + theta[:, 1:2]
    return np.concatenate([theta, waves], axis=1)

chunks = ((1000,) * (samples // 1000), (503,))
rows = dask.array.map_blocks(made, chunks=chunks, dtype="f4", meta=np.empty((0, 0), "f4"))
data = xr.Dataset(
    {
        "observation": (("sample", "time"), rows[:, 3:]),
        "parameters": (("sample", "parameter"), rows[:, :3]),
    },
    coords={"time": np.arange(500.0), "parameter": ["a", "b", "c"]},
)
data.to_zarr(path, mode="w")
del data, rows
lazy = xr.open_zarr(path)
options = {"epochs": 1, "recipe": Recipe(batch=1000)}
few = lazy.isel(sample=slice(20_000)).load()
sciml.fit(Dense(64, 1), few, **options)  # what programs and threads take stays
del few
process, peak, over = psutil.Process(), [0], threading.Event()

def watch():
    while not over.wait(0.01):
        peak[0] = max(peak[0], process.memory_info().rss)

before = process.memory_info().rss
threading.Thread(target=watch, daemon=True).start()
fit = sciml.fit(Dense(64, 1), Windows(lazy, window_bytes), 0.01, **options)
over.set()
said = fit.history.attrs | {"samples": json.loads(fit.attrs["fit"])["samples"]}
print(json.dumps({"before": before, "peak": peak[0], "loss": float(fit.history.loss[-1]), **said}))
"""


def trained(path: Path, size_bytes: int) -> dict:
    environment = os.environ | {"TQDM_DISABLE": "1", "MALLOC_ARENA_MAX": "2"}
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(size_bytes), str(WINDOW)],
        capture_output=True, text=True, cwd=ROOT, env=environment, timeout=600, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-3000:]
    return json.loads(said.stdout.splitlines()[-1])


def test_memory_is_that_of_two_windows_however_large_the_store(tmp_path):
    """What grows with the store would be seen in one that is three times the bound."""
    size = 1200 * 2**20
    found = trained(tmp_path / "store.zarr", size)
    bound = 2 * WINDOW + BESIDE
    assert found["peak"] - found["before"] < bound < size / 3
    assert found["samples"] > 0.95 * size / 2012
    assert found["loss"] < 0.05
