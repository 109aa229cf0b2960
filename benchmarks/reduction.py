"""Gradients of several devices added up in buckets, beside one reduction per array.

Run it with as many devices as wanted, and threads enough that a sum cannot wait for one:

    XLA_FLAGS=--xla_force_host_platform_device_count=4 PJRT_NPROC=8 python benchmarks/reduction.py

The two take turns; what is printed are medians over rounds, and of the ratio of the same round.

With `--streaming`, steps of the weight-streaming executor on these devices: with a reduction per
array (XLA is told not to combine those of a program), with one per layer, and with one per visit,
which small neighbours share. Each takes its turns in a process of its own.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

import wse
from wse.execute.buckets import BUCKET_BYTES, buckets, reducer
from wse.execute.streaming import executor
from wse.execute.streaming.visits import SMALL_BYTES, visited
from wse.execute.swarmx import SwarmX

APART = "--xla_disable_hlo_passes=cpu-all-reduce-combiner"
WAYS = {"per array": (APART, 0), "per layer": ("", 0), "per visit": ("", SMALL_BYTES)}


def gradients(width: int) -> list[np.ndarray]:
    """Return arrays as large as those of the published dense net, 1000 inputs, 8 hidden layers."""
    sizes = [1000, *[width] * 8, 2]
    shapes = [s for n, m in pairwise(sizes) for s in ((n, m), (m,))]
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape, np.float32) for shape in shapes]


def measure(width: int, options: argparse.Namespace) -> None:
    """Time both ways on all devices and print what was found."""
    count = len(jax.devices())
    swarm, arrays = SwarmX(count), gradients(width)
    stacks = swarm.deal([np.stack([array] * count) for array in arrays])
    ways = {
        "one by one": reducer(swarm.mesh, 0),
        "buckets": reducer(swarm.mesh, options.bucket_bytes),
    }
    totals = {name: way(stacks) for name, way in ways.items()}
    for array, *found in zip(arrays, *totals.values(), strict=True):
        for total in found:
            np.testing.assert_allclose(total, count * array, rtol=1e-5)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            for _ in range(options.steps):
                jax.block_until_ready(way(stacks))
            times[name].append((time.perf_counter() - start) / options.steps)
    pairs = zip(times["one by one"], times["buckets"], strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    found = ", ".join(f"{name} {1e6 * statistics.median(t):.0f} us" for name, t in times.items())
    size = sum(array.nbytes for array in arrays)
    print(
        f"{count} devices, width {width}: {len(arrays)} arrays, {size / 1e6:.2f} MB, "
        f"{len(buckets(arrays, options.bucket_bytes))} buckets: {found}; {ratio:.1f} times as fast",
        flush=True,
    )


def loss(params, batch):
    """Mean squared error of a chain of dense layers."""
    x, y = batch
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean((x - y) ** 2)


def streamed(width: int, small_bytes: int, steps: int) -> None:
    """Print the seconds of a streamed step, by the clock and of processors, and its visits."""
    executor.visited = partial(visited, small_bytes=small_bytes)
    arrays, draw = gradients(width), np.random.default_rng(1)
    params = list(zip(arrays[::2], arrays[1::2], strict=True))
    batch = tuple(draw.standard_normal((64, n), np.float32) for n in (1000, 2))
    made = wse.CS2(len(jax.devices())).executor(loss, params, batch)
    for _ in range(2):
        made.value_and_grad(params, batch)
    start, spent = time.perf_counter(), time.process_time()
    for _ in range(steps):
        made.value_and_grad(params, batch)
    clock, processor = time.perf_counter() - start, time.process_time() - spent
    print(clock / steps, processor / steps, len(made.graph.layers))


def measure_streaming(width: int, options: argparse.Namespace) -> None:
    """Time the ways of streaming in turns, each in its own process."""
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way, (flag, small_bytes) in WAYS.items():
            command = [sys.executable, __file__, "--steps", str(options.steps)]
            command += ["--child", str(width), str(small_bytes)]
            flags = f"{os.environ.get('XLA_FLAGS', '')} {flag}"
            done = subprocess.run(
                command, env={**os.environ, "XLA_FLAGS": flags}, check=True, capture_output=True
            )
            found[way].append([float(x) for x in done.stdout.split()])
    print(f"{len(jax.devices())} devices, width {width}, streamed:")
    for way, rows in found.items():
        ratios = [
            statistics.median(a[i] / b[i] for a, b in zip(found["per array"], rows, strict=True))
            for i in range(2)
        ]
        print(
            f"  {way}: {1e3 * statistics.median(x[0] for x in rows):.1f} ms, {rows[0][2]:.0f} "
            f"visits; {ratios[0]:.2f} times as fast, {ratios[1]:.2f} by processor time",
            flush=True,
        )


def main() -> None:
    """Measure nets of three widths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--bucket-bytes", type=int, default=BUCKET_BYTES)
    parser.add_argument("--streaming", action="store_true")
    parser.add_argument("--widths", type=int, nargs="*", default=[32, 128, 512])
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        streamed(*options.child, options.steps)
        return
    print(f"load before: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores; jax {jax.__version__}")
    for width in options.widths:
        (measure_streaming if options.streaming else measure)(width, options)


if __name__ == "__main__":
    main()
