"""Files as they may come back from a disk, a network or an editor, given to every public reader.

    python validation/faults/mutations.py --cases 20000 --seed 0

Each case changes one file: bytes flipped, zeroed, cut, doubled, swapped; of YAML, words of another
kind, nesting, aliases. A reader may give what the whole file gives, or other numbers where the
format has no checksum, or refuse the file in one line with an error of its own. What else it
raises, a case over ten seconds, a process that ends, and more than a gigabyte of memory are faults:
they are printed with their number, and the exit code is 1.
"""

import argparse
import hashlib
import logging
import random
import resource
import shutil
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # for what tests write too
LIMIT_S, LIMIT_BYTES, LONGEST = 10.0, 2**30, 2000
START_S = 120.0  # to import, and to read each whole file once
FAULTS = ("escaped", "hang", "crash", "memory", "too long")
WRITTEN = Path(__file__).parents[2] / "tests" / "formats" / "written_before_the_move"
# What a reader may raise: its own words, in these kinds.
REFUSALS = (ValueError, FileNotFoundError, PermissionError, ImportError, IsADirectoryError)
WORDS = (
    "-1",
    "0",
    "1e999",
    ".nan",
    ".inf",
    "1e30",
    "[]",
    "{}",
    "null",
    "true",
    '""',
    "1:30:00",
    "0x10",
    "2020-01-01",
    '"12"',
    "[1,",
    "2]",
    "{a:",
    "1}",
    "!!python/object:os.system",
    "&a",
    "*a",
    "<<:",
    "?",
    "|",
    ">",
    "~",
    "99999999999999999999",
    "é",
    "\\x00",
    "../../etc/passwd",
)
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
)


@dataclass(frozen=True)
class Reader:
    """A public reader.

    Attributes:
        name: of it, in the table.
        make: writes a whole file or folder at a path.
        read: what it makes of one, as a pytree of arrays, or a value with a `repr`.
        text: whether its files are text.
    """

    name: str
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    text: bool = False


def copied(name: str) -> Callable[[Path], Any]:
    """Return a maker that copies what lies beside the tests of formats."""
    source = WRITTEN / name

    def make(path: Path) -> None:
        shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)

    return make


def texts(content: str) -> Callable[[Path], Any]:
    """Return a maker of a text file."""
    return lambda path: path.write_text(content, encoding="utf-8")


PARAMS = """
train_input: {data_dir: train.npz, batch_size: 4, shuffle: true}
model: {hidden_sizes: [3], activation_fn: swish}
optimizer: {optimizer_type: Adam, learning_rate: 0.05, max_gradient_norm: 1.0}
runconfig: {max_steps: 6, checkpoint_steps: 2, num_csx: 2, model_dir: model}
sparsity: {type: static, sparsity: 0.5}
"""
MACHINE = """
based_on: CS-2
name: mine
clock_hz: 1.1e9
host_bits_per_s: {value: 1.0e9, status: sourced, source: ours, interval: [5.0e8, 1.0e9]}
systems: 4
mode: streaming
store: {name: shelf, capacity_bytes: 8.0e12}
"""
MODEL = """
family: transformer
shape: {hidden_size: 768, num_hidden_layers: 12, num_heads: 12, vocab_size: 50257,
  max_sequence_length: 1024, share_embedding_weights: true}
parameters: 124439808
source: a card
"""
WIND = """
data:
  - {path: hrrr.grib2, split: stripes}
  - {path: february.nc, part: train}
target: vector
model: {name: SuperResolution, factor: 4, channels: 32, blocks: 4, local: 7}
recipe: {batch: 16, learning_rate: 2e-3}
patches: {size: 64, count: 512}
epochs: 60
"""


def winds(times: int = 3) -> Any:
    """Return a small dataset of wind with CF names."""
    import xarray as xr

    rng = np.random.default_rng(0)
    degrees = {"latitude": 50 + np.arange(8) / 10, "longitude": 4 + np.arange(9) / 10}
    units = {"latitude": "degrees_north", "longitude": "degrees_east"}
    coords = {
        name: (name, values, {"units": units[name], "standard_name": name})
        for name, values in degrees.items()
    }
    coords["time"] = np.datetime64("2020-01-01", "ns") + np.arange(times) * np.timedelta64(1, "h")
    fields = {
        name: (
            ("time", "latitude", "longitude"),
            rng.normal(size=(times, 8, 9)).astype("f4"),
            {"units": "m s-1", "standard_name": name},
        )
        for name in ("eastward_wind", "northward_wind")
    }
    return xr.Dataset(fields, coords)


def readers() -> list[Reader]:
    """Return every public reader of files."""
    import sciml
    from sciml.downscale.settings import settings
    from sciml.estimator import load_downscaling
    from sciml.train.checkpoint import Store
    from sciml.train.loop import Carry, Progress
    from wse._npz import read_npz
    from wse.job import read as params
    from wse.machine import specification
    from wse.models import shapes

    start = Progress(Carry({"w": np.ones((3, 4), "f4")}, (np.zeros(3),)))

    def checkpoint(path: Path) -> None:
        Store(path, {"seed": 1}).write(start)

    def resumed(path: Path) -> Any:
        fresh = Progress(start.carry)
        found = Store(path, {"seed": 1}).read(fresh)
        if found is fresh:
            raise ValueError("it starts anew")  # and a warning has said why
        return found.carry

    def store(path: Path) -> None:
        import optax

        from wse.execute.memoryx.store import store as stored

        stored({"w": np.ones((3, 4), "f4")}, optax.adam(1e-3), path)

    def reopened(path: Path) -> Any:
        import optax

        from wse.execute.memoryx.store import store as stored

        found = stored({"w": np.ones((3, 4), "f4")}, optax.adam(1e-3), path)
        return found.params, found.states

    def opened(path: Path) -> Any:
        found = sciml.wind.open(path)
        return {str(name): x.values for name, x in found.variables.items()}

    def simulations(path: Path) -> Any:
        found = sciml.ode.open_simulations(path).load()
        return {str(name): x.values for name, x in found.data_vars.items()}

    def simulate(path: Path) -> None:
        method = sciml.ode.RungeKutta4(chunk=20)
        sciml.ode.accumulate(sciml.ode.lotka_volterra(), path, samples=40, method=method)

    encoding: Any = {"engine": "h5netcdf"}
    return [
        Reader("sciml.load", copied("fits/dense.fit"), lambda p: sciml.load(p).params),
        Reader(
            "load_downscaling",
            copied(wind_file()),
            lambda p: load_downscaling(p).trained.params,
        ),
        Reader("checkpoint", checkpoint, resumed),
        Reader("weight store", store, reopened),
        Reader("simulations", simulate, simulations),
        Reader("arrays of wse run", copied("run/train.npz"), read_npz),
        Reader("wind, netCDF-4", lambda p: winds().to_netcdf(p, **encoding), opened),
        Reader(
            "wind, netCDF-3",
            lambda p: winds().to_netcdf(p, engine="scipy", format="NETCDF3_64BIT"),
            opened,
        ),
        Reader(
            "wind, Zarr", lambda p: winds().to_zarr(p, zarr_format=3, consolidated=False), opened
        ),
        *grib(opened),
        Reader("params of wse run", texts(PARAMS), params, text=True),
        Reader("machine", texts(MACHINE), specification.read, text=True),
        Reader("model", texts(MODEL), shapes.named.read, text=True),
        Reader("settings of wind", texts(WIND), settings, text=True),
    ]


def grib(opened: Callable[[Path], Any]) -> list[Reader]:
    """Return the reader of GRIB, where ecCodes is installed."""
    if find_spec("eccodes") is None:
        return []
    from tests.sciml.wind.test_grib import VALUES, write

    def make(path: Path) -> None:
        write(path, ("10u", {}, VALUES), ("10v", {}, VALUES + 1))

    return [Reader("wind, GRIB", make, opened)]


def wind_file() -> str:
    """Return the smallest trained net for wind."""
    files = sorted((WRITTEN / "wind").iterdir(), key=lambda path: path.stat().st_size)
    return f"wind/{files[0].name}"


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return bytes with one fault."""
    made = bytearray(content)
    place = chance.randrange(max(1, len(made)))
    match chance.choice(("flip", "zero", "cut", "double", "noise", "swap", "drop", "begin")):
        case "flip" if made:
            made[place] ^= 1 << chance.randrange(8)
        case "zero":
            length = len(made[place : place + 64])
            made[place : place + 64] = bytes(length)
        case "cut":
            del made[place:]
        case "double":
            made[place:place] = made[place : place + 64]
        case "noise":
            made[place : place + 8] = chance.randbytes(8)
        case "swap":
            other = chance.randrange(max(1, len(made)))
            a, b = made[place : place + 16], made[other : other + 16]
            made[place : place + 16], made[other : other + 16] = b, a
        case "drop":
            del made[place : place + chance.randrange(1, 64)]
        case _:
            place = chance.randrange(min(len(made), 512) or 1)
            made[place : place + 4] = chance.randbytes(4)
    return bytes(made)


def rewritten(content: bytes, chance: random.Random) -> bytes:
    """Return text with one word of another kind, or what YAML can be abused for."""
    kind = chance.randrange(10)
    if kind == 0:
        return mutated(content, chance)
    if kind == 1:
        return BOMB.encode() + b"\n" + content + b"\nname: *a8\n"
    if kind == 2:
        return content + b"\nname: " + b"[" * chance.choice((5, 5000))
    lines = content.decode().splitlines()
    at = chance.choice([i for i, line in enumerate(lines) if ":" in line])
    head, _, tail = lines[at].rpartition(":")
    ending = tail[len(tail.rstrip("}]")) :] if kind % 2 else ""
    lines[at] = f"{head}: {chance.choice(WORDS)}{ending}"
    return "\n".join(lines).encode()


def changed(path: Path, text: bool, chance: random.Random) -> None:
    """Change one file of a reader's in place; of a folder any, or remove it."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    target = chance.choice(files)
    if path.is_dir() and chance.random() < 0.15:
        target.unlink()
        return
    target.write_bytes((rewritten if text else mutated)(target.read_bytes(), chance))


def told(found: Any) -> str:
    """Return what tells a result from others."""
    leaves = jax.tree.leaves(found)
    if not all(isinstance(x, np.ndarray | jax.Array | np.generic | float | int) for x in leaves):
        whole = asdict(found) if is_dataclass(found) and not isinstance(found, type) else found
        return hashlib.sha256(repr(whole).encode()).hexdigest()
    made = hashlib.sha256()
    for leaf in map(np.ascontiguousarray, leaves):
        made.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
    return made.hexdigest()


def judged(reader: Reader, path: Path, whole: str) -> tuple[str, str]:
    """Return what became of a case, and what was said."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = told(reader.read(path))
    except REFUSALS as error:
        said = str(error)
        return ("refused" if len(said) < LONGEST else "too long"), said
    except MemoryError as error:
        return "memory", str(error)
    except Exception as error:
        return "escaped", f"{type(error).__name__}: {error}"
    return ("same" if found == whole else "other"), ""


def serve(pipe: Any) -> None:
    """Read what the other end of a pipe names, in a process of its own: a fault may end it."""
    logging.disable(logging.WARNING)
    known, wholes = readers(), {}
    while True:
        place, path, whole = pipe.recv()
        if place not in wholes:
            with tempfile.TemporaryDirectory() as folder:
                first = copy_of(whole, Path(folder, "case"))
                wholes[place] = told(known[place].read(first))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        verdict, said = judged(known[place], path, wholes[place])
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        if grown > LIMIT_BYTES and verdict not in FAULTS:
            verdict, said = "memory", f"{grown / 2**30:.1f} GiB"
        pipe.send((verdict, said))


class Worker:
    """A process that reads; it is killed where a case takes too long."""

    def __init__(self) -> None:
        """Start it."""
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self._fresh = True

    def judge(self, place: int, path: Path, whole: Path) -> tuple[str, str]:
        """Return what became of a case."""
        self._pipe.send((place, path, whole))
        limit_s = LIMIT_S + (START_S if self._fresh else 0)
        self._fresh = False
        if not self._pipe.poll(limit_s):
            self.stop()
            return "hang", "no handler of Python could stop it"
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            return "crash", f"the process ended with {self._process.exitcode}"

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()


def copy_of(whole: Path, path: Path) -> Path:
    """Copy a file or a folder."""
    return Path(shutil.copytree(whole, path) if whole.is_dir() else shutil.copy(whole, path))


def run(
    count: int, seed: int, say: Callable[[str], Any], only: str = ""
) -> dict[str, Counter[str]]:
    """Judge so many cases, the readers in turn; say each fault; return the counts by reader."""
    counts, known = defaultdict[str, Counter[str]](Counter), readers()
    with tempfile.TemporaryDirectory() as folder:
        root, worker = Path(folder), Worker()
        for i, reader in enumerate(known):
            reader.make(root / f"whole{i}")
        places = [i for i, reader in enumerate(known) if only in reader.name]
        for number in range(count):
            place = places[number % len(places)]
            reader, whole = known[place], root / f"whole{place}"
            path = copy_of(whole, root / "case")
            changed(path, reader.text, random.Random(f"{seed} {number}"))
            verdict, said = worker.judge(place, path, whole)
            counts[reader.name][verdict] += 1
            if verdict in FAULTS:
                say(f"{number} {reader.name}: {verdict}: {' '.join(said.split())[:300]}")
            if verdict in ("hang", "crash"):
                worker = Worker()
            for left in root.glob("case*"):
                removed(left)
        worker.stop()
    return counts


def removed(path: Path) -> None:
    """Remove a file or a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def main() -> int:
    """Run from the command line; return 1 where a reader let something through."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers with this in their name, as GRIB")
    given = parser.parse_args()
    counts = run(given.cases, given.seed, lambda line: sys.stdout.write(f"{line}\n"), given.only)
    kinds = ("refused", "same", "other", *FAULTS)
    sys.stdout.write(f"{'reader':24}{''.join(f'{kind:>10}' for kind in kinds)}\n")
    for name, found in counts.items():
        sys.stdout.write(f"{name:24}{''.join(f'{found[kind]:10}' for kind in kinds)}\n")
    total = sum(counts.values(), Counter[str]())
    sys.stdout.write(f"{'sum':24}{''.join(f'{total[kind]:10}' for kind in kinds)}\n")
    return int(sum(total[kind] for kind in FAULTS) > 0)


if __name__ == "__main__":
    sys.exit(main())
