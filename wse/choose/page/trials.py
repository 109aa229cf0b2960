"""What half precision and zeros do to this model's loss: measured by emulation, never quoted.

Every variant trains the same model from the same weights on the same batches, in several orders of
the samples, and is judged in single precision on samples that no training saw.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from statistics import mean, stdev
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm.auto import tqdm

from wse._numbers import is_whole
from wse.models.zoo import Traceable
from wse.precision import as_precision, mixed, scaled
from wse.sparsity import Rule, Static, masked, sparsified

FORMATS = ("cbfloat16", "float16", "bfloat16")
ZEROS = (0.5, 0.75, 0.9)
HELD_OUT = 0.1  # of the samples, at least one batch


@dataclass(frozen=True)
class Data:
    """A user's samples, and how the model is trained on them.

    Attributes:
        arrays: a tree as the batch, with more samples along the leading axes.
        optimizer: of optax; None: Adam with a rate of 0.001.
        steps: of each training.
        orders: of the samples, in which each variant is trained; their spread is what chance does.

    Raises:
        ValueError: no steps, or fewer than two orders.
    """

    arrays: Any
    optimizer: Any = None
    steps: int = 300
    orders: int = 2

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("orders", 2)):
            value: Any = getattr(self, name)
            if not is_whole(value, least):
                raise ValueError(f"{name} is {value!r}; pass {name}={least} or more")


@dataclass(frozen=True)
class Trial:
    """One variant of the training.

    Attributes:
        what: "single precision", a format, or a share of zeros.
        losses: on samples held out, one of each order.
    """

    what: str
    losses: tuple[int | float, ...]

    @property
    def loss(self) -> int | float:
        """Their mean."""
        return mean(self.losses)

    @property
    def spread(self) -> int | float:
        """Their standard deviation: what the order of the samples does."""
        finite = all(isfinite(x) for x in self.losses)
        return stdev(self.losses) if finite else float("nan")


@dataclass(frozen=True)
class Trials:
    """All variants, the plain one first.

    Attributes:
        trials: one of each variant.
        first: the loss before training.
        steps: of each training.
        batch: samples of a step.
        samples: trained on.
        held_out: judged on.
    """

    trials: tuple[Trial, ...]
    first: int | float
    steps: int
    batch: int
    samples: int
    held_out: int

    @property
    def diverged(self) -> bool:
        """Whether the plain training itself ended in no number: nothing can be told from it."""
        return not isfinite(self.trials[0].loss)

    def change(self, trial: Trial) -> int | float:
        """Its loss over that of the plain training."""
        return trial.loss / self.trials[0].loss if self.trials[0].loss else float("nan")

    def told_apart(self, trial: Trial) -> bool:
        """Whether it differs from the plain training by more than twice what chance does."""
        plain = self.trials[0]
        chance = 2 * max(plain.spread, trial.spread if isfinite(trial.loss) else 0.0)
        return not abs(trial.loss - plain.loss) <= chance  # also where it is not finite


def tried(made: Traceable, data: Data, size: int) -> Trials:
    """Train a model in single and in half precision, and with zeros among its weights.

    Args:
        made: its loss with weights and a batch.
        data: samples.
        size: samples of a batch.

    Raises:
        ValueError: weights that are shapes alone, samples that are no such batch, or too few.
    """
    shapes = [x for x in jax.tree.leaves(made.params) if isinstance(x, jax.ShapeDtypeStruct)]
    if shapes:
        raise ValueError(
            f"params has shapes alone, as {shapes[0].shape}; trainings start from weights: pass "
            "arrays, or leave data out"
        )
    count = check(made, data.arrays, size)
    held = max(1, int(HELD_OUT * count) // size) * size
    # Whole numbers in a tree of weights would be no weights; all else is as it was given.
    params = jax.tree.map(jnp.asarray, made.params)
    judged = [_rows(made, data.arrays, np.arange(i, i + size), size) for i in range(0, held, size)]
    score = jax.jit(lambda p, b: _value(made.loss(p, b)))

    def scored(params: Any) -> int | float:
        return mean(float(score(params, batch)) for batch in judged)

    variants = [*_variants(made, data.optimizer or optax.adam(1e-3))]
    trials: list[Trial] = []
    rounds = len(variants) * data.orders
    with tqdm(total=rounds, desc="trainings of the model", leave=False, unit="run") as bar:
        for what, optimizer, start, loss in variants:
            step = _step(loss, optimizer)
            losses: list[float] = []
            for order in range(data.orders):
                rows = _order(order, held, count, size, data.steps)
                batches = (_rows(made, data.arrays, one, size) for one in rows)
                losses.append(scored(_trained(step, optimizer, start(params), batches)))
                bar.update()
            trials.append(Trial(what, tuple(losses)))
    return Trials(tuple(trials), scored(params), data.steps, size, count - held, held)


def check(made: Traceable, arrays: Any, size: int) -> int:
    """How many samples there are.

    Raises:
        ValueError: another tree, other shapes, lengths that differ, or fewer than two batches.
    """
    wanted, given = jax.tree.leaves(made.batch), jax.tree.leaves(arrays)
    if jax.tree.structure(made.batch) != jax.tree.structure(arrays):
        raise ValueError(
            f"data is {jax.tree.structure(arrays)}; it must be a tree as the batch, "
            f"{jax.tree.structure(made.batch)}: pass that, with more samples"
        )
    counts: list[int] = []
    for one, array in zip(wanted, given, strict=True):
        leads = int(np.shape(one)[:1] == (size,))
        tail = np.shape(one)[leads:]
        if np.shape(array)[leads:] != tail:
            raise ValueError(
                f"data has an array of {np.shape(array)}; it must be (samples, "
                f"{', '.join(map(str, tail))}) as in the batch: pass that"
            )
        counts += [len(array)] if leads else []
    if len(set(counts)) != 1:
        raise ValueError(
            f"arrays of data have {counts} samples; they must have as many: correct them"
        )
    if counts[0] < 2 * size:
        raise ValueError(
            f"data has {counts[0]} samples with {size} of a step; one batch is held out and one is "
            f"trained on: pass {2 * size} or more"
        )
    return counts[0]


def _rows(made: Traceable, arrays: Any, rows: Any, size: int) -> Any:
    """A batch of these samples; arrays that have none of the samples come as they are."""

    def one(like: Any, array: Any) -> Any:
        if _is_key(like):
            return jax.random.fold_in(array, rows[0]) if not array.ndim else array
        leads = np.shape(like)[:1] == (size,)
        return jnp.asarray(np.asarray(array)[rows] if leads else array, like.dtype)

    return jax.tree.map(one, made.batch, arrays)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _order(seed: int, held: int, count: int, size: int, steps: int) -> Iterator[Any]:
    """The samples of each step: shuffled anew for every pass, the held-out ones left out."""
    draw, left = np.random.default_rng(seed), np.empty(0, np.int64)
    for _ in range(steps):
        while len(left) < size:
            left = np.concatenate([left, held + draw.permutation(count - held)])
        yield left[:size]
        left = left[size:]


Variant = tuple[str, Any, Callable[[Any], Any], Callable[..., Any]]


def _variants(made: Traceable, optimizer: Any) -> Iterator[Variant]:
    def plain(params: Any, batch: Any) -> Any:
        return _value(made.loss(params, batch))

    yield "single precision", optimizer, lambda params: params, plain
    for name in FORMATS:
        said: Any = as_precision(name)
        half = mixed(plain, made.params, made.batch, said.half)
        yield name, scaled(optimizer, said.scale), lambda params: params, half
    for share in ZEROS if _can_be_sparse(made.params) else ():
        method = Static(share)
        keeps = masked(optimizer, method)
        yield (
            f"{100 * share:.0f} % zeros, chosen once",
            keeps,
            lambda params, method=method: sparsified(params, method),
            plain,
        )


def _can_be_sparse(params: Any) -> bool:
    """Whether a matrix besides the last one is there; that stays dense."""
    try:
        return any(Rule().chosen(params))
    except ValueError:
        return False


def _value(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


def _step(loss: Callable[..., Any], optimizer: Any) -> Any:
    def step(params: Any, state: Any, batch: Any) -> Any:
        scale = getattr(state, "scale", 1.0)
        gradient = jax.grad(lambda p: scale * loss(p, batch))(params)
        change, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, change), state

    return jax.jit(step)


def _trained(step: Any, optimizer: Any, params: Any, batches: Iterator[Any]) -> Any:
    state = optimizer.init(params)
    for batch in batches:
        params, state = step(params, state, batch)
    return params


def from_arrays(made: Traceable, arrays: dict[str, Any], given: Data) -> Data:
    """The arrays of a file as a tree like the batch, in the file's order.

    Keys of chance are the batch's own, changed with the samples.

    Raises:
        ValueError: another number of arrays than the batch has.
    """
    whole = jax.tree.leaves(made.batch)
    leaves = [x for x in whole if not _is_key(x)]
    if len(arrays) != len(leaves):
        shapes = ", ".join(str(tuple(np.shape(x))) for x in leaves)
        raise ValueError(
            f"the file has {len(arrays)} arrays ({', '.join(arrays)}); the batch has "
            f"{len(leaves)}, of shapes {shapes}: write these, in this order, with more samples"
        )
    read = iter(arrays.values())
    every = [x if _is_key(x) else next(read) for x in whole]
    tree = jax.tree.unflatten(jax.tree.structure(made.batch), every)
    return replace(given, arrays=tree)
