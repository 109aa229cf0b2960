"""What the nets that draw fine fields have in common: where noise comes from, what it may move."""

from abc import abstractmethod

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, Key

from sciml._random import flat
from sciml.models.wind.refinement import Coarse, Draws, Fine, Ground, RefinementNet, without_means
from sciml.models.wind.residual_refinement import ResidualRefinement, cell_net
from sciml.models.wind.super_resolution import SuperResolutionNet

Index = int | Int[Array, ""]
Corner = tuple[Index, Index]  # row and column of a domain's part; may be traced


def cell_noise(
    key: Key[Array, ""],
    shape: tuple[int, ...],
    factor: int,
    corner: Corner = (0, 0),
) -> Float[Array, "*lead y x"]:
    """Return standard normal numbers on the fine grid, a key of its own for each coarse cell.

    `shape` (*lead, y_lo, x_lo) is that of the cells, `corner` where the domain has their first.
    """
    *lead, y, x = shape

    def cell(row: Array, column: Array) -> Float[Array, "*lead factor factor"]:
        own = jax.random.fold_in(jax.random.fold_in(key, row), column)
        return flat(jax.random.normal, own, (*lead, factor, factor), jnp.float32)

    rows, columns = corner[0] + jnp.arange(y), corner[1] + jnp.arange(x)
    cells = jax.vmap(lambda row: jax.vmap(lambda column: cell(row, column))(columns))(rows)
    n = len(lead)
    cells = cells.transpose(*range(2, 2 + n), 0, 2 + n, 1, 3 + n)
    return cells.reshape(*lead, factor * y, factor * x)


def drawing(key: Key[Array, ""] | None) -> Key[Array, ""]:
    """Return the key of a loss that draws."""
    if key is None:
        raise ValueError("this loss draws noise; pass a key: net.loss(coarse, fine, key=key)")
    return key


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
        batch, _, *cells = coarse.shape
        shape = (draws, batch, self.config.wind, *cells)
        noise = cell_noise(key, shape, self.config.factor, corner)
        return self.drawn(coarse, noise, statics)

    def free(self, field: Float[Array, "*lead y x"]) -> Float[Array, "*lead y x"]:
        """Return the part of a field that the coarse field leaves free."""
        return without_means(field, self.config.factor) if self.config.conservative else field


class DepartureNet(DrawingNet):
    """A net for the mean of the draws, and one that sees noise for what departs from it."""

    def __init__(self, config: ResidualRefinement, rngs: nnx.Rngs, conditions: int = 0):
        """Draw the weights; `conditions` numbers per sample steer the departure."""
        self.config = config
        self.mean = SuperResolutionNet(config, rngs)
        self.departure = cell_net(config, rngs, noises=1, conditions=conditions)

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the mean of the draws."""
        return self.mean(coarse, statics)
