"""Models on several systems beside plain JAX, one line of JSON each; `test_systems.py` runs it.

Arguments: {model: [systems, ...]} as JSON, training steps, and the models to run in float32 too.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import jax
import numpy as np
import optax

import wse
from tests.wse.promises import moved

RATE = 0.01


def size(tree: Any) -> float:
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(x))) for x in jax.tree.leaves(tree))))


def apart(a: Any, b: Any) -> float:
    return size(jax.tree.map(lambda x, y: np.asarray(x, np.float64) - np.asarray(y), a, b))


def executor_of(case: Any, params: Any, systems: int) -> Any:
    options = {"optimizer": optax.sgd(RATE), "has_aux": case.has_aux}
    return wse.CS2(systems).executor(case.loss, params, case.batch, **options)


def rounding(case: Any, plain: Any, exact: Any, systems: int) -> float:
    """The error of float32 gradients beside that of plain JAX's."""
    with jax.enable_x64(False):
        params = jax.tree.map(lambda x: np.asarray(x, np.float32), case.params)
        expected = plain(params, case.batch)[1]
        found = executor_of(case, params, systems).value_and_grad(params, case.batch)[1]
    return apart(found, exact) / apart(expected, exact)


def rows(name: str, counts: list[int], steps: int, rounds: bool) -> Iterator[dict[str, Any]]:
    case = {**TABLE["MODELS"], **TABLE["LARGE"]}[name]()
    plain = jax.jit(jax.value_and_grad(case.loss, has_aux=case.has_aux))
    value, gradients = plain(case.params, case.batch)
    for systems in counts:
        executor = executor_of(case, case.params, systems)
        streamed, found = executor.value_and_grad(case.params, case.batch)
        held, kept = moved(executor, case.params), executor.run.systems
        state, stepped = executor.init(case.params), case.params
        for _ in range(steps):
            state, _ = executor.train_step(state, case.batch)
            change = plain(stepped, case.batch)[1]
            stepped = jax.tree.map(lambda p, g: p - RATE * g, stepped, change)
        yield {
            "case": [name, systems],
            "systems": kept,
            "loss": apart(streamed, value) / (1 + size(value)),
            "gradients": apart(found, gradients) / size(gradients),
            "weights": apart(state.params, stepped) / size(stepped),
            "rounding": rounding(case, plain, gradients, systems) if rounds else 0.0,
            **held,
        }


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    TABLE = run_path(str(Path(__file__).with_name("models.py")))
    cases, steps, rounded = (json.loads(argument) for argument in sys.argv[1:])
    for name, counts in cases.items():
        for row in rows(name, counts, steps, name in rounded):
            sys.stdout.write(json.dumps(row) + "\n")
