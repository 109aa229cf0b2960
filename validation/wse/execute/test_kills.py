"""Steps that are killed: the store goes on to the same weights, from files and from memory."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

KILLED = """
import sys
import jax.numpy as jnp, numpy as np, optax, wse

draw = np.random.default_rng(0)
params = {n: draw.normal(size=(64, 64)).astype("f4") / 8 for n in "abc"}


def loss(p, x):
    return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] @ p["c"] - 1) ** 2)


def batch(step):
    return np.random.default_rng(step).normal(size=(4, 64)).astype("f4")


options = {} if sys.argv[2] == "0" else {"checkpoint_every": int(sys.argv[2])}
executor = wse.CS2().executor(
    loss, params, batch(0), optax.adam(1e-2), folder=sys.argv[1], **options
)
state = executor.init(params)
print("from", state.step, flush=True)
while state.step < 40:
    state, _ = executor.train_step(state, batch(state.step))
    print(state.step, flush=True)
print("weights", sum(float(np.abs(x).astype("f8").sum()) for x in state.weights), flush=True)
"""


def run_until(folder, every: int, step: int | None) -> list[str]:
    """Run the program; kill it without warning when it says that it has made a step."""
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(folder), str(every)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.strip() == str(step):
                os.kill(process.pid, signal.SIGKILL)
                break
    assert process.returncode == (0 if step is None else -signal.SIGKILL)
    return lines


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> str:
    return run_until(tmp_path_factory.mktemp("whole"), 4, None)[-1]


@pytest.mark.skipif(os.name != "posix", reason="kills a process as POSIX does")
@pytest.mark.parametrize("every", [0, 4], ids=["files", "memory"])
def test_after_a_kill_it_goes_on_to_the_same_weights(tmp_path, every, uninterrupted):
    assert run_until(tmp_path, every, 11)[0] == "from 0"
    started, end = (x for x in run_until(tmp_path, every, None) if not x.isdigit())
    # The step after the one that was announced may have been completed, too.
    assert int(started.removeprefix("from ")) >= (11 if every == 0 else 8)
    assert end == uninterrupted
