"""Work that is killed at random moments, started again, and compared with work that was not.

    python validation/faults/kills.py --kills 100 --seed 0

What runs is started as a process of its own, killed by SIGKILL, SIGTERM or SIGINT after a random
time, and started again until it has ended; a third of the kills is aimed at the moment between the
end of a training and its result on the disk. Then its result must be that of a run that was never
stopped, bit for bit, and nothing else may lie beside it. The exit code is 1 where it is not.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STARTED = "working"  # printed when imports are over, and again when a result is about to be written

BEGIN = f"""
import sys
import jax, numpy as np, optax
import sciml, wse
from sciml.train import Recipe, loop

folder = sys.argv[1]
loop.CALL_S, loop.CHECKPOINT_S = 0.01, 0.05

def say():
    print("{STARTED}", flush=True)

def announced(kind):
    write = kind.save
    def save(self, path):
        say()
        return write(self, path)
    kind.save = save
"""
PROGRAMS = {
    "fit": """
announced(sciml.Fit)
data = sciml.simulate(sciml.ode.lotka_volterra(), samples=200, seed=0)
say()
fit = sciml.fit(
    sciml.models.Dense(16, 2), data, 0.2, epochs=400, noise=sciml.ode.Gaussian(0.1),
    recipe=Recipe(batch=20), checkpoint=f"{folder}/net.checkpoint",
)
fit.replace(attrs={}, history=fit.history.assign_attrs(compile_s=0, train_s=0, overhead_s=0)).save(
    f"{folder}/net.fit"
)
""",
    "executor": """
def loss(params, x):
    for w in params:
        x = jax.numpy.tanh(x @ w)
    return (x**2).mean()

draw = np.random.default_rng(0)
params = [draw.normal(size=(16, 16)).astype("f4") for _ in range(4)]
batch = draw.normal(size=(8, 16)).astype("f4")
executor = wse.CS2().executor(loss, params, batch, optax.adam(1e-2), folder=f"{folder}/store")
say()
state = executor.init(params)
while state.step < 150:
    state, _ = executor.train_step(state, batch)
say()
np.savez(f"{folder}/weights.npz", *state.params)
""",
    "accumulate": """
say()
sciml.ode.accumulate(
    sciml.ode.lotka_volterra(), f"{folder}/prey.zarr", samples=20_000, seed=1,
    method=sciml.ode.RungeKutta4(chunk=50),
)
""",
}


def begun(name: str, folder: Path) -> subprocess.Popen[str]:
    """Start a program and wait until it works."""
    command = [sys.executable, "-c", BEGIN + PROGRAMS[name], str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert run.stdout is not None
    run.stdout.readline()
    return run


def ended(run: subprocess.Popen[str]) -> int:
    """Wait for a program."""
    with run:
        run.communicate(timeout=300)
    return run.returncode


def contents(folder: Path) -> dict[str, str]:
    """Return what tells the files of a folder; of a store, names differ by chance."""
    found: dict[str, str] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.name in (".lock", "manifest.json"):
            continue
        if path.suffix == ".bin":
            name = name.rpartition("-")[0]
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def killed(name: str, folder: Path, chance: random.Random, lasts_s: float) -> Iterator[str]:
    """Kill a program at random moments until it has ended once; yield each signal."""
    while True:
        run = begun(name, folder)
        number = chance.choice(SIGNALS)
        if chance.random() < 1 / 3 and run.stdout is not None:
            run.stdout.readline()  # of the result, or the end
            time.sleep(chance.random() * 0.05)
        else:
            time.sleep(chance.random() * lasts_s)
        run.send_signal(number)
        if ended(run) == 0:
            return
        yield signal.Signals(number).name


def trial(name: str, chance: random.Random, most: int) -> tuple[Counter[str], str]:
    """Return the kills of one trial, and what is wrong after it."""
    with tempfile.TemporaryDirectory() as place:
        whole, cut = Path(place, "whole"), Path(place, "cut")
        whole.mkdir()
        cut.mkdir()
        began = time.monotonic()
        first = begun(name, whole)
        start_s = time.monotonic() - began
        assert ended(first) == 0
        lasts_s = time.monotonic() - began - start_s
        counts: Counter[str] = Counter()
        for kill in killed(name, cut, chance, lasts_s):
            counts[kill] += 1
            if counts.total() >= most:
                assert ended(begun(name, cut)) == 0
                break
        found, expected = contents(cut), contents(whole)
        shutil.rmtree(cut)
    wrong = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
    return counts, ", ".join(wrong)


def run(kills: int, seed: int, say: Callable[[str], Any]) -> tuple[Counter[str], int]:
    """Kill so many times; return the counts of signals, and the trials with other results."""
    chance, counts, wrong, number = random.Random(seed), Counter[str](), 0, 0
    while counts.total() < kills:
        name = list(PROGRAMS)[number % len(PROGRAMS)]
        number += 1
        made, differs = trial(name, chance, min(8, kills - counts.total()))
        counts += made
        wrong += bool(differs)
        say(f"{name}: {made.total()} kills, {f'other: {differs}' if differs else 'equal'}")
    return counts, wrong


def main() -> int:
    """Run from the command line; return 1 where a result differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts, wrong = run(given.kills, given.seed, lambda line: sys.stdout.write(f"{line}\n"))
    sys.stdout.write(
        f"{counts.total()} kills ({dict(counts)}), {wrong} trials with another result\n"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
