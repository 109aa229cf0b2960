"""Work that is killed at random moments, started again, and compared with work that was not.

    python validation/faults/kills.py --kills 1000 --aimed 100 --seed 0

What runs is a process of its own. It is killed by SIGKILL, SIGTERM or SIGINT after a random time,
or, aimed, by SIGKILL at one of its own operations on files: as it opens one to write, renames or
removes one. It is started again until it has ended. Then its result must be that of a run that was
never stopped, bit for bit. Beside it may lie what killed writers had not yet renamed: the next
writer removes ours when they are ten minutes old, Zarr leaves its own. Nothing else may. The exit
code is 1 where it is not so.
"""

import argparse
import ctypes
import hashlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

# A process is forked off this one, which has imported everything and computed nothing.
import jax
import numpy as np
import optax
import xarray as xr
from flax import linen, nnx  # noqa: F401

import sciml
import wse
from sciml.cli import main as _sciml_main  # noqa: F401
from sciml.train import loop
from wse.cli import main as _wse_main  # noqa: F401

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
FILES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
LEFT = re.compile(r"\..+\.[0-9a-f]{16}\.\w+|.+\.[0-9a-f]{32}\.partial")  # not yet renamed
NEW_NUMBERS, DIE_WITH_PARENT = 0x20000000, 1  # of Linux: CLONE_NEWPID, PR_SET_PDEATHSIG
STARTED = b"working\n"  # sent when work begins

PROGRAMS = {
    "fit": """
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
np.savez(f"{folder}/weights.npz", *state.params)
""",
    "accumulate": """
say()
sciml.ode.accumulate(
    sciml.ode.lotka_volterra(), f"{folder}/prey.zarr", samples=5_000, seed=1,
    method=sciml.ode.RungeKutta4(chunk=50),
)
""",
    "wse run": """
from wse.cli.main import app
say()
raise SystemExit(app(
    ["run", "CSX", "--params", f"{given}/params.yaml", "--model_dir", f"{folder}/run"],
    standalone_mode=False,
))
""",
    "sciml wind train": """
from sciml.cli.main import app
say()
raise SystemExit(app(
    ["wind", "train", f"{given}/wind.yaml", "--out", f"{folder}/net.wind"], standalone_mode=False
))
""",
}
GIVEN = """
rng = np.random.default_rng(0)
turn = rng.normal(size=(6, 2))
os.makedirs(f"{given}/train")
for name, count in (("a", 30), ("b", 34)):
    x = rng.normal(size=(count, 6))
    np.savez(f"{given}/train/{name}.npz", features=x, labels=np.tanh(x @ turn))
with open(f"{given}/params.yaml", "w") as file:
    file.write(f'''
train_input: {{data_dir: {given}/train, batch_size: 16}}
model: {{hidden_sizes: [8], activation_fn: swish}}
optimizer: {{optimizer_type: SGD, learning_rate: 0.1, momentum: 0.9}}
sparsity: {{type: rigl, sparsity: 0.5}}
runconfig: {{max_steps: 120, checkpoint_steps: 7, log_steps: 10, model_dir: run}}
''')
for seed, part in enumerate(("train", "validation")):
    drawn = sciml.wind.gaussian(seed=seed, snapshots=6, n=36)
    hours = (100 * seed + np.arange(6)) * np.timedelta64(6, "h")
    winds = {
        name: (("time", "lat", "lon"), drawn[c].values[:, :26, :33], {"units": "m s-1"})
        for name, c in (("u10", "x_wind"), ("v10", "y_wind"))
    }
    places = {
        "time": np.datetime64("2020-01-01", "ns") + hours,
        "lat": ("lat", 50 + 0.025 * np.arange(26), {"units": "degrees_north"}),
        "lon": ("lon", 5 + 0.04 * np.arange(33), {"units": "degrees_east"}),
    }
    xr.Dataset(winds, coords=places).to_netcdf(f"{given}/{part}.nc", engine="h5netcdf")
with open(f"{given}/wind.yaml", "w") as file:
    file.write(f'''
data:
  - {{path: {given}/train.nc, part: train}}
  - {{path: {given}/validation.nc, part: validation}}
target: components
model: {{factor: 2, channels: 4, blocks: 1, local: 3}}
recipe: {{batch: 4, learning_rate: 1e-3}}
patches: {{size: 16, count: 8}}
epochs: 60
''')
"""


@dataclass
class Running:
    """A process that works, and what it tells."""

    process: int
    pipe: int

    def started(self) -> None:
        """Wait until work begins."""
        assert os.read(self.pipe, len(STARTED)) in (STARTED, b"")

    def ended(self) -> tuple[int, int]:
        """Wait for the end; return the exit code and how many operations on files there were."""
        told = b""
        while some := os.read(self.pipe, 4096):
            told += some
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        count = told.rpartition(STARTED)[2].strip()
        return os.waitstatus_to_exitcode(status), int(count or 0)


def begun(
    program: str, folder: Path, given: Path, aim: int = 0, contained: bool = False
) -> Running:
    """Start a program; with an aim, it kills itself at this operation on a file of the folder.

    Contained, it has the process number 1, as in a container.
    """
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return Running(process, read)
    code = 1
    try:
        os.close(read)
        if contained:
            contain(write)
        code = worked(program, folder, given, aim, write)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        (given / f"{os.getpid()}.error").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def contain(pipe: int) -> None:
    """Go on as process 1 of a namespace of its own; who called passes on how that one ends."""
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(NEW_NUMBERS):
        raise OSError(ctypes.get_errno(), "process numbers cannot be unshared")
    inner = os.fork()
    if not inner:
        system.prctl(DIE_WITH_PARENT, signal.SIGKILL)
        return
    os.close(pipe)
    _, status = os.waitpid(inner, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def worked(program: str, folder: Path, given: Path, aim: int, tell: int) -> int:
    """Work in a process of its own; return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    loop.CALL_S, loop.CHECKPOINT_S = 0.01, 0.05
    count, inside = 0, str(folder)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in FILES or not isinstance(args[0], str | os.PathLike):
            return
        if os.fspath(args[0]).startswith(inside) and (event != "open" or args[2] & WRITES):
            count += 1
            if count == aim:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    names = {"folder": inside, "given": given, "say": lambda: os.write(tell, STARTED)}
    modules = {"np": np, "os": os, "xr": xr, "jax": jax, "optax": optax, "sciml": sciml, "wse": wse}
    try:
        exec(program, {**names, **modules, "Recipe": sciml.train.Recipe})
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    os.write(tell, f" {count}\n".encode())
    return code


def contents(folder: Path) -> dict[str, str]:
    """Return what tells the files of a folder; of a store, names differ by chance."""
    found: dict[str, str] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if any(map(LEFT.fullmatch, path.relative_to(folder).parts)) or path.name in (
            ".lock",
            "manifest.json",
            "trace.json",
            "performance.json",
        ):
            continue
        if path.suffix == ".bin":
            name = name.rpartition("-")[0]
        if path.suffix in (".wind", ".fit"):  # seconds are in the description
            with np.load(path, allow_pickle=False) as arrays:
                for key in set(arrays.files) - {"description"}:
                    found[f"{name}/{key}"] = hashlib.sha256(arrays[key].tobytes()).hexdigest()
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class Trial:
    """A program, what it gives when it is not stopped, and how long that takes."""

    def __init__(self, name: str, given: Path):
        self.name, self.given, self.program = name, given, PROGRAMS[name]
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):  # the first compiles; programs are kept in a cache
                shutil.rmtree(folder)
                Path(folder).mkdir()
                whole = begun(self.program, Path(folder), given)
                whole.started()
                start = time.monotonic()
                code, self.operations = whole.ended()
                self.lasts_s = time.monotonic() - start
                assert code == 0, self.errors()
            self.expected = contents(Path(folder))

    def errors(self) -> str:
        """Return what processes said that failed by themselves."""
        return "".join(path.read_text() for path in self.given.glob("*.error"))

    def run(self, chance: random.Random, kills: int, aimed: bool) -> tuple[Counter[str], str]:
        """Kill until it has ended, or so often; return the kills, and what is wrong then."""
        counts = Counter[str]()
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            while counts.total() < kills:
                aim = chance.randint(1, self.operations) if aimed else 0
                work = begun(self.program, folder, self.given, aim)
                number = signal.SIGKILL if aimed else chance.choice(SIGNALS)
                if not aimed:
                    work.started()
                    time.sleep(chance.random() * self.lasts_s)
                    os.kill(work.process, number)
                code, _ = work.ended()
                if code == 0:
                    break
                if code == 1:
                    return counts, self.errors()
                counts[f"aimed {signal.Signals(number).name}" if aimed else number.name] += 1
            else:
                if begun(self.program, folder, self.given).ended()[0]:
                    return counts, self.errors() or "it does not end"
            found = contents(folder)
        both = found.keys() | self.expected.keys()
        return counts, ", ".join(sorted(k for k in both if found.get(k) != self.expected.get(k)))


def run(
    kills: int, aimed: int, each: int, seed: int, say: Callable[[str], Any]
) -> tuple[Counter[str], int]:
    """Kill so many times, one trial at most `each` times, every program in turn.

    Return the counts of signals, and the trials with other results.
    """
    chance, counts, wrong = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder)
        os.environ["SCIML_CACHE"] = str(given / "cache")
        assert begun(GIVEN, given, given).ended()[0] == 0, given
        trials = [Trial(name, given) for name in PROGRAMS]
        for wanted, with_aim in ((kills, False), (aimed, True)):
            made, number = 0, 0
            while made < wanted:
                trial = trials[number % len(trials)]
                some, differs = trial.run(chance, min(each, wanted - made), with_aim)
                number, made, wrong = number + 1, made + some.total(), wrong + bool(differs)
                counts += some
                said = f"differs: {differs}" if differs else "equal"
                say(f"{trial.name}: {some.total()} kills, {said}")
    return counts, wrong


def main() -> int:
    """Run from the command line; return 1 where a result differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--aimed", type=int, default=12)
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.monotonic()
    counts, wrong = run(
        given.kills,
        given.aimed,
        given.each,
        given.seed,
        lambda line: sys.stdout.write(f"{line}\n"),
    )
    sys.stdout.write(
        f"{counts.total()} kills {dict(counts)}, {wrong} trials with another result, "
        f"{time.monotonic() - start:.0f} s\n"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
