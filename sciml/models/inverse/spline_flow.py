"""A conditional neural spline flow, for posteriors of any shape."""

from dataclasses import dataclass
from typing import Any, ClassVar

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
    Targets,
    standard_normal,
)
from sciml.models.inverse.gaussian import Whiten, coloured, whitened
from sciml.models.inverse.masked import MaskedNet
from sciml.models.inverse.spline import inverse, parameters_per_variable, spline
from sciml.models.shared.presence import Inputs, Observed
from sciml.train.recipe import Recipe

BOUND = 4.0  # assumed: splines bend within ±4 of the whitened targets, tails are Gaussian
ESTIMATE_DRAWS = 256


@dataclass(frozen=True)
class SplineFlow(Head):
    """p(y | x) = N(z; 0, 1) |dz/dy|, with z = T_layers ∘ … ∘ T_1 ∘ W (y; x).

    W whitens with the mean and covariance of a `Gaussian`; each T is an autoregressive monotonic
    rational-quadratic spline of `bins` bins, and the order of the targets turns from one to the
    next. All of them depend on x through nets of `width` units. At first T is the identity and p
    is N(0, 1), so the flow starts from the Gaussian and bends it.

    Sources: Durkan et al., arXiv 1906.04032 (splines); Papamakarios et al., arXiv 1705.07057
    (autoregressive flows).

    Args:
        width: units of a hidden layer.
        depth: hidden layers of each net.
        layers: splines in a row.
        bins: bins of a spline.
        embedding: `Dense`, `Convolutional` or `Attention` to make `width` features of the
            observation, or None to take it as it is. With `embedding=Dense(missing=True)` NaN
            stands for a missing value.

    Raises:
        ValueError: a size is not a whole number, or too small.
        TypeError: the embedding is something else.

    >>> SplineFlow()
    SplineFlow(width=64, depth=2, layers=3, bins=8, embedding=None)
    """

    least: ClassVar[dict[str, int]] = {**Head.least, "layers": 1, "bins": 2}
    width: int = 64
    depth: int = 2
    layers: int = 3
    bins: int = 8
    embedding: Any = None

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None) -> "SplineFlowNet":
        """Make the module for `outputs` targets."""
        context = Context(self.embedding, inputs, self.width, rngs, dot_general)
        return SplineFlowNet(self, context, outputs, rngs, dot_general)

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well."""
        return Recipe(batch=50, learning_rate=7e-4)


class SplineFlowNet(MaximumLikelihood):
    """See `SplineFlow`."""

    def __init__(self, config: SplineFlow, context: Context, outputs: int, rngs, dot_general=None):
        self.outputs, self.context = outputs, context
        width, depth = config.width, config.depth
        self.whiten = Whiten(context.size, width, depth, outputs, rngs, dot_general)
        each = parameters_per_variable(config.bins)
        self.nets = nnx.List(
            MaskedNet(outputs, context.size, width, depth, each, rngs) for _ in range(config.layers)
        )

    def log_prob(self, targets: Targets, observed: Observed) -> Float[Array, " batch"]:
        """Return log p(targets | observed)."""
        z, log_slope = self.to_normal(targets, observed)
        return standard_normal(z) + log_slope

    def to_normal(
        self, targets: Targets, observed: Observed
    ) -> tuple[Targets, Float[Array, " batch"]]:
        """Return z and log |dz/dy|."""
        features = self.context(observed)
        z, log_slope = whitened(targets, *self.whiten(features))
        for net in self.nets:
            z = jnp.flip(z, axis=-1)
            z, logs = spline(z, net(z, net.features(features)), BOUND)
            log_slope = log_slope + logs.sum(axis=-1)
        return z, log_slope

    def from_normal(self, z: Draws, observed: Observed) -> Draws:
        """Return y of each z, the inverse of `to_normal`."""
        features = self.context(observed)
        for net in reversed(list(self.nets)):
            z = jnp.flip(unbent(net, z, net.features(features)), axis=-1)  # once for all draws
        return coloured(z, *self.whiten(features))

    def sample(self, key: Key[Array, ""], observed: Observed, draws: int) -> Draws:
        """Draw from the posterior of each observation."""
        z = flat(jax.random.normal, key, (draws, len(observed), self.outputs))
        return self.from_normal(z, observed)

    def estimate(self, observed: Observed) -> Targets:
        """Return the mean of a few draws, always the same ones."""
        return self.sample(jax.random.key(0), observed, ESTIMATE_DRAWS).mean(axis=0)


def unbent(net: MaskedNet, z: Draws, added: Any) -> Draws:
    """Return y whose spline is z, one variable after another: a loop, which is compiled once."""

    def one(i: Array, y: Draws) -> Draws:
        raw = net.of_variable(i, y, added)
        return y.at[..., i].set(inverse(jnp.take(z, i, axis=-1), raw, BOUND))

    return jax.lax.fori_loop(0, z.shape[-1], one, jnp.zeros_like(z))
