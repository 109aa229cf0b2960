"""What the nets that draw fine fields have in common: where noise comes from, what it may move."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.wind.placed_noise import Corner, cell_noise
from sciml.models.wind.refinement import Coarse, Draws, Fine, Ground, RefinementNet, without_means
from sciml.models.wind.residual import ResidualNet
from sciml.models.wind.residual_refinement import ResidualRefinement
from sciml.models.wind.super_resolution import mean_net


def positive(raw: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return a scale: log(1 + (e − 1) eʳ), which is 1 at 0, where nets start."""
    return jax.nn.softplus(raw + jnp.log(jnp.e - 1))


class DrawingNet(RefinementNet):
    """A net that makes fine fields of white noise on the fine grid, given the coarse field."""

    @abstractmethod
    def drawn(self, coarse: Coarse, noise: Draws, statics: Ground = None) -> Draws:
        """Return the fine field that each field of noise makes."""

    def sample(
        self,
        coarse: Coarse,
        key: Key[Array, ""],
        draws: int,
        statics: Ground = None,
        *,
        corner: Corner = (0, 0),
    ) -> Draws:
        """Draw fine fields.

        Noise belongs to the coarse cell at `corner` + (row, column), so that tiles of a domain draw
        the same wind where they overlap.
        """
        noise = cell_noise(key, (draws, *coarse.shape), self.config.factor, corner)
        return self.drawn(coarse, noise, statics)

    def free(self, field: Float[Array, "*lead y x"]) -> Float[Array, "*lead y x"]:
        """Return the part of a field that the coarse field leaves free."""
        return without_means(field, self.config.factor) if self.config.conservative else field


class DepartureNet(DrawingNet):
    """A net for the mean of the draws, and one that sees noise for what departs from it."""

    def __init__(self, config: ResidualRefinement, rngs: nnx.Rngs, conditions: int = 0):
        """Draw the weights; `conditions` numbers per sample steer the departure."""
        self.config = config
        cell = config.factor**2
        self.mean = mean_net(config, rngs)
        self.departure = ResidualNet(
            config.wind + (config.statics + config.wind) * cell,
            config.wind * cell,
            rngs,
            channels=config.channels,
            blocks=config.blocks,
            conditions=conditions,
        )

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the mean of the draws."""
        return self.mean(coarse, statics)
