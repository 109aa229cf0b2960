"""The training loop on data that are read meanwhile: compiled steps, a window at a time."""

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm.auto import tqdm

from sciml.train.checkpoint import Checkpoint
from sciml.train.devices import Devices, Shared, shared
from sciml.train.epoch import Carry, Loss, Params
from sciml.train.loop import (
    CALL_S,
    Progress,
    Trained,
    Validation,
    came,
    check_given,
    check_sizes,
    epoch_ended,
    first_progress,
    over,
    saved,
    stopped_elsewhere,
    store_of,
    validated,
)
from sciml.train.optimizer import optimizer
from sciml.train.pieces import Stream, ahead, taken
from sciml.train.recipe import Recipe
from wse._agreement import said_by_first
from wse._compilation import enable_cache
from wse._stop import stopping

FIRST_STEPS = 16  # of a run, by which the next calls are measured


def train_piecewise(
    loss: Loss,
    params: Params,
    stream: Stream,
    devices: Devices = None,
    *,
    recipe: Recipe,
    epochs: int,
    seed: int = 0,
    validate: Validation | None = None,
    checkpoint: Checkpoint | Path | str | None = None,
) -> Trained:
    """Minimise the mean of `loss` as `train` does, over data of which two windows are in memory.

    A checkpoint may lie within an epoch, and within a window. Each device is sent its share of
    every batch; of several processes each reads some pieces of a window, and sends the others what
    they need of it. `Trained.overhead_s` has what the training waited for the disk.
    """
    batch = recipe.batch
    check_sizes(epochs, batch, stream.samples)
    on = shared(devices, batch)
    enable_cache()
    whole = stream.samples // batch
    transform = optimizer(recipe, epochs * whole)
    params = jax.tree.map(jnp.array, params)
    run_of = {"recipe": recipe, "epochs": epochs, "seed": seed, "window": stream.window}
    check_given(on, (params, (stream.sizes, stream.held), validate and validate.held), run_of)
    store = store_of(checkpoint, params, stream.held, validate, run_of)
    found = progress = first_progress(store, params, transform, validate, on)
    done = len(progress.loss) * whole + len(progress.values)
    run, key, halted = Steps(loss, transform, on), jax.random.key(seed), False
    read = partial(stream.filled, seed, batch, share=on.share_read)
    windows = ahead(read, stream.places(batch, epochs, done))
    bar = tqdm(total=epochs * whole, initial=done, unit="step", leave=False)
    with bar, stopping() as stopped, closing(windows):
        while not (halted or over(progress, validate)):
            began = time.perf_counter()
            epoch, window = taken(windows, on.spans)
            if epoch is None or window is None:
                break
            arrays = on.batches(window.arrays)
            chance = on.on_all(jax.random.fold_in(key, epoch))
            progress = progress.since(began)
            while (here := len(progress.values) - window.first) < window.count:
                if halted := came(on, stopped()):
                    break
                count = min(run.count(progress, whole), window.count - here)
                progress = run.advance(progress, arrays, chance, here, count)
                progress = saved(progress, store)
                bar.update(count)
            if len(progress.values) == whole:
                progress = validated(epoch_ended(progress), validate, epochs, on)
                progress = saved(progress, store)
                bar.set_postfix(loss=f"{progress.loss[-1]:.2e}")
            del window, arrays
        if progress is not found:  # else the file holds all of it
            store.write(progress)
    if halted:  # this process would have raised what came, on leaving the block
        raise KeyboardInterrupt(stopped_elsewhere(len(progress.loss), epochs))
    best = progress.best if validate else progress.carry.params
    return progress.ended(on.at_home(best), run.compile_s, store)


class Steps:
    """The compiled program of some steps of a window, made when it is first called."""

    def __init__(self, loss: Loss, transform: optax.GradientTransformation, on: Shared):
        self.compile_s, self.program, self.on = 0.0, None, on
        self.jitted: Any = steps_program(loss, transform, on)

    def count(self, progress: Progress, whole: int) -> int:
        """Return how many steps last about as long as a call shall."""
        done = len(progress.loss) * whole + len(progress.values)
        if not done:
            return FIRST_STEPS
        count = max(1, round(CALL_S * done / max(progress.train_s, 1e-9)))
        return int(said_by_first(count)) if self.on.spans else count

    def advance(
        self, progress: Progress, arrays: Any, key: Any, first: int, count: int
    ) -> Progress:
        """Train some steps of a window."""
        step = jnp.int32(len(progress.values))
        given = (progress.carry, arrays, key, step, jnp.int32(first), jnp.int32(count))
        if self.program is None:
            began = time.perf_counter()
            self.program = self.jitted.lower(*given).compile()
            self.compile_s = time.perf_counter() - began
        began = time.perf_counter()
        carry, losses = self.program(*given)
        values = np.append(progress.values, np.asarray(losses)[:count])
        return progress.since(began, training=True, carry=carry, values=values)


def steps_program(
    loss: Loss, transform: optax.GradientTransformation, on: Shared
) -> Callable[..., Any]:
    """Return `run(carry, window, key, step, first, count) -> (carry, losses)`.

    It trains `count` batches of a window from its `first`; step i of the epoch that `key` belongs
    to has the key `fold_in(key, i)`, and `losses[:count]` are those of the steps.
    """

    def run(carry: Carry, window: Any, key: Any, step: Any, first: Any, count: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            carry, losses = state
            batch = on.dealt(jax.tree.map(lambda leaf: leaf[first + i], window))
            chance = jax.random.fold_in(key, step + i)
            value, gradient = jax.value_and_grad(loss)(carry.params, batch, chance)
            change, state = transform.update(gradient, carry.optimizer, carry.params)
            return Carry(optax.apply_updates(carry.params, change), state), losses.at[i].set(value)

        steps = jax.tree.leaves(window)[0].shape[0]
        return jax.lax.fori_loop(0, count, body, (carry, jnp.zeros(steps)))

    where = {"out_shardings": on.everywhere} if on.several else {}
    return jax.jit(run, donate_argnums=0, **where)
