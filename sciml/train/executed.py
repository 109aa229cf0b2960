"""The training loop on an executor: one step after the other, elsewhere than in one program."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree
from tqdm.auto import tqdm

from sciml.train.checkpoint import Checkpoint, Store
from sciml.train.epoch import Carry, Online, Params, drawn, order, samples_in, taken
from sciml.train.loop import (
    Progress,
    Trained,
    Validation,
    check_sizes,
    due,
    epoch_ended,
    over,
    saved,
    store_of,
    validated,
)
from sciml.train.optimizer import optimizer
from sciml.train.recipe import Recipe
from wse._compilation import enable_cache
from wse._stop import stopping

Prepare = Callable[[Any, Any], Any]
ARITHMETIC = ("precision", "sparsity")  # of a cluster: what changes more than rounding


@runtime_checkable
class Cluster(Protocol):
    """Something that executes training steps, as `wse.CS2(systems=4)` does."""

    def executor(self, loss: Any, params: Any, batch: Any, optimizer: Any = None) -> Any:
        """Return an object with `init(params, optimizer_state) → state` and `train_step`.

        `loss(params, batch)` is a mean over the batch; `train_step(state, batch)` returns the next
        state, which has `params` and `optimizer_state`, and the loss. Where it has a `run`, that
        is the record of its last step.
        """
        ...


def train_on(
    cluster: Cluster,
    loss: Callable[[Params, Any], Array],
    params: Params,
    data: PyTree[Array] | Online,
    prepare: Prepare,
    *,
    recipe: Recipe,
    epochs: int,
    seed: int = 0,
    validate: Validation | None = None,
    checkpoint: Checkpoint | Path | str | None = None,
) -> Trained:
    """Minimise the mean of `loss` over `data` as `train` does, step by step on a cluster.

    Shuffles and keys are those of `train`, so the weights are too, but for rounding. Here
    `prepare(rows of data, key)` makes the batch that `loss(params, batch)` takes.
    """
    samples = data.samples if isinstance(data, Online) else samples_in(data)
    check_sizes(epochs, recipe.batch, samples)
    enable_cache()
    began, key, steps = time.perf_counter(), jax.random.key(seed), samples // recipe.batch
    batches = batches_of(data, prepare, samples, recipe.batch, key)
    example = next(batches(0, 0))
    executor = cluster.executor(loss, params, example, optimizer(recipe, epochs * steps))
    run = {"recipe": recipe, "epochs": epochs, "seed": seed, "loop": "executor"}
    run |= {name: repr(getattr(cluster, name, None)) for name in ARITHMETIC}
    store = store_of(checkpoint, params, data, validate, run)
    state, found = begin(executor, params, store, validate)
    progress = found
    executor.train_step(state, example)  # compiles; the state is as it was
    compile_s = time.perf_counter() - began
    done = len(progress.loss)
    bar = tqdm(desc="training", total=epochs, initial=done, unit="epoch", leave=False)
    with bar, stopping() as stopped:

        def pauses() -> bool:
            return stopped() or due(store)

        while (epoch := len(progress.loss)) < epochs and not (
            stopped() or over(progress, validate)
        ):
            left = batches(epoch, len(progress.values))
            while len(progress.values) < steps and not stopped():
                state, progress = advance(executor, state, progress, left, pauses)
                progress = saved(progress, store)
            if len(progress.values) == steps:
                progress = validated(epoch_ended(progress), validate, epochs)
                progress = saved(progress, store)
                bar.update()
        if progress is not found:  # else the file holds all of it
            store.write(progress)
    best = jax.tree.map(jnp.asarray, progress.best if validate else state.params)
    return progress.ended(best, compile_s, store, getattr(executor, "run", None))


def begin(
    executor: Any, params: Params, store: Store, validate: Validation | None
) -> tuple[Any, Progress]:
    """Return the first state, or that of the checkpoint, and the progress made."""
    state = executor.init(params)
    start = Progress(Carry(state.params, state.optimizer_state), params if validate else ())
    found = store.read(start)
    if found is start:
        return state, start
    return executor.init(found.carry.params, found.carry.optimizer), found


def batches_of(
    data: PyTree[Array] | Online, prepare: Prepare, samples: int, batch: int, key: Key[Array, ""]
) -> Callable[[int, int], Iterator[Any]]:
    """Return `batches(epoch, done)`: those of an epoch, in its order, from where `done` are done.

    Rows and keys are those that `epochs_program` draws. A batch costs the start of one program.
    """
    draws = isinstance(data, Online)
    # On a device of our own choice: an executor's systems need not be asked where they want it.
    source = jax.device_put(data.source if draws else data, jax.local_devices()[0])
    draw = jax.jit(partial(drawn, data)) if draws else None
    ordered = jax.jit(partial(order, samples=samples, batch=batch))

    @jax.jit
    def prepared(data: Any, rows: Any, keys: Any, i: Any) -> Any:
        return prepare(taken(data, rows[i]), keys[i])

    def batches(epoch: int, done: int) -> Iterator[Any]:
        now = jax.random.fold_in(key, epoch)
        rows, keys = ordered(now)
        rows = jnp.arange(samples)[None] if rows is None else rows
        here = draw(now, source) if draw else source
        return (prepared(here, rows, keys, np.int32(i)) for i in range(done, samples // batch))

    return batches


def advance(
    executor: Any,
    state: Any,
    progress: Progress,
    batches: Iterator[Any],
    pauses: Callable[[], bool],
) -> tuple[Any, Progress]:
    """Train on batches until there are none, or it is time to pause; return what is there then.

    What a checkpoint holds is gathered once, at the end: doing so takes as long as a small step.
    """
    began, values = time.perf_counter(), list[Any]()
    for batch in batches:
        state, value = executor.train_step(state, batch)
        values.append(value)
        if pauses():
            break
    carry = Carry(state.params, state.optimizer_state)
    values = np.append(progress.values, np.array([*map(np.asarray, values)], np.float32))
    return state, progress.since(began, training=True, carry=carry, values=values)
