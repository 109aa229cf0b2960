"""What is minimised."""

import jax
import jax.numpy as jnp
from flax import nnx

from sciml.estimator.program import is_posterior


def loss_of(model, graph, prepare):
    """Return `loss(params, batch, key)`, a mean over the batch.

    A point net minimises the squared error of the scaled targets (of every member, for an
    ensemble); a posterior the loss that its module states, for a density −log p(θ | x).

    Args:
        model: the configuration.
        graph: its structure.
        prepare: `prepare(batch, key)` → inputs and scaled targets.
    """

    def squared_error(params, batch, key):
        x, y = prepare(batch, key)
        return jnp.mean(jnp.square(nnx.merge(graph, params)(x) - y))

    def stated(params, batch, key):
        measure, own = jax.random.split(key)
        x, y = prepare(batch, measure)
        return jnp.mean(nnx.merge(graph, params).loss(y, x, own))

    return stated if is_posterior(model) else squared_error


def as_prepared(batch, key):
    """Return a batch that was measured and scaled before training."""
    del key
    return batch
