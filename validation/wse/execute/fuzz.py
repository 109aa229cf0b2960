"""Random losses that take the batch apart, on executors of every setting, against plain JAX.

    python validation/wse/execute/fuzz.py --pairs 5000 --seed 0

prints what is not equal and the counts, and exits with 1 where a pair is wrong or fails. A program
is a few dense layers with random operations between them, most along the axis of the samples:
slices with steps, flips, gathers, scatters, pads, reshapes, concatenations, sorts, scans,
convolutions. A pair is one program under one setting: systems and devices (2, 3, 4, 8), an odd or
an even number of samples for each, streaming or layer-pipelined, residuals kept or not. Values and
gradients must be those of plain JAX in float64; what is refused is counted.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

if __name__ == "__main__":  # before JAX is imported
    from tests.xla_flags import QUICK  # compiling is nearly all the time

    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count=8 {QUICK}"

import jax
import jax.numpy as jnp
import numpy as np

import wse

FEATURES = 4
TOLERANCE = 1e-9
ROUNDING = 1e-14  # of float64, summed up over a program
SAME_ROUNDING = 10  # times the distance of plain JAX to itself is rounding too
SYSTEMS = (2, 3, 4, 8)
Operation = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class Setting:
    """How a program is executed."""

    systems: int
    share: int  # samples of each system
    mode: str
    keep_residuals: bool


# Every pair of values occurs among these.
SETTINGS = [
    Setting(*values)
    for values in product(SYSTEMS, (3, 4, 5), ("streaming", "pipelined"), (False, True))
]


def operations(rng: np.random.Generator, samples: int) -> Iterator[tuple[str, Operation]]:
    """Yield one operation of each kind for arrays (samples, feature), with random arguments."""
    step = int(rng.integers(2, 4))
    start = int(rng.integers(0, 2))
    shift = int(rng.integers(1, max(2, samples)))
    stop = int(rng.integers(max(1, samples // 2), samples + 1))
    rows = rng.integers(0, samples, size=int(rng.integers(1, samples + 1)))
    targets = rng.permutation(samples)
    order = jnp.asarray(targets)
    mask = jnp.asarray(rng.normal(size=(samples, 1)))
    taps = jnp.asarray(rng.normal(size=(3,)))
    yield "strided slice", lambda x: x[start::step]
    yield "slice", lambda x: x[start:stop]
    yield "flip", lambda x: x[::-1]
    yield "strided flip", lambda x: x[::-step]
    yield "gather", lambda x: x[rows]
    yield "permute", lambda x: jnp.take(x, order, axis=0)
    yield "scatter", lambda x: jnp.zeros_like(x).at[order].add(x)
    yield "scatter rows", lambda x: x.at[rows].add(x[rows])
    yield "roll", lambda x: jnp.roll(x, shift, axis=0)
    yield "pad", lambda x: jnp.pad(x, ((start, step), (0, 0)))
    yield "pad inside", lambda x: jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 1), (0, 0, 0)])
    yield (
        "pad inside, cut",
        lambda x: jax.lax.pad(x, jnp.zeros((), x.dtype), [(1, -1, 1), (0, 0, 0)]),
    )
    yield (
        "fold and back",
        lambda x: x.reshape(-1, 2, FEATURES // 2).transpose(1, 0, 2).reshape(-1, FEATURES),
    )
    yield "fold", lambda x: jnp.tanh(x.reshape(-1, 2 * FEATURES) if len(x) % 2 == 0 else x)
    yield "concatenate", lambda x: jnp.concatenate([x, x[: start + 1]], axis=0)
    yield "interleave", lambda x: jnp.stack([x, 2 * x], axis=1).reshape(-1, x.shape[1])
    yield "sort", lambda x: jnp.sort(x, axis=0)
    yield "cumulate", lambda x: jnp.cumsum(x, axis=0)
    yield "differences", lambda x: jnp.diff(x, axis=0) if len(x) > 1 else x
    yield "repeat", lambda x: jnp.repeat(x, 2, axis=0)
    yield "mean over samples", lambda x: x - x.mean(axis=0)
    yield "gram", lambda x: (x @ x.T) @ x / len(x)
    yield "mask", lambda x: x * mask[: len(x)] if len(x) <= samples else x
    yield "scan", lambda x: jax.lax.scan(lambda c, row: (0.5 * c + row, c + row), x[0], x)[1]
    yield "convolve", lambda x: jax.vmap(lambda c: jnp.convolve(c, taps, mode="same"), 1, 1)(x)
    yield "largest of windows", partial(windows, step=step)
    yield "dynamic slice", lambda x: jax.lax.dynamic_slice_in_dim(x, start, max(1, len(x) - 2))
    yield "transpose", lambda x: jnp.tanh(x.T @ x) if x.ndim == 2 else x
    for name, one in moved_first(start, shift):
        yield name, partial(moved, one=one)
    yield "of each feature", jax.vmap(lambda c: jnp.sort(c[start:]), in_axes=1, out_axes=1)
    yield "behind others", lambda x: jnp.flip(jnp.stack([x, -x])[:, start:], 1)[0]


def moved(x: jax.Array, one: Operation) -> jax.Array:
    """Return what an operation makes of samples that lie along the last axis."""
    return one(x.T).T


def moved_first(start: int, shift: int) -> Iterator[tuple[str, Operation]]:
    """Yield operations for arrays (feature, samples)."""
    yield "sort moved", lambda x: jnp.sort(x[:, : max(1, x.shape[1] - 3)], axis=1)
    yield "cumulate moved", lambda x: jnp.cumsum(jnp.roll(x[:, start:], shift, axis=1), axis=1)
    yield "fold moved", lambda x: jnp.diff(x.reshape(2, -1), axis=1, append=0.0).reshape(x.shape)
    yield "join moved", lambda x: jnp.concatenate([x, x[:, : start + 1]], axis=1)
    yield "scan moved", lambda x: jax.lax.scan(flipped_sums, x[0], x[:, ::-1])[1]


def flipped_sums(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return what a loop carries on and collects, for one feature of all samples."""
    return 0.5 * carry[::-1] + row, carry + row


def windows(x: jax.Array, step: int) -> jax.Array:
    """Return the largest of neighbouring samples."""
    if len(x) < 2:
        return x
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 1), (min(step, len(x)), 1), "VALID")


@dataclass(frozen=True)
class Program:
    """A loss, its parameters and a batch; `names` are those of its operations."""

    names: tuple[str, ...]
    loss: Callable[[Any, Any], jax.Array]
    params: Any
    batch: Any


def draw(seed: int, samples: int) -> Program:
    """Return the program of a seed for so many samples."""
    rng = np.random.default_rng(seed)
    layers, names, steps = int(rng.integers(2, 5)), [], []
    shape, weights = jax.ShapeDtypeStruct((samples, FEATURES), jnp.float64), []
    for _ in range(layers):
        weights.append(rng.normal(size=(shape.shape[1], FEATURES)) / 2)
        chosen: list[Operation] = []
        shape = jax.ShapeDtypeStruct((shape.shape[0], FEATURES), shape.dtype)
        for _ in range(int(rng.integers(0, 3))):
            kinds = list(operations(rng, shape.shape[0]))
            name, one = kinds[int(rng.integers(len(kinds)))]
            made = jax.eval_shape(one, shape)
            if made.shape[0] == 0 or made.shape[0] > 200:
                continue
            names.append(name)
            chosen.append(one)
            shape = made
            if shape.shape[1] != FEATURES:
                break
        steps.append(tuple(chosen))

    def loss(params: Any, batch: Any) -> jax.Array:
        x = batch
        for weight, kinds in zip(params, steps, strict=True):
            x = jnp.tanh(x @ weight)
            for one in kinds:
                x = one(x)
        return jnp.mean(jnp.square(x)) + 0.1 * jnp.mean(x)

    return Program(tuple(names), loss, weights, rng.normal(size=(samples, FEATURES)))


def far(found: Any, plain: Any) -> float:
    """Return the largest difference of two trees, relative to the largest value of each leaf.

    Of a leaf that is far smaller than another, rounding is relative to that one.
    """
    pairs = [
        (np.asarray(a), np.asarray(b))
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True)
    ]
    floor = max(1e-12, ROUNDING / TOLERANCE * max(np.max(np.abs(b)) for _, b in pairs))
    return max(float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), floor)) for a, b in pairs)


def judged(seed: int, setting: Setting) -> tuple[str, Program]:
    """Return "equal", "refused: why" or "wrong: how far" of a pair, and its program."""
    program = draw(seed, setting.systems * setting.share)
    plain = jax.jit(jax.value_and_grad(program.loss))(program.params, program.batch)
    try:
        executor = wse.CS2(setting.systems, setting.mode).executor(
            program.loss, program.params, program.batch, keep_residuals=setting.keep_residuals
        )
        found = executor.value_and_grad(program.params, program.batch)
    except (ValueError, NotImplementedError) as error:
        return f"refused: {str(error).splitlines()[0][:150]}", program
    except Exception as error:  # a fault of ours, or of a library: to be mended or refused
        return f"failed: {type(error).__name__}: {str(error).splitlines()[0][:150]}", program
    distance = far(found, plain)
    if distance < TOLERANCE:
        return "equal", program
    # Where values all but cancel, plain JAX rounds as differently itself, compiled or not.
    with jax.disable_jit():
        own = far(jax.value_and_grad(program.loss)(program.params, program.batch), plain)
    return ("equal" if distance < SAME_ROUNDING * own else f"wrong: {distance:.2g}"), program


def pairs(count: int, seed: int) -> Iterator[tuple[int, Setting]]:
    """Yield seeds of programs with settings, every setting as often as any other."""
    rng = np.random.default_rng(seed)
    order: list[Setting] = []
    for number in range(count):
        if not order:
            order = [SETTINGS[i] for i in rng.permutation(len(SETTINGS))]
        yield seed * 1_000_000 + number, order.pop()


def run(count: int, seed: int, say: Callable[[str], Any]) -> Counter[str]:
    """Judge so many pairs, saying what is not equal; return the counts."""
    counts: Counter[str] = Counter()
    for number, setting in pairs(count, seed):
        verdict, program = judged(number, setting)
        counts[verdict.partition(":")[0]] += 1
        if verdict != "equal":
            say(f"{number} {setting} {', '.join(program.names)}: {verdict}")
        if sum(counts.values()) % 50 == 0:
            jax.clear_caches()
    return counts


def main() -> int:
    """Run from the command line; return 1 where a pair is wrong or failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    counts = run(given.pairs, given.seed, lambda line: sys.stdout.write(f"{line}\n"))
    sys.stdout.write(f"{dict(counts)}\n")
    return int(counts["wrong"] + counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
