"""Gradients of several devices added up in buckets, beside one reduction per array.

Run it with as many devices as wanted, and threads enough that a sum cannot wait for one:

    XLA_FLAGS=--xla_force_host_platform_device_count=4 PJRT_NPROC=8 python benchmarks/reduction.py

The two take turns; what is printed are medians over rounds, and of the ratio of the same round.
"""

import argparse
import os
import statistics
import time
from itertools import pairwise

import jax
import numpy as np

from wse.buckets import BUCKET_BYTES, buckets, reducer
from wse.swarmx import SwarmX


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


def main() -> None:
    """Measure nets of three widths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--bucket-bytes", type=int, default=BUCKET_BYTES)
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores; jax {jax.__version__}")
    for width in (32, 128, 512):
        measure(width, options)


if __name__ == "__main__":
    main()
