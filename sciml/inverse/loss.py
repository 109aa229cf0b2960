"""What is minimised."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.inverse.program import is_posterior, structure
from sciml.train.precision import dot_general


def objective_of(model, graph):
    """Return `objective(params, (x, y), key)`, a mean over a prepared batch.

    A point net minimises the squared error of the scaled targets (of every member, for an
    ensemble); a posterior the loss that its module states, for a density −log p(θ | x).
    """

    def squared_error(params, batch, key):
        del key
        x, y = batch
        return jnp.mean(jnp.square(nnx.merge(graph, params)(x) - y))

    def stated(params, batch, key):
        x, y = batch
        return jnp.mean(nnx.merge(graph, params).loss(y, x, key))

    return stated if is_posterior(model) else squared_error


def loss_of(model, graph, prepare):
    """Return `loss(params, batch, key)`, a mean; `prepare(batch, key)` → inputs, scaled targets."""
    objective = objective_of(model, graph)

    def loss(params, batch, key):
        measure, own = jax.random.split(key)
        return objective(params, prepare(batch, measure), own)

    return loss


@dataclass(frozen=True)
class PreparedLoss:
    """`loss(params, batch, key)` of a batch that was measured and scaled before training.

    Of one configuration all are equal, so that trainings of equal shapes share a program.
    """

    model: Any
    inputs: int | tuple[int, ...]
    outputs: int
    precision: str
    shared: ClassVar[bool] = True

    @property
    def graph(self) -> Any:
        """The graph of the net."""
        return structure(self.model, self.inputs, self.outputs, dot_general(self.precision))[0]

    def __call__(self, params, batch, key):
        """Return the mean over a batch (inputs, scaled targets)."""
        return loss_of(self.model, self.graph, as_prepared)(params, batch, key)


def executed_loss(model, graph):
    """Return `loss(params, (x, y, keys))` for an executor, which deals samples to systems.

    Keys belong to samples, so that how many systems share a batch changes no number.
    """
    objective = objective_of(model, graph)

    def one(params, x, y, key):
        return objective(params, (x[None], y[None]), jax.random.wrap_key_data(key))

    def loss(params, batch) -> Float[Array, ""]:
        x, y, keys = batch
        if is_posterior(model):
            return jnp.mean(jax.vmap(one, (None, 0, 0, 0))(params, x, y, keys))
        return objective(params, (x, y), jax.random.wrap_key_data(keys[0]))

    return loss


def executed_batch(prepare):
    """Return `batch(rows, key)` → (x, y, keys) as `executed_loss` takes it."""

    def batch(rows, key) -> tuple[Any, Any, Any]:
        measure, own = jax.random.split(key)
        x, y = prepare(rows, measure)
        return x, y, jax.random.key_data(jax.random.split(own, len(y)))

    return batch


def as_prepared(batch, key):
    """Return a batch that was measured and scaled before training."""
    del key
    return batch
