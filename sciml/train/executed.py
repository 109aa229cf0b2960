"""The training loop on an executor: one step after the other, elsewhere than in one program."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from tqdm.auto import tqdm

from sciml.train.epoch import Params, batches, samples_in, taken
from sciml.train.loop import Trained, Validation, check_sizes
from sciml.train.optimizer import optimizer
from sciml.train.recipe import Recipe

Prepare = Callable[[Any, Any], Any]


@runtime_checkable
class Cluster(Protocol):
    """Something that executes training steps, as `wse.CS2(systems=4)` does."""

    def executor(self, loss: Any, params: Any, batch: Any, optimizer: Any = None) -> Any:
        """Return an object with `init(params) → state` and `train_step(state, batch)`.

        `loss(params, batch)` is a mean over the batch; a step returns the next state, whose
        `params` are the weights, and the loss.
        """
        ...


def train_on(
    cluster: Cluster,
    loss: Callable[[Params, Any], Array],
    params: Params,
    data: PyTree[Array],
    prepare: Prepare,
    *,
    recipe: Recipe,
    epochs: int,
    seed: int = 0,
    validate: Validation | None = None,
) -> Trained:
    """Minimise the mean of `loss` over `data`, step by step on a cluster.

    Shuffles and keys are those of `train`, so the weights are too, but for rounding.

    Args:
        cluster: what executes the steps.
        loss: `loss(params, batch)` of a prepared batch.
        params: a pytree of float32 arrays.
        data: a pytree of arrays with one leading `sample` axis.
        prepare: `prepare(rows of data, key)` → the batch that the loss takes.
        recipe: batch, step size, clipping.
        epochs: passes over the data.
        seed: of shuffles and keys.
        validate: a score to minimise, and how often.

    Raises:
        ValueError: no epochs, a batch larger than the data, or what the cluster refuses.
        FloatingPointError: the loss stopped being finite.
    """
    samples = samples_in(data)
    check_sizes(epochs, recipe.batch, samples)
    prepared = jax.jit(lambda data, rows, key: prepare(taken(data, rows), key))
    began, key = time.perf_counter(), jax.random.key(seed)
    example = prepared(data, *next(order(key, 0, samples, recipe.batch)))
    updates = epochs * (samples // recipe.batch)
    executor = cluster.executor(loss, params, example, optimizer(recipe, updates))
    state, losses, scores, best = executor.init(params), [], {}, (np.inf, params)
    compile_s, overhead_s = time.perf_counter() - began, 0.0
    began = time.perf_counter()
    for epoch in tqdm(range(epochs), unit="epoch", leave=False):
        values = []
        for rows, own in order(key, epoch, samples, recipe.batch):
            state, value = executor.train_step(state, prepared(data, rows, own))
            values.append(np.float32(value))
        losses.append(np.mean(values))
        check_finite(losses)
        if validate and ((epoch + 1) % validate.every == 0 or epoch + 1 == epochs):
            paused = time.perf_counter()
            scores[epoch + 1] = np.float32(validate.score(state.params))
            if scores[epoch + 1] < best[0]:
                best = scores[epoch + 1], jax.tree.map(np.copy, state.params)
            overhead_s += time.perf_counter() - paused
    return Trained(
        params=jax.tree.map(jnp.asarray, best[1] if validate else state.params),
        loss=np.array(losses, np.float32),
        validated=np.array(list(scores), np.int64),
        validation=np.array(list(scores.values()), np.float32),
        compile_s=compile_s,
        train_s=time.perf_counter() - began - overhead_s,
        overhead_s=overhead_s,
    )


def order(key, epoch: int, samples: int, batch: int) -> Iterator[tuple[Array, Array]]:
    """Yield (rows, key) of each update of an epoch, as `epochs_program` draws them."""
    shuffle, noise = jax.random.split(jax.random.fold_in(key, epoch))
    keys = jax.random.split(noise, samples // batch)
    if batch == samples:
        yield jnp.arange(samples), keys[0]
    else:
        yield from zip(batches(shuffle, samples, batch), keys, strict=True)


def check_finite(losses: list[np.float32]) -> None:
    """Stop where the last loss is not finite."""
    if not np.isfinite(losses[-1]):
        raise FloatingPointError(
            f"the loss is {losses[-1]} in epoch {len(losses) - 1}; it must stay finite: "
            "lower Recipe.learning_rate, set Recipe.clip, or look for NaN in the data"
        )
