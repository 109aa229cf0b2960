"""What operations beside products take, as a caution of `wse.estimate` says it, and a clock.

Run as `python -m benchmarks.beside` from the root while nothing else runs; it takes two minutes and
leaves docs/results/beside.csv. Twenty-two small nets in single precision, eleven of which are made
of scans, norms, pools, lookups and sorts, eleven of products and convolutions. The computer at hand
stands in for the CPU node: its bandwidth, and the rate that makes the dense nets take as long as
said. So the table says nothing of products, and all of what lies beside them.
"""

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pandas as pd

from benchmarks import beside_nets
from wse.computer import beside
from wse.computer.measure import measure
from wse.graph.trace import trace
from wse.machine.machine import Sourced
from wse.machine.processors import CPU_NODE, Processors
from wse.models.from_graph import workload
from wse.predict import roofline

RESULTS = Path(__file__).parents[1] / "docs" / "results"
STEP_S, SWEEPS = 0.1, 6


def seconds(program: Any, made: tuple[Any, Any], calls: int) -> float:
    """Return the seconds of a call, over so many."""
    began = time.perf_counter()
    out = [program(*made) for _ in range(calls)]
    jax.block_until_ready(out[-1])
    return (time.perf_counter() - began) / calls


def clocks(nets: dict[str, Any]) -> dict[str, float]:
    """Return the median over sweeps of the seconds of each net's gradient."""
    programs = {name: (jax.jit(jax.grad(loss)), made) for name, (loss, *made) in nets.items()}
    found: dict[str, list[float]] = {name: [] for name in nets}
    for _ in range(SWEEPS):
        for name, (program, made) in programs.items():
            calls = max(1, round(STEP_S / max(seconds(program, made, 1), 1e-6)))
            found[name].append(min(seconds(program, made, calls) for _ in range(2)))
    return {name: statistics.median(times) for name, times in found.items()}


def computer(nets: dict[str, Any], clock: dict[str, float]) -> Processors:
    """Return this computer in the place of the CPU node."""
    rates = measure()
    of = {name: workload(trace(*nets[name])) for name in nets if name.startswith("dense")}
    flops = {x: work.forward_flops + work.backward_flops for x, work in of.items()}
    pace = [flops[x] * len(nets[x][2]) / clock[x] for x in of]
    factor = roofline.fit(CPU_NODE.name).factors[0]
    numbers = {
        "flops_per_s": (factor * statistics.median(pace), "FLOP/s"),
        "memory_bytes_per_s": (rates.bandwidth[-1], "B/s"),
        "host_bytes_per_s": (1e12, "B/s"),
        "launch_s": (rates.kernel_s, "s"),
    }
    made = {name: Sourced(x, unit, "assumed", "measured") for name, (x, unit) in numbers.items()}
    return Processors(replace(CPU_NODE, **made))


def main() -> None:
    """Time all nets, estimate them, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "beside.csv")
    options = parser.parse_args()
    nets = {name: make() for name, make in (beside_nets.BESIDE | beside_nets.PRODUCTS).items()}
    clock = clocks(nets)
    here = computer(nets, clock)
    rows = []
    for name, net in nets.items():
        graph = trace(*net)
        work, size = workload(graph), graph.batch_size
        phases = roofline.phases(work, here, size, size)
        found = beside.of_graph(graph)
        counts = found.moved, found.slow, found.turns
        said = roofline.aside(counts, work, here, phases, (size, size)).times
        answer_s = sum(x.time_s for x in phases[1:])
        rows.append((name, 1e3 * clock[name], 1e3 * answer_s, clock[name] / answer_s, said))
    names = ["net", "measured_ms", "answer_ms", "measured_times", "said_times"]
    table = pd.DataFrame(rows, columns=names)
    table.round(3).to_csv(options.out, index=False)
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
