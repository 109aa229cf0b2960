"""The training loop: compiled epochs, progress, validation, best weights, checkpoints."""

import dataclasses
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from tqdm.auto import tqdm

from sciml._arguments import check_whole
from sciml.train.checkpoint import Checkpoint, Store, digest
from sciml.train.devices import Devices, Shared, shared
from sciml.train.epoch import BUFFER, Carry, Loss, Online, Params, epochs_program, samples_in
from sciml.train.optimizer import optimizer
from sciml.train.parts import InParts, compile_parts
from sciml.train.recipe import Recipe
from wse._agreement import any_says, check_alike, said_by_first
from wse._compilation import enable_cache
from wse._stop import stopping

log = logging.getLogger(__name__)

# A compiled call lasts about so long: shorter ones pay for fresh memory each time, longer ones keep
# Ctrl-C and the progress bar waiting.
CALL_S = 2.0
MOST = 8  # assumed: programs that are kept for trainings of equal shapes
SHARED: dict[Any, Callable[..., Any]] = {}  # the last of them
CHECKPOINT_S = 20.0  # time between checkpoints: a kill loses at most half a minute


@dataclass(frozen=True)
class Validation:
    """Score the weights every so many epochs and keep those that score lowest.

    With `patience`, training ends after so many scores in a row that were no new lowest. `held` are
    the arrays that the score depends on, by which a checkpoint tells one run from another.
    """

    score: Callable[[Params], Array]
    every: int = 10
    patience: int | None = None
    held: Any = ()

    def __post_init__(self):
        """Check the period and the patience."""
        if self.every < 1:
            raise ValueError(f"Validation.every is {self.every}; it must be at least 1 epoch")
        if self.patience is not None and self.patience < 1:
            raise ValueError(
                f"Validation.patience is {self.patience}; it must be at least 1 score, or None"
            )

    def exhausted(self, scores: np.ndarray) -> bool:
        """Tell whether the lowest score is longer ago than patience lasts."""
        if self.patience is None or not len(scores):
            return False
        return len(scores) - 1 - int(scores.argmin()) >= self.patience


@dataclass(frozen=True)
class Trained:
    """Weights and how they came about.

    `loss` is the mean training loss of each epoch; `validation` the score at the epochs
    `validated`. `params` are the best weights by validation, else the last ones. Times are
    wall-clock seconds: `compile_s` before the first update, `train_s` in updates alone,
    `overhead_s` in validation and checkpoints. `run` is an executor's record of its last step,
    `wse.execute.timeline.Run` of an emulated machine: what moved and ran when; None of plain JAX.
    `checkpoint` keeps all this on disk until its `remove` is called.
    """

    params: Params
    loss: np.ndarray
    validated: np.ndarray
    validation: np.ndarray
    compile_s: float
    train_s: float
    overhead_s: float
    run: Any = None
    checkpoint: Store = field(default_factory=Store, repr=False, compare=False)

    @property
    def seconds(self) -> dict[str, float]:
        """The times, by name."""
        return {name: getattr(self, name) for name in ("compile_s", "train_s", "overhead_s")}


@dataclass(frozen=True)
class Progress:
    """Everything that a checkpoint must hold to go on; `best` is empty without validation.

    `values` are the losses so far of the steps of an epoch that is not finished, where a checkpoint
    may lie within one.
    """

    carry: Carry
    best: Params = ()
    loss: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    validated: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    validation: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    values: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    train_s: float = 0.0
    overhead_s: float = 0.0

    def ended(self, params: Params, compile_s: float, store: Store, run: Any = None) -> Trained:
        """Return what came out of a training that ends here."""
        names = ("loss", "validated", "validation", "train_s", "overhead_s")
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Trained(params, compile_s=compile_s, run=run, checkpoint=store, **own)

    def since(self, began: float, *, training: bool = False, **changes: Any) -> "Progress":
        """Return what changed, with the seconds since `began` spent in training or beside it."""
        spent_s = time.perf_counter() - began
        if training:
            return dataclasses.replace(self, train_s=self.train_s + spent_s, **changes)
        return dataclasses.replace(self, overhead_s=self.overhead_s + spent_s, **changes)


def first_progress(
    store: Store, params: Params, transform: Any, validate: Validation | None, on: Shared
) -> Progress:
    """Return the progress that a checkpoint holds, or none yet, on the devices of a training."""
    best = jax.tree.map(jnp.copy, params) if validate else ()
    read = store.read(Progress(Carry(params, transform.init(params)), best))
    if on.spans:
        check_alike("the checkpoints, which must lie where all see them,", [read.loss])
        store.path = None if jax.process_index() else store.path  # the first one writes for all
    return dataclasses.replace(read, carry=on.on_all(read.carry))


def train(
    loss: Loss | InParts,
    params: Params,
    data: PyTree[Array] | Online,
    devices: Devices = None,
    *,
    recipe: Recipe,
    epochs: int,
    seed: int = 0,
    validate: Validation | None = None,
    checkpoint: Checkpoint | Path | str | None = None,
) -> Trained:
    """Minimise the mean of `loss` over `data` by the recipe's optimizer.

    Args:
        loss: `loss(params, batch, key)`, a mean over the batch; `key` is fresh at every update. An
            `InParts` is called sample by sample.
        params: a pytree of float32 arrays; it is copied, never changed.
        data: a pytree of arrays with one leading `sample` axis, as `batch` is of `batch` rows; or
            `Online`, which draws such a pytree anew for every epoch.
        devices: what shares each batch: a number, or JAX's own; default all local ones, or the most
            of them that divide the batch. Each holds the data and the weights. A checkpoint does
            not know how many there were.
        recipe: batch, step size, clipping.
        epochs: passes over the data, fewer where validation runs out of patience.
        seed: of shuffles and keys; the same seed gives the same numbers.
        validate: a score to minimise, and how often.
        checkpoint: a file from which an interrupted run goes on. It keeps the whole training until
            `Trained.checkpoint.remove()` is called, when the result is on disk.

    Raises:
        ValueError: no epochs, a batch larger than the data, one that cannot be cut so, or devices
            that are not there.
        FloatingPointError: the loss stopped being finite.

    >>> import jax.numpy as jnp
    >>> from sciml.train import Recipe, train
    >>> def loss(level, batch, key):
    ...     return jnp.mean((batch - level) ** 2)
    >>> recipe = Recipe(batch=2, learning_rate=0.1)
    >>> found = train(loss, jnp.zeros(1), jnp.array([[1.0], [3.0]]), recipe=recipe, epochs=200)
    >>> round(float(found.params[0]), 1)
    2.0
    """
    samples = data.samples if isinstance(data, Online) else samples_in(data)
    parts = loss.parts if isinstance(loss, InParts) else 1
    check_sizes(epochs, recipe.batch, samples, parts)
    on = shared(devices, recipe.batch)
    enable_cache()
    transform = optimizer(recipe, epochs * (samples // recipe.batch))
    params = jax.tree.map(jnp.array, params)
    run_of = {"recipe": recipe, "epochs": epochs, "seed": seed, "parts": parts}
    store = store_of(checkpoint, params, data, validate, run_of)
    check_given(on, (params, data, validate and validate.held), run_of)
    fresh = data if isinstance(data, Online) else None
    data, key = on.on_all((fresh.source if fresh else data, jax.random.key(seed)))
    found = progress = first_progress(store, params, transform, validate, on)
    arguments = (progress.carry, data, key)
    done, plan = len(progress.loss), (recipe, epochs * (samples // recipe.batch))
    halted = False
    bar = tqdm(desc="compiling", total=epochs, initial=done, unit="epoch", leave=False)
    with bar, stopping() as stopped:  # from here on: with `jax.distributed` nobody else would
        run, compile_s = compiled(loss, transform, recipe.batch, fresh, arguments, plan, on)
        bar.set_description("training")
        bar.unpause()  # its pace is that of the epochs
        while len(progress.loss) < epochs and not over(progress, validate):
            if halted := came(on, stopped()):
                break
            count = call_epochs(progress, epochs, validate, on)
            progress = advance(run, progress, data, key, count)
            progress = validated(progress, validate, epochs, on)
            progress = saved(progress, store)
            bar.update(count)
            bar.set_postfix(loss=f"{progress.loss[-1]:.2e}")
        if progress is not found:  # else the file holds all of it
            store.write(progress)
    if halted:  # this process would have raised what came, on leaving the block
        raise KeyboardInterrupt(stopped_elsewhere(len(progress.loss), epochs))
    best = progress.best if validate else progress.carry.params
    return progress.ended(on.at_home(best), compile_s, store)


def stopped_elsewhere(done: int, epochs: int) -> str:
    """Return what is said where another process was stopped."""
    return (
        f"another process was stopped after {done} of {epochs} epochs; what is done is saved where "
        "there is a checkpoint: start all of them again"
    )


def over(progress: Progress, validate: Validation | None) -> bool:
    """Tell whether validation has run out of patience."""
    return validate is not None and validate.exhausted(progress.validation)


def check_sizes(epochs: int, batch: int, samples: int, parts: int = 1) -> None:
    """Refuse a run without updates, and parts of several sizes."""
    check_whole(1, epochs=epochs)
    if batch > samples:
        raise ValueError(
            f"batch is {batch} but there are {samples} samples; "
            f"a batch must fit: pass Recipe(batch={samples}) or less"
        )
    if batch % parts:
        raise ValueError(
            f"InParts.parts is {parts}; it must divide the batch of {batch}: pass another number, "
            f"or Recipe(batch={batch - batch % parts or parts})"
        )


def store_of(
    checkpoint: Checkpoint | Path | str | None,
    params: Params,
    data: Any,
    validate: Validation | None,
    run: dict[str, Any],
) -> Store:
    """Return the store of a run, which knows the run by all that decides its numbers.

    A `Checkpoint` says itself what the start weights are: as drawn, they differ between processors
    by rounding, and a run may go on elsewhere.
    """
    if checkpoint is None:
        return Store()
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint, {"start": digest(params)})
    held = validate and [validate.every, validate.patience, digest(validate.held)]
    identity = {
        **run,
        "recipe": dataclasses.asdict(run["recipe"]),
        "data": digest(data.source if isinstance(data, Online) else data),
        "samples": data.samples if isinstance(data, Online) else None,
        "validation": held,
        "of": checkpoint.of,
    }
    return Store(checkpoint.path, identity)


def compiled(
    loss: Loss | InParts,
    transform: Any,
    batch: int,
    online: Online | None,
    arguments: Any,
    plan: Any = None,
    on: Shared = Shared(),  # noqa: B008
) -> tuple[Callable[..., Any], float]:
    """Return the compiled epochs and the seconds that compiling took.

    `arguments` are those of a call: (carry, data or source, key). Trainings with equal losses, of
    which their classes say that they are `shared`, with equal plans and shapes use one program.
    """
    began, key = time.perf_counter(), None
    if plan is not None and getattr(loss, "shared", False):
        leaves, tree = jax.tree.flatten(arguments)
        config: Any = jax.config
        wide = config.jax_enable_x64, config.jax_default_matmul_precision
        key = (loss, plan, on, online and online.draw, *wide, tree, *map(jax.typeof, leaves))
    if key in SHARED:
        return SHARED[key], time.perf_counter() - began
    if isinstance(loss, InParts) and not on.several:
        run = compile_parts(loss, transform, batch, online, arguments)
    else:
        whole = loss.together if isinstance(loss, InParts) else loss
        program: Any = epochs_program(whole, transform, batch, online, on)
        run = program.lower(*arguments, jnp.int32(1), jnp.int32(1)).compile()
    if key is not None:
        while len(SHARED) >= MOST:
            del SHARED[next(iter(SHARED))]
        SHARED[key] = run
    return run, time.perf_counter() - began


def check_given(on: Shared, given: Any, run: Any) -> None:
    """Refuse to train one net on several processes that were given different things."""
    if on.spans:
        params, data, held = given
        source = data.source if isinstance(data, Online) else data
        arrays = jax.tree.leaves((params, source, held))
        check_alike("weights, data, recipe, epochs or seed", [*arrays, np.array(repr(run))])


def came(on: Shared, stopped: bool) -> bool:
    """Tell whether to stop, as one does of several processes that train one net."""
    return any_says(stopped) if on.spans else stopped


def call_epochs(
    progress: Progress,
    epochs: int,
    validate: Validation | None,
    on: Shared = Shared(),  # noqa: B008
) -> int:
    """Return how many epochs to run in one call: about CALL_S, up to the next validation."""
    done = len(progress.loss)
    per_epoch_s = progress.train_s / done if done else CALL_S
    count = min(max(1, round(CALL_S / max(per_epoch_s, 1e-9))), BUFFER, epochs - done)
    count = int(said_by_first(count)) if on.spans else count
    return min(count, validate.every - done % validate.every) if validate else count


def advance(run, progress: Progress, data, key, count: int) -> Progress:
    """Train `count` epochs."""
    done = len(progress.loss)
    began = time.perf_counter()
    carry, losses = run(progress.carry, data, key, jnp.int32(done), jnp.int32(count))
    losses = np.asarray(losses)[:count]
    loss = finite(np.append(progress.loss, losses))
    return progress.since(began, training=True, carry=carry, loss=loss)


def epoch_ended(progress: Progress) -> Progress:
    """Return the progress with the mean loss of the epoch that has ended, which must be finite."""
    loss = finite(np.append(progress.loss, np.mean(progress.values)))
    return dataclasses.replace(progress, loss=loss, values=progress.values[:0])


def finite(losses: np.ndarray) -> np.ndarray:
    """Return the losses of all epochs, or refuse the first that is not finite."""
    if not np.isfinite(losses).all():
        epoch = int(np.argmin(np.isfinite(losses)))
        raise FloatingPointError(
            f"the loss is {losses[epoch]} in epoch {epoch}; it must stay finite: "
            "lower Recipe.learning_rate, set Recipe.clip, or look for NaN in the data"
        )
    return losses


def validated(
    progress: Progress,
    validate: Validation | None,
    epochs: int,
    on: Shared = Shared(),  # noqa: B008
) -> Progress:
    """Score the weights if it is time, and keep them if they are the best so far."""
    done = len(progress.loss)
    if validate is None or (done % validate.every and done < epochs):
        return progress
    began = time.perf_counter()
    params = on.at_home(progress.carry.params)
    score = np.float32(validate.score(params))
    score = np.float32(said_by_first(float(score))) if on.spans else score
    better = not len(progress.validation) or score < progress.validation.min()
    return progress.since(
        began,
        best=jax.tree.map(jnp.copy, params) if better else progress.best,
        validated=np.append(progress.validated, done),
        validation=np.append(progress.validation, score),
    )


def saved(progress: Progress, store: Store) -> Progress:
    """Write a checkpoint if the last one is old enough."""
    if not due(store):
        return progress
    began = time.perf_counter()
    store.write(progress)
    return progress.since(began)


def due(store: Store) -> bool:
    """Tell whether the last checkpoint is old enough."""
    return store.due(CHECKPOINT_S)
