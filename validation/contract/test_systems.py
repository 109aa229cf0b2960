"""Several systems, each on a device of its own, give the numbers of plain JAX on one.

Devices are counted when JAX starts, so `on_devices.py` runs in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from tests import xla_flags

HERE = Path(__file__).parent
TABLE = run_path(str(HERE / "models.py"))
SMALL = tuple(TABLE["MODELS"])
# Every model on two systems; two of them on four, and on eight.
QUICK = {**{name: [2] for name in SMALL}, "dense": [2, 4, 8], "nnx_scanned": [2, 4, 8]}
FLAGS = (
    "--xla_force_host_platform_device_count=8"
    " --xla_cpu_collective_call_warn_stuck_timeout_seconds=60"
    " --xla_cpu_collective_call_terminate_timeout_seconds=120"
    f" {xla_flags.QUICK}"
)


def found_on_8_devices(cases: dict[str, list[int]], steps: int, rounded: list[str]) -> list[dict]:
    arguments = [json.dumps(x) for x in (cases, steps, rounded)]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "validation.contract.on_devices", *arguments],
        env={**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu", "PJRT_NPROC": "16"},
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=HERE.parents[1],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(cases: dict[str, list[int]], rounded: list[str], steps: int = 1) -> None:
    found = found_on_8_devices(cases, steps, rounded)
    assert [x["case"] for x in found] == [[n, k] for n, counts in cases.items() for k in counts]
    for row in found:
        assert max(row["loss"], row["gradients"], row["weights"]) <= 1e-9, row
        assert row["rounding"] <= 3, row
        assert row["systems"] == row["case"][1]
        # A weight leaves the store once a visit and its gradient comes once, for all systems.
        assert row["weights_in"] == row["gradients_out"] == 1, row
        assert row["layers_held"] <= 2, row


def test_every_model_on_several_systems_gives_the_numbers_of_plain_jax():
    check(QUICK, rounded=["dense", "unet"])


@pytest.mark.contract
@pytest.mark.parametrize("systems", [2, 4, 8])
def test_ten_steps_of_every_model_on_several_systems(systems):
    names = [name for name in (*SMALL, *TABLE["LARGE"]) if "2048" not in name]
    check({name: [systems] for name in names}, rounded=names, steps=10)
