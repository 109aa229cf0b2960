"""Epochs of updates whose gradient is taken sample by sample, in parts that run side by side.

XLA on a processor runs a convolution on one core, and a batch of images does not fit into its
cache. A net of convolutions therefore trains faster when each core takes one sample after another;
other nets are better off in one program.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from sciml._arguments import check_whole
from sciml._session import each
from sciml.train.epoch import BUFFER, Carry, Loss, Online, Params, drawn, order, samples_in, taken

MOST = 4  # assumed: fixed, so that the numbers do not depend on how many cores there are
# calibrated on two cores: in parts updates of 0.5 GFLOP took 1.1 times as long, those of 2 to 60
# GFLOP 0.6 to 0.9 times; of nets of 2.4 and 9.5 million weights, whose convolutions use all cores,
# 0.84 and 1.15 times.
LEAST_FLOPS = 2e9
MOST_WEIGHTS = 4_000_000
# derived: forward and backward a weight is multiplied three times at no more places than there are
# values, twice that where a loss draws twice, in products and additions.
MOST_FLOPS_OF_A_WEIGHT = 12

Losses = Float[np.ndarray, " epoch"]


@dataclass(frozen=True)
class InParts:
    """A loss whose gradient over a batch is the mean over those of single samples.

    Sample i of the batch has the key `fold_in(key, i)`; `parts` of the batch run side by side.

    Raises:
        ValueError: there is no part.

    >>> import jax.numpy as jnp
    >>> from sciml.train import InParts
    >>> InParts(lambda params, batch, key: jnp.mean((batch - params) ** 2), parts=2).parts
    2
    """

    loss: Loss
    parts: int

    def __post_init__(self):
        check_whole(1, **{"InParts.parts": self.parts})

    def together(self, params: Params, batch: Any, key: Key[Array, ""]) -> Float[Array, ""]:
        """Return the same mean in one program, for devices that share the batch."""
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(samples_in(batch)))

        def one(sample: Any, key: Key[Array, ""]) -> Float[Array, ""]:
            return self.loss(params, jax.tree.map(lambda leaf: leaf[None], sample), key)

        return jax.vmap(one)(batch, keys).mean()


def in_parts(loss: Loss, params: Params, samples: Any, batch: int) -> Loss | InParts:
    """Return the loss in parts if such samples gain from it, else itself.

    That depends on shapes alone, and on whether there is an accelerator.
    """
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    if jax.default_backend() != "cpu" or weights > MOST_WEIGHTS:
        return loss
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((batch, *x.shape[1:]), x.dtype), samples)
    values = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    if MOST_FLOPS_OF_A_WEIGHT * weights * values < LEAST_FLOPS:
        return loss  # without tracing it
    cost = jax.jit(jax.grad(loss)).lower(params, shapes, jax.random.key(0)).cost_analysis()
    if cost is None or cost["flops"] < LEAST_FLOPS:
        return loss
    return InParts(loss, max(n for n in range(1, MOST + 1) if batch % n == 0))


@dataclass(frozen=True)
class Parted:
    """Epochs as of `sciml.train.epoch.epochs_program`, but for how a gradient is taken.

    Three compiled programs take turns: `begin(source, key, epoch)` → (data, rows, keys) shuffles
    and draws, `part(params, data, rows, keys, step, i)` → sums of (loss, gradient), and
    `update(carry, found)` → (carry, loss).
    """

    parts: int
    steps: int
    begin: Callable[..., Any]
    part: Callable[..., Any]
    update: Callable[..., Any]

    def __call__(
        self, carry: Carry, source: Any, key: Key[Array, ""], first: Any, count: Any
    ) -> tuple[Carry, Losses]:
        """Train `count` epochs (at most BUFFER), numbered from `first`."""
        losses = np.zeros(BUFFER, np.float32)
        for epoch in range(int(count)):
            begun = self.begin(source, key, first + epoch)
            carry, losses[epoch] = self.epoch(carry, source, begun)
        return carry, losses

    def epoch(self, carry: Carry, source: Any, begun: Any) -> tuple[Carry, float]:
        """Train one epoch; return its mean loss."""
        fresh, *chances = begun
        data = source if fresh is None else fresh
        losses, parts = [], [np.int32(i) for i in range(self.parts)]
        for step in map(np.int32, range(self.steps)):
            one = partial(self.waited, carry.params, data, *chances, step)
            carry, loss = self.update(carry, list(each(one, parts, compiled=True)))
            losses.append(loss)
        return carry, float(np.mean(losses))

    def waited(self, *arguments: Any) -> Any:
        """Return the sums of a part when they are there."""
        return jax.block_until_ready(self.part(*arguments))


def compile_parts(
    loss: InParts,
    transform: optax.GradientTransformation,
    batch: int,
    online: Online | None,
    arguments: tuple[Carry, Any, Key[Array, ""]],
) -> Parted:
    """Return the compiled epochs; `arguments` are those of a call: (carry, data or source, key)."""
    carry, source, key = arguments
    parts, size = loss.parts, batch // loss.parts
    samples = online.samples if online else samples_in(source)

    def begin(source: Any, key: Key[Array, ""], epoch: Any) -> Any:
        key = jax.random.fold_in(key, epoch)
        fresh = drawn(online, key, source) if online else None
        rows, keys = order(key, samples, batch)
        rows = jnp.arange(samples) if rows is None else rows
        return fresh, rows.reshape(-1, parts, size), keys

    def part(params: Any, data: Any, rows: Any, keys: Any, step: Any, i: Any) -> Any:
        def add(total: Any, chance: tuple[Array, Array]) -> tuple[Any, None]:
            row, sample = chance
            one, key = taken(data, row[None]), jax.random.fold_in(keys[step], sample)
            found = jax.value_and_grad(loss.loss)(params, one, key)
            return jax.tree.map(jnp.add, total, found), None

        nothing = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        chances = (rows[step, i], size * i + jnp.arange(size))
        return jax.lax.scan(add, nothing, chances)[0]

    def update(carry: Carry, found: Any) -> Any:
        value, gradient = jax.tree.map(lambda *alike: sum(alike) / batch, *found)
        change, state = transform.update(gradient, carry.optimizer, carry.params)
        return Carry(optax.apply_updates(carry.params, change), state), value

    number = jnp.int32(0)
    begun = jax.eval_shape(begin, source, key, number)
    data = source if begun[0] is None else begun[0]
    found = jax.eval_shape(part, carry.params, data, *begun[1:], number, number)
    return Parted(
        parts,
        samples // batch,
        jax.jit(begin).lower(source, key, number).compile(),
        jax.jit(part).lower(carry.params, data, *begun[1:], number, number).compile(),
        jax.jit(update, donate_argnums=0).lower(carry, [found] * parts).compile(),
    )
