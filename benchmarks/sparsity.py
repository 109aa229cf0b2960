"""Nets with zeros in blocks beside the dense net: a whole training step with Adam, and inference.

Contestants take turns: every round runs the dense net and each packed one once. What is printed are
medians over rounds of how many times as fast as the dense net of the same round a packed one is,
and the ratio of the shortest times: a busy machine moves the seconds more than the ratios.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from sciml.models import Dense
from wse._processor import processor, usable_cores
from wse.sparsity import Static, blockwise, packed

DEPTH, INPUTS, OUTPUTS = 8, 1000, 2
LEAST_S = 0.2  # a turn lasts at least so long
AIM = 2.0  # the project's own, at 90 % zeros


def main() -> None:
    """Measure every batch and print what was found."""
    options = arguments()
    print(f"{processor()}, {usable_cores()} cores; JAX {jax.__version__}")
    print(f"load before: {os.getloadavg()[0]:.2f} (a quiet machine has < 0.3)")
    for batch in options.batches:
        contestants = made(options.width, batch, options.zeros, options.blocks)
        times = [
            {name: turn(one) for name, one in contestants.items()} for _ in range(options.rounds)
        ]
        zeros = {name: share for name, (share, _) in contestants.items()}
        print(report(options.width, batch, zeros, times), flush=True)
    print(f"load after: {os.getloadavg()[0]:.2f}")


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--zeros", type=float, nargs="+", default=[0.75, 0.9, 0.95])
    parser.add_argument("--blocks", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def made(width: int, batch: int, zeros: list[float], blocks: list[int]) -> dict[Any, Any]:
    """Return the compiled step and prediction of the dense net and of each packed one."""
    module = Dense(width, DEPTH).build(INPUTS, OUTPUTS, rngs=nnx.Rngs(0))
    structure, params = nnx.split(module)
    draw = np.random.default_rng(0)
    x = jnp.asarray(draw.standard_normal((batch, INPUTS), np.float32))
    y = jnp.asarray(draw.random((batch, OUTPUTS), np.float32))

    def predict(params: Any, x: Any) -> Any:
        return nnx.merge(structure, params)(x)

    found: dict[Any, Any] = {None: (0.0, runs(predict, params, x, y))}
    for share in zeros:
        for block in blocks:
            try:
                weights = packed(params, Static(share, block=block))
            except ValueError as error:  # the first matrix has 1000 inputs
                print(f"left out: {error}")
                continue
            kept = weights["layers"][1]["kernel"].get_value().values.size
            found[share, block] = (
                1 - kept / width**2,
                runs(blockwise(predict), weights, x, y),
            )
    return found


def runs(predict: Callable[..., Any], weights: Any, x: Any, y: Any) -> list[Callable[[], None]]:
    """Return a training step and a prediction that can be run again and again."""
    optimizer = optax.adam(1e-4)

    def step(weights: Any, state: Any) -> Any:
        gradient = jax.grad(lambda w: jnp.mean((predict(w, x) - y) ** 2))(weights)
        change, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, change), state

    held = [jax.tree.map(jnp.array, weights)]
    held.append(optimizer.init(held[0]))
    program = jax.jit(step, donate_argnums=(0, 1))
    answer = jax.jit(predict)

    def train() -> None:
        held[:] = program(*held)
        jax.block_until_ready(held)

    def infer() -> None:
        jax.block_until_ready(answer(held[0], x))

    train()
    infer()
    return [train, infer]


def turn(contestant: Any) -> list[float]:
    """Return the seconds of a step and of a prediction."""
    return [seconds(run) for run in contestant[1]]


def seconds(run: Callable[[], None]) -> float:
    """Return the seconds of one run, over as many as take long enough."""
    began, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - began < LEAST_S:
        run()
        count += 1
    return (time.perf_counter() - began) / count


def report(width: int, batch: int, zeros: dict[Any, float], times: list[dict[Any, Any]]) -> str:
    """Return the table of one batch."""
    step_s, infer_s = (statistics.median(x[None][i] for x in times) for i in range(2))
    lines = [
        f"{DEPTH} layers of {width} units, batch {batch}, {len(times)} rounds; "
        f"dense: step {1e3 * step_s:.0f} ms, inference {1e3 * infer_s:.1f} ms",
        f"{'asked':>6}{'block':>7}{'zeros':>8}   step (of shortest)   inference (of shortest)",
    ]
    for name in zeros:
        if name is not None:
            step, infer = (ratios(times, name, i) for i in range(2))
            missed = "  missed" if name[0] == 0.9 and min(step[0], infer[0]) < AIM else ""
            lines.append(
                f"{name[0]:>6}{name[1]:>7}{zeros[name]:>8.3f}"
                f"{step[0]:>7.2f} ({step[1]:.2f}){infer[0]:>14.2f} ({infer[1]:.2f}){missed}"
            )
    return "\n".join(lines)


def ratios(times: list[dict[Any, Any]], name: Any, i: int) -> tuple[float, float]:
    """Return how many times as fast one is: the median over rounds, and of the shortest times."""
    median = statistics.median(x[None][i] / x[name][i] for x in times)
    return median, min(x[None][i] for x in times) / min(x[name][i] for x in times)


if __name__ == "__main__":
    main()
