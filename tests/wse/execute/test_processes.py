"""Two processes, joined by `jax.distributed`, train as one does."""

import numpy as np
import optax
import pytest

import wse
from tests.processes import answered, started

MODEL = """
import jax.numpy as jnp, numpy as np

def loss(params, batch):
    x, y = batch
    for layer in params:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
        x = x - x.mean(0)
    return jnp.mean((x - y) ** 2), x

draw = np.random.default_rng(0)
params = [{"w": draw.normal(size=(6, 6)).astype("f4"), "b": np.zeros(6, "f4")} for _ in range(3)]
batch = tuple(draw.normal(size=(8, 6)).astype("f4") for _ in range(2))
"""

PROGRAM = """
import json, sys
import jax

rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
where = f"127.0.0.1:{port}"
jax.distributed.initialize(where, 2, rank, coordinator_bind_address=where)
jax.config.update("jax_disable_most_optimizations", True)

import optax, wse
MODEL
found = {}
for mode in ("streaming", "pipelined"):
    executor = wse.CS2(4, mode).executor(loss, params, batch, optax.adam(1e-2), has_aux=True)
    state = executor.init(params)
    for _ in range(3):
        state, (value, outputs) = executor.train_step(state, batch)
    weights = [np.ravel(x).tolist() for layer in state.params for x in layer.values()]
    found[mode] = [float(value), np.sum(np.abs(outputs)).item(), weights]
filed = wse.CS2(2).executor(loss, params, batch, optax.sgd(0.1), has_aux=True, folder=folder)
found["step"] = filed.train_step(filed.init(params), batch)[0].step
try:
    wse.CS2(1).executor(loss, params, batch, has_aux=True)
    found["refused"] = None
except ValueError as error:
    found["refused"] = str(error)
print(json.dumps(found))
""".replace("MODEL", MODEL)


@pytest.mark.slow
def test_two_processes_train_the_weights_of_one(tmp_path):
    found = answered(started(PROGRAM, tmp_path))

    own: dict = {}
    exec(MODEL, own)
    executor = wse.CS2().executor(
        own["loss"], own["params"], own["batch"], optax.adam(1e-2), has_aux=True
    )
    state, value, outputs = executor.init(own["params"]), 0.0, 0.0
    for _ in range(3):
        state, (value, outputs) = executor.train_step(state, own["batch"])
    expected = [x for layer in state.params for x in layer.values()]
    for mode in ("streaming", "pipelined"):
        for loss, size, weights in (answer[mode] for answer in found):
            np.testing.assert_allclose(loss, value, rtol=1e-5)
            np.testing.assert_allclose(size, np.sum(np.abs(outputs)), rtol=1e-4)
            for a, b in zip(weights, expected, strict=True):
                np.testing.assert_allclose(a, np.ravel(b), atol=1e-5)
    assert found[0]["streaming"] == found[1]["streaming"]
    assert [answer["step"] for answer in found] == [1, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["process-0", "process-1"]
    assert all("1 systems use devices of 1 of 2 processes" in x["refused"] for x in found)
