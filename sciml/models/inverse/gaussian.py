"""A Gaussian posterior with a full covariance."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml._random import flat
from sciml.models.inverse.context import (
    Context,
    Draws,
    Head,
    MaximumLikelihood,
    Residual,
    Targets,
    standard_normal,
)
from sciml.models.shared.linear import zero_linear
from sciml.models.shared.presence import Inputs, Observed

STEEPEST = 8.0  # assumed: largest |log| of a diagonal entry of the factor, e⁸ = 3000


@dataclass(frozen=True)
class Gaussian(Head):
    """p(y | x) = N(y; μ(x), Σ(x)), with Σ⁻¹ = A Aᵀ and A lower triangular.

    A net of `depth` residual layers of `width` units gives μ and A; the diagonal of A is an
    exponential, so Σ is positive definite whatever the weights. −log p needs no solution of a
    linear system: it is ½ |Aᵀ (y − μ)|² − Σ log A_ii + const. At first p is N(0, 1).

    Args:
        width: units of a layer.
        depth: residual layers after the first.
        embedding: `Dense`, `Convolutional` or `Attention` to make `width` features of the
            observation, or None to take it as it is. With `embedding=Dense(missing=True)` NaN
            stands for a missing value.

    Raises:
        ValueError: a size is not a positive whole number.
        TypeError: the embedding is something else.

    >>> Gaussian(width=64, depth=2)
    Gaussian(width=64, depth=2, embedding=None)
    """

    width: int = 64
    depth: int = 2
    embedding: Any = None

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None) -> "GaussianNet":
        """Make the module for `outputs` targets."""
        context = Context(self.embedding, inputs, self.width, rngs, dot_general)
        return GaussianNet(self, context, outputs, rngs, dot_general)


class GaussianNet(MaximumLikelihood):
    """See `Gaussian`."""

    def __init__(self, config: Gaussian, context: Context, outputs: int, rngs, dot_general=None):
        self.context = context
        self.whiten = Whiten(context.size, config.width, config.depth, outputs, rngs, dot_general)

    def log_prob(self, targets: Targets, observed: Observed) -> Float[Array, " batch"]:
        """Return log p(targets | observed)."""
        mean, factor = self.whiten(self.context(observed))
        z, log_slope = whitened(targets, mean, factor)
        return standard_normal(z) + log_slope

    def sample(self, key: Key[Array, ""], observed: Observed, draws: int) -> Draws:
        """Draw from the posterior of each observation."""
        mean, factor = self.whiten(self.context(observed))
        z = flat(jax.random.normal, key, (draws, *mean.shape))
        return coloured(z, mean, factor)

    def estimate(self, observed: Observed) -> Targets:
        """Return the posterior mean."""
        return self.whiten(self.context(observed))[0]


class Whiten(nnx.Module):
    """The net behind a Gaussian: features ↦ (μ, A), linear in the features at least."""

    def __init__(self, inputs: int, width: int, depth: int, outputs: int, rngs, dot_general=None):
        """Draw the weights; a linear path beside the net gives linear problems a linear mean."""
        self.outputs = outputs
        entries = outputs * (outputs + 1) // 2
        self.net = Residual(inputs, width, depth, outputs + entries, rngs, dot_general)
        self.straight = zero_linear(inputs, outputs, rngs)

    def __call__(
        self, features: Float[Array, "batch feature"]
    ) -> tuple[Targets, Float[Array, "batch param param"]]:
        """Return means and lower factors of the precisions."""
        n = self.outputs
        out = self.net(features)
        rows, columns = jnp.tril_indices(n)
        raw = jnp.zeros((len(out), n, n)).at[:, rows, columns].set(out[:, n:])
        diagonal = STEEPEST * jnp.tanh(jnp.diagonal(raw, axis1=1, axis2=2) / STEEPEST)
        factor = jnp.tril(raw, -1) + jnp.exp(diagonal)[:, :, None] * jnp.eye(n)
        return self.straight(features) + out[:, :n], factor


def whitened(y: Targets, mean: Targets, factor: Array) -> tuple[Targets, Float[Array, " batch"]]:
    """Return z = Aᵀ (y − μ) and log |dz/dy|."""
    z = jnp.einsum("bij,bi->bj", factor, y - mean)
    return z, jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)


def coloured(z: Draws, mean: Targets, factor: Array) -> Draws:
    """Return y = μ + A⁻ᵀ z, the inverse of `whitened`, for many draws."""
    solved = jax.scipy.linalg.solve_triangular(
        jnp.swapaxes(factor, 1, 2), jnp.moveaxis(z, 0, 2), lower=False
    )
    return mean + jnp.moveaxis(solved, 2, 0)
