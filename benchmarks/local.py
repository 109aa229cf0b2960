"""Predicted against measured step times on this computer: `wse.local` and a clock.

Run as `python -m benchmarks.local` from the root while nothing else runs; it takes some minutes and
leaves docs/results/local.csv and local.png. No test asserts it: clocks of shared computers vary, by
1.7 within minutes on the one used here. So rates and steps are measured in turns, in several sweeps
over all cases. Of both, the median over rounds is taken, and the median of these over sweeps.
"""

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from tqdm import tqdm

from validation.contract import models
from wse.computer.here import Local, of_layer
from wse.computer.measure import convolution_seconds, measure
from wse.computer.rates import Rates, typical
from wse.computer.timings import Convolutions
from wse.graph.trace import trace

RESULTS = Path(__file__).parents[1] / "docs" / "results"
STEPS_S, ROUNDS, SWEEPS = 0.3, 3, 8
SAMPLES = 8  # of the batches of the contracts
OPTIMIZER = optax.adam(1e-3)


def cases():
    """Yield the model table: name, how it is made, batches."""
    for width in (32, 128, 512, 2048):
        batches = (100, 1000) if width < 2048 else (100,)
        yield f"dense {width}", lambda w=width: models.published_dense(w), batches
    yield "published CNN", models.published_convolutional, (32, 128)
    yield "super-resolution", lambda: models.super_resolution(32, 4, 32), (4, 16)
    yield "U-Net", lambda: models.unet(2, (16, 32, 64)), (4, 16)
    yield "ResNet-18", lambda: models.resnet18(16, 32), (8, 32)
    yield "GPT", lambda: models.gpt(width=64), (32, 128)
    yield "scanned transformer", models.scanned, (64, 256)


def single(tree, samples: int | None = None):
    """Return a tree in float32, with as many samples as are asked for."""

    def of(leaf):
        leaf = jnp.asarray(leaf)
        if samples is not None and leaf.shape[:1] == (SAMPLES,):  # not what is no sample
            leaf = leaf[jnp.arange(samples) % SAMPLES]
        return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(of, tree)


class Step:
    """A compiled training step that can be run again and again."""

    def __init__(self, loss, params, batch):
        """Compile it."""
        self.problem = loss, params, batch

        def step(params, state, batch):
            gradient = jax.grad(loss)(params, batch)
            change, state = OPTIMIZER.update(gradient, state, params)
            return optax.apply_updates(params, change), state

        self.program = jax.jit(step, donate_argnums=(0, 1))
        self.carry = jax.tree.map(jnp.array, (params, OPTIMIZER.init(params)))
        self.seconds(1)

    def seconds(self, calls: int) -> float:
        """Return the seconds of a step, over so many."""
        began = time.perf_counter()
        for _ in range(calls):
            self.carry = self.program(*self.carry, self.problem[2])
        jax.block_until_ready(self.carry)
        return (time.perf_counter() - began) / calls

    def typical_s(self) -> float:
        """Return the median of its seconds over a few rounds."""
        calls = max(1, round(STEPS_S / ROUNDS / max(self.seconds(1), 1e-6)))
        return statistics.median(self.seconds(calls) for _ in range(ROUNDS))


def steps(only=None):
    """Yield name, batch and step of every case, or those named; compiled side by side."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = []
        for name, make, batches in cases():
            if only and name not in only:
                continue
            case = make()
            loss = (lambda p, b, f=case.loss: f(p, b)[0]) if case.has_aux else case.loss
            for samples in batches:
                batch = jax.device_put(single(case.batch, samples))
                made.append((name, samples, pool.submit(Step, loss, single(case.params), batch)))
        yield from ((name, samples, step.result()) for name, samples, step in made)


def main() -> None:
    """Measure rates and steps in turns, predict, and write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=SWEEPS)
    parser.add_argument("--out", type=Path, default=RESULTS / "local", help="without its ending")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="these models")
    options = parser.parse_args()
    table = list(steps(options.only))
    rates, timed, clock_s = [], [], []
    for _ in tqdm(range(options.sweeps), unit="sweep"):
        rates.append(measure())
        if not timed and jax.config.jax_compilation_cache_dir:
            compile_convolutions(table, rates[0])
        timed.append(Convolutions(partial(convolution_seconds, rates=rates[-1])))
        for _, _, step in table:
            Local(rates[-1], timed[-1]).estimate(*step.problem, OPTIMIZER)
        clock_s.append([step.typical_s() for _, _, step in table])
    here = Local(typical(rates), typical_convolutions(timed))
    rows = []
    for (name, samples, step), clock in zip(table, np.median(clock_s, axis=0), strict=True):
        found = here.estimate(*step.problem, OPTIMIZER)
        rows.append((name, samples, 1e3 * clock, 1e3 * found.step_s))
        ratio = found.step_s / clock
        print(f"{name:20}{samples:6}{1e3 * clock:10.3f} ms, predicted {ratio:.2f}")
    table = pd.DataFrame(rows, columns=["model", "batch", "measured_ms", "predicted_ms"])
    table["error_percent"] = 100 * (table.predicted_ms / table.measured_ms - 1)
    table.round(3).to_csv(options.out.with_suffix(".csv"), index=False)
    errors = sorted(abs(table.error_percent))
    print(f"{here.rates.computer}; {here.rates.versions}")
    print(f"median {statistics.median(errors):.0f} %, 90th {np.quantile(errors, 0.9):.0f} %")
    draw(table, options.out.with_suffix(".png"))


def compile_convolutions(table: list[Any], rates: Rates) -> None:
    """Compile all convolutions side by side, for the cache: one by one a card takes minutes."""
    graphs = [trace(*step.problem) for _, _, step in table]
    found = [
        x for graph in graphs for layer in graph.layers for part in of_layer(layer) for x in part
    ]
    kinds = {str(x.convolution): x.convolution for x in found if x.convolution}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(convolution_seconds, rates=rates), kinds.values()))


def typical_convolutions(timed: list[Convolutions]) -> Convolutions:
    """Return the medians of sweeps that met the same convolutions."""
    medians = {name: statistics.median(t.seconds[name] for t in timed) for name in timed[0].seconds}
    return Convolutions(timed[0].clock, medians)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw predicted over measured times, with the line of equality and 35 % to both sides."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    ax = figure.subplots()
    ends = np.array([table.measured_ms.min() / 2, table.measured_ms.max() * 2])
    ax.fill_between(ends, ends / 1.35, ends * 1.35, color="0.9", label="± 35 %")
    ax.loglog(ends, ends, color="0.5", lw=0.8)
    for i, (name, part) in enumerate(table.groupby("model", sort=False)):
        style = {"marker": "os^vDPX*<>"[i], "ls": "none", "ms": 5, "color": f"C{i}"}
        ax.loglog(part.measured_ms, part.predicted_ms, label=name, **style)
    ax.set(xlabel="measured (ms a step)", ylabel="predicted (ms a step)")
    ax.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    main()
