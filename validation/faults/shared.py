"""Work on one volume by two processes with equal numbers, and by four of which one is killed.

    python validation/faults/shared.py --kills 100 --of-four 20 --seed 0

Two programs of `kills.py` that do the same work on the same files run at once, each as process 1 of
a namespace of its own, as in two containers, and are killed at random moments. What they write is
read all the time: it must be whole. Of a folder that one process alone may have, the second must be
refused in a line. Once started again and ended, the result must be that of one process that was
never stopped. Then four processes train one model; one is killed, the others must end by
themselves, and all are started again. The exit code is 1 where anything differs. Needs Linux, and
the right to unshare process numbers.
"""

import argparse
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from validation.faults.kills import GIVEN, PROGRAMS, Running, Trial, begun, contents

TAKEN = "in use by another process"
PROCESSES, STEPS, HEARTBEAT_S = 4, 80, 10
FOUR = """
jax.distributed.initialize(
    "127.0.0.1:PORT", PROCESSES, RANK, coordinator_bind_address="127.0.0.1:PORT",
    heartbeat_timeout_seconds=HEARTBEAT,
)

def loss(params, x):
    for w in params:
        x = jax.numpy.tanh(x @ w)
    return (x**2).mean()

draw = np.random.default_rng(0)
params = [draw.normal(size=(16, 16)).astype("f4") for _ in range(3)]
batch = draw.normal(size=(8, 16)).astype("f4")
executor = wse.CS2(PROCESSES).executor(
    loss, params, batch, optax.adam(1e-2), folder=f"{folder}/store"
)
state = executor.init(params)
say()
while state.step < STEPS:
    state, _ = executor.train_step(state, batch)
np.savez(f"{folder}/weights-RANK.npz", *state.params)
"""


def read(folder: Path) -> None:
    """Read the results that are there; zip files have checksums."""
    for path in (*folder.glob("*.fit"), *folder.glob("*.wind")):
        try:
            with np.load(path, allow_pickle=False) as arrays:
                assert all(arrays[name].size >= 0 for name in arrays.files)
        except FileNotFoundError:
            continue


def side_by_side(trial: Trial, chance: random.Random, kills: int) -> tuple[int, int, str]:
    """Kill and start again; return kills, refusals, and what is wrong at the end."""
    killed = refused = 0
    with tempfile.TemporaryDirectory() as place:
        folder, last = Path(place), False
        while True:
            both = [begun(trial.program, folder, trial.given, contained=True) for _ in range(2)]
            for work in both:
                work.started()
            start = time.monotonic()
            ends = [start + 1.5 * chance.random() * trial.lasts_s for _ in both]
            while not last and time.monotonic() < max(ends):
                for work, end in zip(both, ends, strict=True):
                    if time.monotonic() > end:
                        os.kill(work.process, signal.SIGKILL)
                read(folder)
                time.sleep(0.002)
            codes = [work.ended()[0] for work in both]
            errors = list(trial.given.glob("*.error"))
            if any(TAKEN not in path.read_text() for path in errors):
                return killed, refused, trial.errors()[-500:]
            for path in errors:
                path.unlink()
            killed += sum(code < 0 for code in codes)
            refused += sum(code > 0 for code in codes)
            read(folder)
            if last:
                break
            last = killed >= kills
        if 0 not in codes:
            return killed, refused, f"neither has ended: {codes}"
        found = contents(folder)
    both_names = found.keys() | trial.expected.keys()
    differ = sorted(k for k in both_names if found.get(k) != trial.expected.get(k))
    return killed, refused, ", ".join(differ)


def four(folder: Path, given: Path) -> list[Running]:
    """Start four processes that train one model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = {"PORT": port, "PROCESSES": PROCESSES, "STEPS": STEPS, "HEARTBEAT": HEARTBEAT_S}
    program = FOUR
    for word, value in words.items():
        program = program.replace(word, str(value))
    return [begun(program.replace("RANK", str(n)), folder, given) for n in range(PROCESSES)]


def weights(folder: Path) -> list[bytes]:
    """Return the weights that each process kept."""
    found: list[bytes] = []
    for path in sorted(folder.glob("weights-*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            found.append(b"".join(arrays[name].tobytes() for name in sorted(arrays.files)))
    return found


def one_of_four(given: Path, chance: random.Random, kills: int, say: Callable[[str], Any]) -> int:
    """Kill one of four so many times; return how often something was wrong."""
    with tempfile.TemporaryDirectory() as place:
        works = four(Path(place), given)
        for work in works:
            work.started()
        start = time.monotonic()
        assert [work.ended()[0] for work in works] == [0] * PROCESSES
        lasts_s, expected = time.monotonic() - start, weights(Path(place))
    assert len({*expected}) == 1
    made = wrong = 0
    while made < kills:
        with tempfile.TemporaryDirectory() as place:
            works = four(Path(place), given)
            for work in works:
                work.started()
            time.sleep(chance.random() * lasts_s)
            victim = chance.randrange(PROCESSES)
            os.kill(works[victim].process, signal.SIGKILL)
            start = time.monotonic()
            codes = [work.ended()[0] for work in works]
            spent_s = time.monotonic() - start
            if codes[victim] == 0:
                continue
            made += 1
            again = [work.ended()[0] for work in four(Path(place), given)]
            equal = again == [0] * PROCESSES and weights(Path(place)) == expected
            wrong += not equal
            said = "equal" if equal else f"differs, codes {again}"
            say(f"one of four ({victim}): the others ended after {spent_s:.0f} s; {said}")
    return wrong


def main() -> int:
    """Run from the command line; return 1 where a result differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--of-four", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, counts, wrong = random.Random(given.seed), Counter[str](), 0
    say = lambda line: sys.stdout.write(f"{line}\n") and sys.stdout.flush()  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ.update(SCIML_CACHE=str(place / "cache"), PJRT_NPROC="8")
        assert begun(GIVEN, place, place).ended()[0] == 0, place
        while given.kills and counts["killed"] < given.kills:
            for name in PROGRAMS:
                trial = Trial(name, place)
                killed, refused, differs = side_by_side(trial, chance, max(2, given.kills // 5))
                counts += Counter(killed=killed, refused=refused)
                wrong += bool(differs)
                say(f"two of {name}: {killed} kills, {refused} refused; {differs or 'equal'}")
        wrong += one_of_four(place, chance, given.of_four, say) if given.of_four else 0
    say(f"{counts['killed']} and {given.of_four} kills, {wrong} trials with another result")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
