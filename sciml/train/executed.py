"""The training loop on an executor: one step after the other, elsewhere than in one program."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from tqdm.auto import tqdm

from sciml.train.checkpoint import Checkpoint, Store
from sciml.train.compilation import enable_cache
from sciml.train.epoch import Carry, Online, Params, drawn, order, samples_in, taken
from sciml.train.loop import (
    Progress,
    Trained,
    Validation,
    check_sizes,
    epoch_ended,
    over,
    saved,
    store_of,
    validated,
)
from sciml.train.optimizer import optimizer
from sciml.train.recipe import Recipe
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
    prepared = jax.jit(lambda data, rows, key: prepare(taken(data, rows), key))
    began, key = time.perf_counter(), jax.random.key(seed)
    data_of = by_epoch(data, key)
    example = prepared(data_of(0), *next(chances(key, 0, samples, recipe.batch)))
    updates = epochs * (samples // recipe.batch)
    executor = cluster.executor(loss, params, example, optimizer(recipe, updates))
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
        while (epoch := len(progress.loss)) < epochs and not (
            stopped() or over(progress, validate)
        ):
            left = islice(chances(key, epoch, samples, recipe.batch), len(progress.values), None)
            data_now = data_of(epoch)
            for rows, now in left:
                batch = prepared(data_now, rows, now)
                state, progress = step(executor, state, progress, batch)
                progress = saved(progress, store)
                if stopped():
                    break
            else:
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


def by_epoch(data: PyTree[Array] | Online, key) -> Callable[[int], PyTree[Array]]:
    """Return the data of each epoch: always the same, or drawn as `epochs_program` draws."""
    if not isinstance(data, Online):
        return lambda _: data
    draw = jax.jit(partial(drawn, data))
    return lambda epoch: draw(jax.random.fold_in(key, epoch), data.source)


def step(executor: Any, state: Any, progress: Progress, batch: Any) -> tuple[Any, Progress]:
    """Train on one batch; return state and progress after it."""
    began = time.perf_counter()
    state, value = executor.train_step(state, batch)
    carry = Carry(state.params, state.optimizer_state)
    values = np.append(progress.values, np.float32(value))
    return state, progress.since(began, training=True, carry=carry, values=values)


def chances(key, epoch: int, samples: int, batch: int) -> Iterator[tuple[Array, Array]]:
    """Yield (rows, key) of each update of an epoch, as `epochs_program` draws them."""
    rows, keys = order(jax.random.fold_in(key, epoch), samples, batch)
    return zip(jnp.arange(samples)[None] if rows is None else rows, keys, strict=True)
