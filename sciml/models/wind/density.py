"""A density head: a normal distribution of the wind at each fine point, given the coarse field."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.wind.drawing import DrawingNet, positive
from sciml.models.wind.refinement import (
    Coarse,
    Draws,
    Fine,
    Ground,
    Scalar,
    Seed,
    at_coarse,
    filled,
    refined,
    shuffle,
)
from sciml.models.wind.residual_refinement import ResidualRefinement, cell_net
from sciml.wind.prepare.coarsen import block_mean, spread

SPREAD = 0.25  # assumed: about the subgrid standard deviation of fields of unit variance
LEAST = 1e-3  # of SPREAD: no point is certain


@dataclass(frozen=True)
class Density(ResidualRefinement):
    """Mean and standard deviation of the wind at each fine point, and draws from them.

    A draw is fine = μ + P(σ z), with z ~ N(0, 1) at each point and P the projection that takes the
    block means away, so that it keeps those of its input if `conservative`. Training minimises the
    continuous ranked probability score of what a draw is at a point, N(μ, s²), with n = factor² and
    s² = σ² (1 − 2/n) + ⟨σ²⟩/n over its block:

        CRPS = s (w (2 Φ(w) − 1) + 2 φ(w) − 1/√π),    w = (fine − μ) / s

    Neighbours differ by more than in nature, since z is white: use `Generative` where spectra or
    sums over areas matter, this where the distribution at a point does, and is wanted as numbers.

    References: Gneiting et al. (2005), Mon. Weather Rev. 133, 1098 (the score of a normal
    distribution); Getter, Bessac, Rudi and Feng (2024), arXiv 2211.16708 (nets that give the
    parameters of the density of subgrid wind).

    Sizes, and what is raised, are those of `ResidualRefinement`.

    >>> Density(factor=4).reach
    10
    """

    probabilistic: ClassVar[bool] = True

    def build(self, rngs: nnx.Rngs) -> "DensityNet":
        """Return the net with fresh weights."""
        return DensityNet(self, rngs)


class DensityNet(DrawingNet):
    """See `Density`; its mean starts as (conservative) bicubic interpolation."""

    def __init__(self, config: Density, rngs: nnx.Rngs):
        self.config = config
        self.net = cell_net(config, rngs, outputs=2)

    def parameters(self, coarse: Coarse, statics: Ground = None) -> tuple[Fine, Fine]:
        """Return μ and σ; of a draw's standard deviation at a point see `deviation`."""
        both = shuffle(self.net(at_coarse(self.config, coarse, statics)), self.config.factor)
        residual, raw = jnp.split(both, 2, axis=1)
        return refined(self.config, coarse, residual), SPREAD * (LEAST + positive(raw))

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return μ."""
        return self.parameters(coarse, statics)[0]

    def deviation(self, scale: Fine) -> Fine:
        """Return s, the standard deviation of draws at each point."""
        if not self.config.conservative:
            return scale
        n, square = self.config.factor**2, jnp.square(scale)
        mean = spread(block_mean(square, self.config.factor), self.config.factor)
        return jnp.sqrt(square * (1 - 2 / n) + mean / n)

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return the mean CRPS; no draw is needed, so `key` is not used."""
        del key
        mean, scale = self.parameters(coarse, statics)
        score = normal_crps(mean, self.deviation(scale), filled(fine, mean))
        return jnp.mean(jnp.where(jnp.isnan(fine), 0, score))

    @property
    def separable(self) -> bool:
        """Whether the loss of a batch is the mean of those of its samples: yes."""
        return True

    def drawn(self, coarse: Coarse, noise: Draws, statics: Ground = None) -> Draws:
        """Return μ + P(σ z) for each z."""
        mean, scale = self.parameters(coarse, statics)
        return mean + self.free(scale * noise)


def normal_crps(
    mean: Float[Array, "*shape"], deviation: Float[Array, "*shape"], truth: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Return the continuous ranked probability score of N(mean, deviation²)."""
    w = (truth - mean) / deviation
    density, below = jax.scipy.stats.norm.pdf(w), jax.scipy.stats.norm.cdf(w)
    return deviation * (w * (2 * below - 1) + 2 * density - jnp.pi**-0.5)
