"""Whole epochs as one compiled program."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, PyTree

from sciml._arguments import check_whole
from sciml.train.devices import Shared

Params = Any
Loss = Callable[[Params, Any, Key[Array, ""]], Float[Array, ""]]

# Losses of one call are returned in a buffer of this length, so that one compiled program serves
# every number of epochs up to it.
BUFFER = 256


@dataclass(frozen=True)
class Online:
    """Data that are drawn anew for every epoch, inside the compiled program.

    Args:
        samples: how many there are in an epoch.
        draw: `draw(key, *source)` → a pytree of arrays with a leading axis of `samples`.
        source: arrays to draw from; given here they are arguments of the compiled program, not
            constants in it.

    >>> import jax
    >>> from sciml.train import Online
    >>> fresh = Online(samples=100, draw=lambda key: jax.random.normal(key, (100, 2)))
    >>> fresh.samples
    100
    """

    samples: int
    draw: Callable[..., Any]
    source: tuple[Any, ...] = ()

    def __post_init__(self):
        check_whole(1, **{"Online.samples": self.samples})


class Carry(NamedTuple):
    """What an update changes."""

    params: Params
    optimizer: optax.OptState


def epochs_program(
    loss: Loss,
    transform: optax.GradientTransformation,
    batch: int,
    online: Online | None = None,
    shared: Shared = Shared(),  # noqa: B008 - frozen
) -> Callable[..., tuple[Carry, Float[Array, " epoch"]]]:
    """Return `run(carry, data, key, first, count) -> (carry, losses)`.

    `run` trains `count` epochs (at most BUFFER), numbered from `first`; `losses[:count]` are
    their mean losses. Epoch e shuffles with `fold_in(key, e)`, so how epochs are grouped into
    calls changes no number. The last `samples mod batch` samples of a shuffle are left out. A batch
    of all samples is not shuffled: its mean does not know their order. With `online`, `data` is
    its source and every epoch begins with a draw. Samples of a batch, and of a draw, are dealt out
    to the devices that are `shared`; data and carry lie on all of them.
    """

    def update(data, carry: Carry, chance) -> tuple[Carry, Float[Array, ""]]:
        rows, key = chance
        chosen = shared.dealt(data if rows is None else taken(data, shared.dealt(rows)))
        value, gradient = jax.value_and_grad(loss)(carry.params, chosen, key)
        change, state = transform.update(gradient, carry.optimizer, carry.params)
        return Carry(optax.apply_updates(carry.params, change), state), value

    def epoch(data, carry: Carry, key) -> tuple[Carry, Float[Array, ""]]:
        if online is not None:
            data = shared.whole(shared.dealt(drawn(online, key, data)))
        chances = order(key, samples_in(data), batch)
        carry, losses = jax.lax.scan(lambda c, d: update(data, c, d), carry, chances)
        return carry, losses.mean()

    def run(carry: Carry, data, key, first: Int[Array, ""], count: Int[Array, ""]):
        def body(i, state):
            carry, losses = state
            carry, value = epoch(data, carry, jax.random.fold_in(key, first + i))
            return carry, losses.at[i].set(value)

        return jax.lax.fori_loop(0, count, body, (carry, jnp.zeros(BUFFER)))

    where = {"out_shardings": shared.everywhere} if shared.several else {}
    return jax.jit(run, donate_argnums=0, **where)


def drawn(online: Online, key: Key[Array, ""], source: tuple[Any, ...]) -> PyTree[Array]:
    """Return the data of the epoch that `key` belongs to."""
    return online.draw(jax.random.fold_in(key, 2), *source)


def order(
    key: Key[Array, ""], samples: int, batch: int
) -> tuple[Int[Array, "step batch"] | None, Key[Array, " step"]]:
    """Return the rows and the key of each update of the epoch of this key.

    There are no rows where a batch is all samples.
    """
    (shuffle, noise), steps = jax.random.split(key), samples // batch
    keys = jax.random.split(noise, steps)
    if batch == samples:
        return None, keys
    return jax.random.permutation(shuffle, samples)[: steps * batch].reshape(steps, batch), keys


def taken(data: PyTree[Array], rows: Int[Array, " batch"]) -> PyTree[Array]:
    """Return the given rows of every array."""
    return jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=0, mode="clip"), data)


def samples_in(data: PyTree[Array]) -> int:
    """Return the common length of the leading axes of `data`."""
    lengths = {leaf.shape[0] for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1:
        raise ValueError(f"the leading axes have lengths {sorted(lengths)}; they must be equal")
    return lengths.pop()
