"""Eight emulated systems on whatever cores there are, for as long as asked: does anything grow?

    python validation/faults/hour.py --seconds 3600

Weight streaming trains a small net on eight systems, step after step, with its weight store in
memory and then in a folder. Again and again the process's private memory, threads and open files
are read. Memory comes and goes with what runs at that moment, so the least of the last fifth of
the readings is compared with the least of the first: it must be within 5 %, threads and files as
they were. The exit code is 1 where they are not.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before JAX is imported
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax.numpy as jnp
import numpy as np
import optax
import psutil

import wse

SHARE = 0.05  # assumed: of memory that may come and go
Reading = tuple[float, int, int]


def loss(params: Any, batch: Any) -> Any:
    """Mean squared error of a net of four layers."""
    x, y = batch
    for weights in params:
        x = jnp.tanh(x @ weights)
    return jnp.mean((x - y) ** 2)


def reading() -> Reading:
    """Return private memory in MB, threads, and open files of this process."""
    me = psutil.Process()
    return me.memory_full_info().uss / 1e6, me.num_threads(), me.num_fds()


def trained(seconds: float, folder: Path | None, every_s: float) -> tuple[int, list[Reading]]:
    """Train for so long; return how many steps it was, and what was read on the way."""
    rng = np.random.default_rng(0)
    params = [rng.standard_normal((64, 64), np.float32) / 8 for _ in range(4)]
    batch = tuple(rng.standard_normal((64, 64), np.float32) for _ in range(2))
    kept: Any = {} if folder is None else {"folder": folder}
    executor = wse.CS2(systems=8).executor(loss, params, batch, optax.adam(1e-4), **kept)
    state, steps, found = executor.init(params), 0, []
    began = last = time.monotonic()
    while time.monotonic() - began < seconds:
        state, _ = executor.train_step(state, batch)
        steps += 1
        if time.monotonic() - last >= every_s:
            last = time.monotonic()
            found.append(reading())
    return steps, found


def ends(found: list[Reading]) -> tuple[Reading, Reading]:
    """Return the least of the first and of the last fifth of the readings."""
    fifth = max(1, len(found) // 5)
    first, last = found[:fifth], found[-fifth:]
    least = [tuple(min(values) for values in zip(*part, strict=True)) for part in (first, last)]
    return least[0], least[1]  # pyright: ignore[reportReturnType]


def grown(first: Reading, last: Reading) -> bool:
    """Tell whether anything is larger at the end than at the beginning."""
    return last[0] > (1 + SHARE) * first[0] or last[1] > first[1] or last[2] > first[2]


def main(seconds: float) -> int:
    """Run both halves and print what was read; return the exit code."""
    faults = 0
    with tempfile.TemporaryDirectory() as name:
        for where, folder in (("memory", None), ("a folder", Path(name) / "store")):
            every_s = seconds / 400
            steps, found = trained(seconds / 2, folder, every_s)
            first, last = ends(found)
            faults += grown(first, last)
            sys.stdout.write(
                f"weights in {where}: {steps} steps of 8 systems in {seconds / 2:.0f} s; memory "
                f"{first[0]:.0f} to {last[0]:.0f} MB, threads {first[1]} to {last[1]}, "
                f"files {first[2]} to {last[2]}\n"
            )
            sys.stdout.flush()
    return int(faults > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    sys.exit(main(parser.parse_args().seconds))
