"""Training steps on the device at hand beside what `wse.estimate` says of it, in two precisions.

    python -m benchmarks.processors --machine h100 --out docs/results/h100.csv

Nets are those of `benchmarks.local`, wide dense ones, and some of `wse workloads`. A step is one
compiled program of plain JAX with Adam: in float32, whose products a card rounds to TF32, and
with weights and samples cast to bfloat16. `held` says whether the measured step lies within the
estimate's interval.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pandas as pd

import wse
from benchmarks.local import OPTIMIZER, cases, single
from validation.contract import models
from wse._files import write_aside

NAMED = {"GPT-3-1.3B": 2, "GPT-2-small": 8, "BERT-large": 8, "ESM-2-35M": 4, "ResNet-50": 64}
PRECISIONS = ("float32", "bfloat16")
ROUNDS, ROUND_S = 5, 0.2
Problem = tuple[str, int, Callable[..., Any], Any, Any]  # name, samples, loss, shapes of both


def main() -> None:
    """Compile side by side, measure one after the other, print and write."""
    options = arguments()
    asked = [(one, x) for one in problems(options.only) for x in options.precisions]
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = [pool.submit(compiled, *one) for one in asked]
        for (problem, precision), program in zip(asked, programs, strict=True):
            try:
                step_s = seconds(program.result(), problem)
            except jax.errors.JaxRuntimeError as error:
                print(problem[0], precision, str(error)[:90], sep="\t", flush=True)
                continue
            row = {"model": problem[0], "batch": problem[1], "precision": precision}
            row["device"] = jax.devices()[0].device_kind
            rows.append(row | beside(problem, step_s, options.machine))
            print(*rows[-1].values(), sep="\t", flush=True)
    if options.out:
        with write_aside(options.out) as aside:
            pd.DataFrame(rows).to_csv(aside, index=False)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--machine", default="h100", help="the device at hand, as estimate names it"
    )
    parser.add_argument("--only", nargs="+", help="names of nets")
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--out", type=Path, help="a CSV file")
    return parser.parse_args()


def problems(only: list[str] | None) -> Iterator[Problem]:
    """Yield all nets, as shapes: the widest programs first, so that compiling them starts first."""
    for name, samples in NAMED.items():
        if not only or name in only:
            made = wse.zoo.traceable(name, samples)
            yield name, samples, made.loss, made.params, made.batch
    wide = [(f"dense {w}", lambda w=w: models.published_dense(w), (10_000,)) for w in (512, 2048)]
    for name, make, batches in (*cases(), *wide):
        if not only or name in only:
            case = make()
            loss = (lambda p, b, f=case.loss: f(p, b)[0]) if case.has_aux else case.loss
            params = jax.tree.map(shape, single(case.params))
            for samples in batches:
                batch = jax.tree.map(shape, jax.eval_shape(partial(single, case.batch, samples)))
                yield name, samples, loss, params, batch


def shape(leaf: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and type of a leaf."""
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def compiled(problem: Problem, precision: str) -> Callable[..., Any]:
    """Return one training step as a program."""
    _, _, loss, params, batch = problem

    def cast(tree: Any) -> Any:
        def one(x: Any) -> Any:
            return x.astype(precision) if jnp.issubdtype(x.dtype, jnp.floating) else x

        return jax.tree.map(one, tree)

    def step(params: Any, state: Any, batch: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda p: loss(cast(p), cast(batch)))(params)
        change, state = OPTIMIZER.update(gradient, state, params)
        return optax.apply_updates(params, change), state, value

    state = jax.eval_shape(OPTIMIZER.init, params)
    return jax.jit(step, donate_argnums=(0, 1)).lower(params, state, batch).compile()


def seconds(program: Callable[..., Any], problem: Problem) -> float:
    """Return the median seconds of a step, on random weights and samples."""
    _, _, _, params, batch = problem

    @jax.jit
    def filled(key: Any) -> Any:
        def one(leaf: Any) -> Any:
            if not jnp.issubdtype(leaf.dtype, jnp.floating):
                return jnp.zeros(leaf.shape, leaf.dtype)
            return 0.02 * jax.random.normal(key, leaf.shape, leaf.dtype)

        made = jax.tree.map(one, params)
        return made, OPTIMIZER.init(made), jax.tree.map(one, batch)

    *held, samples = filled(jax.random.key(0))

    def run(steps: int) -> float:
        began = time.perf_counter()
        for _ in range(steps):
            held[0], held[1], value = program(held[0], held[1], samples)
        jax.block_until_ready((held, value))
        return (time.perf_counter() - began) / steps

    run(2)
    steps = max(1, round(ROUND_S / run(2)))
    return statistics.median(run(steps) for _ in range(ROUNDS))


def beside(problem: Problem, step_s: float, machine: str) -> dict[str, Any]:
    """Return the measured step, the estimated one with its interval, and whether that holds it."""
    _, samples, loss, params, batch = problem
    found = wse.estimate(loss, params, batch, machine=machine, samples=samples)
    usual, low, high = (1e3 * x for x in (found.train_s, *found.training_interval_s))
    return {
        "step_ms": round(1e3 * step_s, 4), "estimated_ms": round(usual, 4),
        "low_ms": round(low, 4), "high_ms": round(high, 4), "held": low <= 1e3 * step_s <= high,
    }  # fmt: skip


if __name__ == "__main__":
    main()
