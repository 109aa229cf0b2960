"""Wind nets and wind files: training, inference and reading, beside PyTorch and the bare disk.

Contestants take turns in every round. What is printed are medians over rounds, and medians of
ratios within a round, by the clock and by processor time.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.downscale.result import Downscaling
from sciml.models import SuperResolution
from sciml.train import Recipe, Trained
from sciml.train.epoch import Carry
from sciml.train.loop import compiled
from sciml.train.optimizer import optimizer
from sciml.train.parts import in_parts
from sciml.wind import block_mean
from sciml.wind.prepare.channels import Normaliser
from wse._files import write_aside

TARGETS = {"training": 0.8, "inference": 0.9, "from disk": 0.7, "from the page cache": 0.7}
RATE = 1e-4
SIDE, SQUARE, BATCH = 1024, 256, 16  # of a field that is read, and of what a batch has of it


@dataclass(frozen=True)
class Case:
    """One net and one batch of fine fields."""

    factor: int = 4
    channels: int = 64
    blocks: int = 8
    batch: int = 16
    side: int = 128
    updates: int = 2

    @property
    def model(self) -> SuperResolution:
        """Ours."""
        return SuperResolution(self.factor, self.channels, self.blocks)

    def fields(self) -> np.ndarray:
        """Return fine fields."""
        shape = (self.batch * self.updates, 1, self.side, self.side)
        return np.random.default_rng(0).standard_normal(shape, np.float32)


def ours(case: Case) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return our epochs, in parts as trainings choose and in one program, and a trained net."""
    structure, params = nnx.split(case.model.build(nnx.Rngs(0)), nnx.Param)

    def loss(params: Any, fine: Any, _: Any) -> Any:
        net = nnx.merge(structure, params)
        return net.loss(block_mean(fine, case.factor), fine)

    recipe = Recipe(case.batch, RATE, schedule="constant", clip=None)
    transform = optimizer(recipe, 1)
    data, key = jnp.asarray(case.fields()), jax.random.key(0)
    start = Carry(params, transform.init(params))

    def epochs(loss: Any) -> Callable[[], Any]:
        held = [jax.tree.map(jnp.copy, start)]
        run, _ = compiled(loss, transform, case.batch, None, (held[0], data, key))

        def train() -> None:
            held[0], _ = run(held[0], data, key, jnp.int32(0), jnp.int32(1))
            jax.block_until_ready(held[0])

        return train

    none = np.zeros(0, np.float32)
    still = Trained(jax.tree.map(jnp.copy, params), none, none, none, 0.0, 0.0, 0.0)
    net = Downscaling(case.model, Normaliser(("wind_speed",), (0.0,), (1.0,)), still)
    coarse = np.asarray(block_mean(data[: case.batch], case.factor))

    training = {"sciml": epochs(in_parts(loss, params, data, case.batch))}
    training["one program"] = epochs(loss)
    return {"training": training, "inference": {"sciml": lambda: net.refine(coarse)}}


def torch_net(case: Case) -> Any:
    """Return the same net in PyTorch, channels last for oneDNN."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            width = case.channels
            self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

        def forward(self, x):
            return x + self.second(functional.relu(self.first(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Conv2d(1, case.channels, 3, padding=1)
            self.blocks = nn.Sequential(*[Block() for _ in range(case.blocks)])
            self.tail = nn.Conv2d(case.channels, case.factor**2, 3, padding=1)

        def forward(self, coarse):
            residual = functional.pixel_shuffle(
                self.tail(self.blocks(self.head(coarse))), case.factor
            )
            fine = residual + functional.interpolate(
                coarse, scale_factor=case.factor, mode="bicubic", align_corners=False
            )
            lost = coarse - functional.avg_pool2d(fine, case.factor)
            return fine + functional.interpolate(lost, scale_factor=case.factor, mode="nearest")

    net: Any = Net()
    return net.to(memory_format=torch.channels_last)


def theirs(case: Case, *, bfloat16: bool = False) -> dict[str, Callable[[], Any]]:
    """Return an epoch and the net in PyTorch; on a card compiled, and in bfloat16 if asked."""
    import torch
    from torch.nn import functional

    card = torch.cuda.is_available()
    where = "cuda" if card else "cpu"
    wait = torch.cuda.synchronize if card else lambda: None
    made = torch_net(case).to(where)
    net = torch.compile(made, dynamic=False) if card else made
    adam = torch.optim.Adam(made.parameters(), lr=RATE, fused=True)
    data = torch.from_numpy(case.fields()).to(where, memory_format=torch.channels_last)
    coarse = functional.avg_pool2d(data[: case.batch], case.factor)

    def train() -> None:
        for rows in torch.randperm(len(data), device=where).split(case.batch):
            fine = data[rows]
            adam.zero_grad(set_to_none=True)
            with torch.autocast(where, torch.bfloat16, enabled=bfloat16):
                guess = net(functional.avg_pool2d(fine, case.factor)).float()
            functional.mse_loss(guess, fine).backward()
            adam.step()
        wait()

    def infer() -> None:
        with torch.inference_mode(), torch.autocast(where, torch.bfloat16, enabled=bfloat16):
            net(coarse)
        wait()

    return {"training": train, "inference": infer}


def reading(megabytes: int, folder: Path) -> tuple[dict[str, Callable[[], Any]], list[Path]]:
    """Return readers of one uncompressed Zarr store, and its files.

    Readers are our stream, bare files, and xbatcher if it is there.
    """
    import xarray as xr

    times = max(2, megabytes * 2**20 // (2 * 4 * SIDE**2))
    path = folder / "fields.zarr"
    values = np.random.default_rng(0).standard_normal((times, 2, SIDE, SIDE), np.float32)
    fields = xr.DataArray(values, dims=("time", "channel", "y", "x"), name="wind")
    chunks = {"wind": {"compressors": None, "chunks": (1, 2, SIDE, SIDE)}}
    fields.to_dataset().to_zarr(path, consolidated=False, zarr_format=3, encoding=chunks)
    files = sorted(p for p in (path / "wind" / "c").rglob("*") if p.is_file())
    lazy = xr.open_zarr(path, consolidated=False).wind

    def bare() -> None:
        for file in files:
            np.frombuffer(file.read_bytes(), np.float32).sum()

    def stream() -> None:
        from sciml.wind import gridded
        from sciml.wind import stream as streamed

        for squares in streamed(lazy, gridded(times, SIDE, SIDE, SQUARE), BATCH):
            squares.block_until_ready()

    runs: dict[str, Callable[[], Any]] = {"sciml": stream, "bare files": bare}
    if find_spec("xbatcher") and find_spec("torch"):
        runs["xbatcher"] = lambda: xbatched(lazy)
    return runs, files


def forget(files: list[Path]) -> None:
    """Have the system drop its copies of files, so that the next reading is from disk."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def xbatched(fields: Any) -> None:
    """Read by xbatcher and PyTorch's DataLoader."""
    from torch.utils.data import DataLoader

    batches, loaders = map(import_module, ("xbatcher", "xbatcher.loaders.torch"))
    generator = batches.BatchGenerator(fields, input_dims={"y": SQUARE, "x": SQUARE})
    for _ in DataLoader(loaders.MapDataset(generator), batch_size=BATCH):
        pass


def compared(
    runs: dict[str, Callable[[], Any]], rounds: int, before: Callable[[], Any] = lambda: None
) -> dict[str, dict[str, list[float]]]:
    """Return wall-clock and processor seconds of each run in every round, each after `before`."""
    found = {name: {"wall_s": [], "cpu_s": []} for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            before()
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            found[name]["wall_s"].append(time.perf_counter() - wall)
            found[name]["cpu_s"].append(time.process_time() - cpu)
    return found


def ratio(found: dict[str, dict[str, list[float]]], other: str, clock: str) -> float:
    """Return how many times as fast ours is: the median over rounds."""
    pairs = zip(found[other][clock], found["sciml"][clock], strict=True)
    return statistics.median(theirs / max(ours, 1e-9) for theirs, ours in pairs)


def bounded(megabytes: int, folder: Path) -> dict[str, float]:
    """Return how far memory grew while a set ten times the allowance was streamed."""
    script = (
        "import resource, sys, xarray as xr\n"
        "from sciml.wind import gridded, stream\n"
        "f = xr.open_zarr(sys.argv[1], consolidated=False).wind\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "batches = stream(f, gridded(f.sizes['time'], 1024, 1024, 256), 16)\n"
        "next(batches).block_until_ready()\n"
        "before = peak()\n"
        "for one in batches: one.block_until_ready()\n"
        "print(before, peak())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(folder / "fields.zarr")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    before, after = map(float, ran.stdout.split())
    return {"set_mb": megabytes, "allowed_mb": megabytes / 10, "growth_mb": after - before}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--side", type=int, default=128, help="of a patch, in fine points")
    parser.add_argument("--megabytes", type=int, default=400, help="of the store that is read")
    parser.add_argument("--only", choices=("nets", "reading"), help="one half alone")
    parser.add_argument("--out", type=Path, help="folder for wind.json")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, JAX {jax.__version__}, load before: {load:.2f} (quiet: < 0.3)")
    folder = Path(tempfile.mkdtemp(prefix="sciml-wind-"))
    measured: dict[str, Any] = {}
    try:
        if options.only != "reading":
            measured |= nets(
                Case(channels=options.channels, blocks=options.blocks, side=options.side),
                options.rounds,
            )
        if options.only != "nets":
            runs, files = reading(options.megabytes, folder)
            measured["from the page cache"] = compared(runs, options.rounds)
            measured["from disk"] = compared(runs, options.rounds, lambda: forget(files))
            measured["memory"] = bounded(options.megabytes, folder)
    finally:
        shutil.rmtree(folder)
    print(report(measured))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"load after: {os.getloadavg()[0]:.2f}; peak memory {peak_mb:.0f} MB")
    if options.out:
        with write_aside(options.out / "wind.json") as aside:
            aside.write_text(json.dumps(measured, indent=1))


def nets(case: Case, rounds: int) -> dict[str, Any]:
    """Return training and inference of both nets, taking turns."""
    mine = ours(case)
    if not find_spec("torch"):
        print("PyTorch is not installed, so it does not take part: pip install 'sciml-wse[bench]'")
        return {what: compared(runs, rounds) for what, runs in mine.items()}
    other = theirs(case)
    return {w: compared(runs | {"torch": other[w]}, rounds) for w, runs in mine.items()}


def report(measured: dict[str, Any]) -> str:
    """Return the table."""
    lines = [f"{'':20}{'contestant':14}{'wall s':>9}{'cpu s':>9}{'sciml is':>10}{'by cpu':>8}"]
    for what, found in measured.items():
        if what == "memory":
            lines.append(
                f"memory grew by {found['growth_mb']:.0f} MB while {found['set_mb']} MB were "
                f"streamed; allowed are {found['allowed_mb']:.0f} MB"
            )
            continue
        for name, times in found.items():
            own = "".join(f"{statistics.median(times[c]):>9.3f}" for c in ("wall_s", "cpu_s"))
            against = ""
            if name != "sciml":
                against = (
                    f"{ratio(found, name, 'wall_s'):>9.2f}×{ratio(found, name, 'cpu_s'):>7.2f}×"
                )
                if name in ("torch", "bare files"):
                    against += f"   target {TARGETS[what]}"
            lines.append(f"{what:20}{name:14}{own}{against}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
