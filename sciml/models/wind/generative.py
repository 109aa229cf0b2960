"""A generative net: noise in, wind below the coarse grid out, in one evaluation."""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml._random import flat
from sciml.models.wind.drawing import DepartureNet, drawing, positive
from sciml.models.wind.refinement import (
    Coarse,
    Draws,
    Fine,
    Ground,
    Known,
    Scalar,
    Seed,
    at_coarse,
    filled,
    shuffle,
    square_error,
    unshuffle,
)
from sciml.models.wind.residual_refinement import ResidualRefinement, cell_net
from sciml.models.wind.unet import primes
from sciml.wind.prepare.coarsen import block_mean

# Rows and columns over which increments are scored. The diagonals tell apart what neighbours along
# the axes do not: two waves whose squares they only see the sum of.
OFFSETS = ((0, 1), (1, 0), (1, 1), (1, -1))
LEAST = 1e-12  # below the root of a sum of squares, whose slope at 0 must be finite


@dataclass(frozen=True)
class Generative(ResidualRefinement):
    """Draws fine = μ(coarse) + P (σ(coarse) g(coarse, z)), with white noise z on the fine grid.

    μ, the estimate, is trained on its squared error. g and σ, which spares g from learning how
    rough the wind is, are trained so that two draws x, x′ score well against the truth y at each
    scale between the grids, in each aspect δ of the wind: itself, its increments between
    neighbours, along the axes and the diagonals, and the increments of increments across, the
    twist of 2 × 2 points:

        Σ_δ ⟨|δx − δy|/2 + |δx′ − δy|/2 − |δx − δx′|/2⟩

    with the length |·| of the vector of wind. Each term is a fair energy score, least in the mean
    for draws from the true distribution of δ; the increments make it notice the spectrum, which the
    score at points alone does not. Scales are means over squares of points whose sides are products
    of the prime factors of `factor`: 1 and 2 for 4. P takes the block means away, so each draw
    keeps those of its input if `conservative`. Unlike a flow or a diffusion a draw is one
    evaluation and has the reach of the net, so tiles of a domain draw exactly what the whole draws.

    References: Gneiting and Raftery (2007), J. Am. Stat. Assoc. 102, 359 (energy score); Lang et
    al. (2024), arXiv 2412.15832, and Alet et al. (2025), arXiv 2506.10772 (weather ensembles by a
    net with noise trained on a fair score); Scheuerer and Hamill (2015), Mon. Weather Rev. 143,
    1321 (differences between points see what the energy score does not).

    Sizes, and what is raised, are those of `ResidualRefinement`.

    >>> Generative(factor=4).reach
    10
    """

    probabilistic: ClassVar[bool] = True

    def build(self, rngs: nnx.Rngs) -> "GenerativeNet":
        """Return the net with fresh weights."""
        return GenerativeNet(self, rngs)


class GenerativeNet(DepartureNet):
    """See `Generative`; its mean starts as (conservative) bicubic interpolation."""

    def __init__(self, config: Generative, rngs: nnx.Rngs):
        DepartureNet.__init__(self, config, rngs)
        self.scale = cell_net(config, rngs, blocks=1)

    def departures(self, known: Known, noise: Draws) -> Draws:
        """Return P (σ(coarse) g(coarse, z)) for each z."""
        factor, flat = self.config.factor, noise.reshape(-1, *noise.shape[2:])
        inputs = [jnp.tile(known, (len(noise), 1, 1, 1)), unshuffle(flat, factor)]
        scale = jnp.tile(positive(self.scale(known)), (len(noise), 1, 1, 1))
        departure = scale * self.departure(jnp.concatenate(inputs, axis=-1))
        return self.free(shuffle(departure, factor)).reshape(noise.shape)

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return ⟨(μ − fine)²⟩ and the fair scores of two draws about μ.

        Where the truth is not known, both draws are as what stands for it, and nothing is scored.
        """
        known = at_coarse(self.config, coarse, statics)
        mean = self.mean(coarse, statics)
        truth = filled(fine, mean)
        noise = flat(jax.random.normal, drawing(key), (2, *fine.shape))
        one, other = jax.lax.stop_gradient(mean) + self.departures(known, noise)
        judged = [jnp.where(jnp.isnan(fine), truth, draw) for draw in (one, other)]
        scores = []
        for side in sides(self.config.factor):
            seen = [aspects(block_mean(field, side)) for field in (*judged, truth)]
            scores += [fair_score(*alike) for alike in zip(*seen, strict=True)]
        return square_error(mean, fine) + sum(scores)

    @property
    def separable(self) -> bool:
        """Whether the loss of a batch is the mean of those of its samples: yes."""
        return True

    def drawn(self, coarse: Coarse, noise: Draws, statics: Ground = None) -> Draws:
        """Return μ + P (σ g(coarse, z)) for each z."""
        known = at_coarse(self.config, coarse, statics)
        return self.mean(coarse, statics) + self.departures(known, noise)


def sides(factor: int) -> list[int]:
    """Return the sides of squares between a fine point and a coarse cell: 1, 2 and 4 for 8."""
    return list(accumulate(primes(factor)[:-1], mul, initial=1))


def aspects(field: Float[Array, "*batch y x"]) -> list[Array]:
    """Return what is scored of a field: itself, its increments, and what each 2 × 2 points twist.

    The twist a − b − c + d is the pattern that all increments see beside a larger one only.
    """
    increments = [increment(field, *offset) for offset in OFFSETS]
    return [field, *increments, increment(increment(field, 0, 1), 1, 0)]


def increment(
    field: Float[Array, "*batch y x"], down: int, right: int
) -> Float[Array, "*batch y_less x_less"]:
    """Return the difference of points so many rows and columns apart, where there are both."""
    y, x = field.shape[-2:]
    ahead = field[..., down:, max(right, 0) : x + min(right, 0)]
    return ahead - field[..., : y - down, max(-right, 0) : x - max(right, 0)]


def fair_score(
    one: Float[Array, "batch wind y x"],
    other: Float[Array, "batch wind y x"],
    truth: Float[Array, "batch wind y x"],
) -> Scalar:
    """Return the mean fair energy score of two draws, |·| being the length over `wind`."""

    def length(vector: Float[Array, "batch wind y x"]) -> Scalar:
        return jnp.mean(jnp.sqrt(jnp.square(vector).sum(axis=1) + LEAST))

    return (length(one - truth) + length(other - truth) - length(one - other)) / 2
