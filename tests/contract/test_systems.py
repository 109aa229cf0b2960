"""Several systems, each on a device of its own, give the numbers of plain JAX on one.

Devices are counted when JAX starts, so this runs in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

PROGRAM = """
import json, runpy, sys
import jax, numpy as np, optax, wse

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)
table = runpy.run_path("tests/contract/models.py")


def size(tree):
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(x))) for x in jax.tree.leaves(tree))))


def apart(a, b):
    return size(jax.tree.map(lambda x, y: np.asarray(x) - np.asarray(y), a, b))


steps = int(sys.argv[2])
for name, systems in json.loads(sys.argv[1]).items():
    case = {**table["MODELS"], **table["LARGE"]}[name]()
    plain = jax.jit(jax.value_and_grad(case.loss, has_aux=case.has_aux))
    value, gradients = plain(case.params, case.batch)
    for count in systems:
        executor = wse.CS2(count).executor(
            case.loss, case.params, case.batch, optax.sgd(0.01), has_aux=case.has_aux
        )
        streamed, found = executor.value_and_grad(case.params, case.batch)
        weights_in = executor.run.total_bytes("broadcast") / sum(
            (1 + layer.demand.any) * layer.work.weight_bytes for layer in executor.graph.layers
        )
        state, stepped = executor.init(case.params), case.params
        for _ in range(steps):
            state, _ = executor.train_step(state, case.batch)
            stepped = jax.tree.map(
                lambda p, g: p - 0.01 * g, stepped, plain(stepped, case.batch)[1]
            )
        print(json.dumps([
            name,
            count,
            apart(streamed, value) / (1 + size(value)),
            apart(found, gradients) / size(gradients),
            apart(state.params, stepped) / size(stepped),
            executor.run.systems,
            weights_in,
        ]))
"""

QUICK = {"dense": [2, 4], "nnx_scanned": [2, 8], "unet": [2], "gpt": [2], "super-resolution": [2]}


def found_on_8_devices(cases: dict[str, list[int]], steps: int) -> list[list]:
    flags = (
        "--xla_force_host_platform_device_count=8"
        " --xla_cpu_collective_call_warn_stuck_timeout_seconds=60"
        " --xla_cpu_collective_call_terminate_timeout_seconds=120"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, json.dumps(cases), str(steps)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PJRT_NPROC": "16"},
        capture_output=True,
        text=True,
        timeout=1200,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(cases: dict[str, list[int]], steps: int = 1) -> None:
    found = found_on_8_devices(cases, steps)
    assert [row[:2] for row in found] == [[n, k] for n, counts in cases.items() for k in counts]
    for name, count, value, gradients, weights, systems, weights_in in found:
        assert max(value, gradients, weights) <= 1e-9, (name, count, value, gradients, weights)
        assert systems == count
        assert weights_in == 1, "a weight leaves the store once a visit, for all systems"


def test_two_to_eight_systems_give_the_numbers_of_plain_jax():
    check(QUICK)


@pytest.mark.contract
@pytest.mark.parametrize("systems", [2, 4, 8])
def test_ten_steps_of_every_model_on_several_systems(systems):
    table = run_path(str(Path(__file__).with_name("models.py")))
    names = (*table["MODELS"], *table["LARGE"])
    check({name: [systems] for name in names if "2048" not in name}, steps=10)
