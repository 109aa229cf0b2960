"""Two processes whose stores are one step apart, or far apart; other weights; one that dies."""

import shutil
import sys
import time

from tests.processes import answered, started
from tests.wse.execute.test_processes import MODEL

FILED = """
import json, sys
import jax, numpy as np

rank, port, folder, steps, scale = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5])
where = f"127.0.0.1:{port}"
jax.distributed.initialize(where, 2, int(rank), coordinator_bind_address=where)

import optax, wse
MODEL
if rank == "1":
    params[0]["w"] *= scale
executor = wse.CS2(2).executor(loss, params, batch, optax.adam(1e-2), has_aux=True, folder=folder)
try:
    state = executor.init(params)
    began = state.step
    for _ in range(steps):
        state, _ = executor.train_step(state, batch)
    size = sum(float(np.abs(x).sum()) for layer in state.params for x in layer.values())
    print(json.dumps({"began": began, "step": state.step, "size": size}))
except ValueError as error:
    print(json.dumps({"refused": str(error)}))
""".replace("MODEL", MODEL)


def test_processes_go_on_from_the_step_that_all_have(tmp_path):
    folder, kept = tmp_path / "store", tmp_path / "kept"
    first = answered(started(FILED, folder, 3, 1))
    assert first[0] == first[1] == {"began": 0, "step": 3, "size": first[0]["size"]}
    shutil.copytree(folder / "process-1", kept)
    ahead = answered(started(FILED, folder, 1, 1))
    shutil.rmtree(folder / "process-1")
    kept.rename(folder / "process-1")  # as if it had been killed before it completed step 4
    again = answered(started(FILED, folder, 1, 1))
    assert again == ahead
    assert again[0]["began"] == 3
    other = answered(started(FILED, tmp_path / "other", 1, 1.5))
    assert all("params and optimizer state differ between the" in x["refused"] for x in other)


def test_a_folder_that_is_far_behind_is_refused_by_all(tmp_path):
    answered(started(FILED, tmp_path, 3, 1))
    shutil.rmtree(tmp_path / "process-1")
    refused = [answer["refused"] for answer in answered(started(FILED, tmp_path, 1, 1))]
    assert all("stores are 3, -1, by process" in said for said in refused)


def test_the_others_end_soon_after_one_has_died(tmp_path):
    """In 15 s, with the heartbeat that the page on several processes gives."""
    beating = FILED.replace("coordinator_bind", "heartbeat_timeout_seconds=10, coordinator_bind")
    first, second = started(beating, tmp_path, 1_000_000, 1)
    with first, second:
        try:
            while not (tmp_path / "process-1" / "manifest.json").exists():
                time.sleep(0.1)
            time.sleep(2)
            second.kill()
            began = time.monotonic()
            _, error = first.communicate(timeout=60)
        finally:
            first.kill()
    spent_s = time.monotonic() - began
    sys.stdout.write(f"the other process ended after {spent_s:.1f} s, with {first.returncode}\n")
    assert spent_s < 15
    assert first.returncode != 0
    assert "Error" in error
