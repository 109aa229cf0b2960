"""What an ensemble costs: eight nets in one program over one net, epoch by epoch in turns."""

import argparse
import os
import time
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.models import Dense, Ensemble
from sciml.train.epoch import Carry, epochs_program
from sciml.train.optimizer import optimizer

INPUTS, OUTPUTS, SAMPLES, SIZE, WIDTH = 1000, 2, 1000, 8, 128


def main() -> None:
    """Print processor and wall seconds of an epoch, least of all rounds, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 100, 1000])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.2f} (a quiet machine has < 0.3)")
    for batch in options.batches:
        one, many = turns([Dense(WIDTH), Ensemble(Dense(WIDTH), SIZE)], batch, options.rounds)
        work = products() * (SAMPLES // batch * batch)
        print(
            f"batch {batch:>5}: one {1e3 * one[0]:7.1f} ms, {SIZE} members {1e3 * many[0]:7.1f} ms "
            f"of processor time: ratio {many[0] / one[0]:.2f} (by the clock {many[1] / one[1]:.2f})"
            f", {work / one[0] / 1e9:.0f} and {SIZE * work / many[0] / 1e9:.0f} GFLOP/s a core"
        )


def products() -> int:
    """Return the operations of a sample's products: x W, its gradient of W and, but first, of x."""
    first, *others = [n * m for n, m in pairwise(Dense(WIDTH).sizes(INPUTS, OUTPUTS))]
    return 4 * first + 6 * sum(others)


def turns(models, batch: int, rounds: int) -> list[tuple[float, float]]:
    """Return (processor_s, wall_s) of one epoch of each model, the least of the rounds."""
    programs = [program(model, batch) for model in models]
    least = [(np.inf, np.inf)] * len(models)
    for round_ in range(rounds + 1):
        for i, run in enumerate(programs):
            spent = run()
            if round_:  # the first one compiles
                least[i] = tuple(map(min, least[i], spent))
    return least


def program(model, batch: int):
    """Return a function that trains a model for one more epoch and returns its seconds."""
    draw = np.random.default_rng(0)
    data = (
        jnp.asarray(draw.normal(size=(SAMPLES, INPUTS)), jnp.float32),
        jnp.asarray(draw.uniform(size=(SAMPLES, OUTPUTS)), jnp.float32),
    )
    graph, params = nnx.split(model.build(INPUTS, OUTPUTS, rngs=nnx.Rngs(0)), nnx.Param)

    def loss(params, pairs, key):
        del key
        return jnp.mean((nnx.merge(graph, params)(pairs[0]) - pairs[1]) ** 2)

    transform = optimizer(Dense(WIDTH).recipe(), 1000)
    epochs = epochs_program(loss, transform, batch)
    carry = Carry(params, transform.init(params))

    def run() -> tuple[float, float]:
        nonlocal carry
        began = time.process_time(), time.perf_counter()
        carry, losses = epochs(carry, data, jax.random.key(0), jnp.int32(0), jnp.int32(1))
        jax.block_until_ready(losses)
        return time.process_time() - began[0], time.perf_counter() - began[1]

    return run


if __name__ == "__main__":
    main()
