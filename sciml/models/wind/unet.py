"""A U-Net whose levels are the scales between the fine and the coarse grid."""

from dataclasses import dataclass
from itertools import pairwise

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.wind.refinement import (
    CUBIC,
    Coarse,
    Fine,
    Ground,
    RefinementNet,
    at_fine,
    refined,
)
from sciml.models.wind.residual import Block
from sciml.models.wind.residual_refinement import ResidualRefinement
from sciml.models.wind.square_convolution import Conv, Image


@dataclass(frozen=True)
class UNet(ResidualRefinement):
    """From the fine grid down to the coarse one and back, with a sum across at each level.

    The levels are the prime factors of `factor`: each pools that many points a side and doubles the
    channels, so that the lowest level is the coarse grid itself. Hence a field of any size goes in,
    without padding, and a shift by one coarse cell shifts the output: tiles may be cut anywhere. On
    the lowest level are `blocks` residual blocks, on the others one down and one up.

    References: Ronneberger et al. (2015), arXiv 1505.04597; Lim et al. (2017), arXiv 1707.02921
    (residual blocks without normalisation).

    Sizes, and what is raised, are those of `ResidualRefinement`: `channels` is the width on the
    fine grid, `blocks` counts residual blocks on the coarse grid.

    >>> UNet(factor=6, channels=8).widths
    [8, 16, 32]
    """

    channels: int = 16
    blocks: int = 2

    @property
    def widths(self) -> list[int]:
        """Channels of each level, from fine to coarse."""
        return [self.channels * 2**level for level in range(len(primes(self.factor)) + 1)]

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point depends."""
        side = 1  # the first and the last convolution; then a block of two on each level
        for pool in primes(self.factor):
            side = -(-(side + 2) // pool)
        return 2 * side + 2 * self.blocks + CUBIC

    def build(self, rngs: nnx.Rngs) -> "UNetNet":
        """Return the net with fresh weights."""
        return UNetNet(self, rngs)


class UNetNet(RefinementNet):
    """See `UNet`; it starts as (conservative) bicubic interpolation."""

    def __init__(self, config: UNet, rngs: nnx.Rngs):
        self.config = config
        *upper, lowest = widths = config.widths
        self.head = Conv(config.wind + config.beside + config.statics, widths[0], rngs)
        self.down = nnx.List([Block(width, rngs) for width in upper])
        self.widen = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in pairwise(widths)])
        self.lowest = nnx.List([Block(lowest, rngs) for _ in range(config.blocks)])
        self.narrow = nnx.List([nnx.Linear(b, a, rngs=rngs) for a, b in pairwise(widths)])
        self.up = nnx.List([Block(width, rngs) for width in upper])
        self.tail = Conv(widths[0], config.wind, rngs, gain=0.0)

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the fine field of each coarse one, both normalised alike."""
        pools = primes(self.config.factor)
        hidden, across = self.head(at_fine(self.config, coarse, statics)), []
        for pool, block, widen in zip(pools, self.down, self.widen, strict=True):
            hidden = block(hidden)
            across.append(hidden)
            hidden = widen(pooled(hidden, pool))
        for block in self.lowest:
            hidden = block(hidden)
        levels = list(zip(pools, self.narrow, self.up, across, strict=True))
        for pool, narrow, block, level in reversed(levels):
            hidden = block(level + repeated(narrow(hidden), pool))
        return refined(self.config, coarse, self.tail(hidden).transpose(0, 3, 1, 2))


def primes(factor: int) -> list[int]:
    """Return the prime factors, ascending, each as often as it divides."""
    found, prime = [], 2
    while factor > 1:
        while factor % prime == 0:
            found.append(prime)
            factor //= prime
        prime += 1
    return found


def pooled(x: Image, side: int) -> Float[Array, "batch y_lo x_lo in"]:
    """Return the mean of each square of points."""
    batch, y, x_, channels = x.shape
    return x.reshape(batch, y // side, side, x_ // side, side, channels).mean(axis=(2, 4))


def repeated(x: Image, side: int) -> Float[Array, "batch y_hi x_hi in"]:
    """Give each point of a square the value of the square."""
    return jnp.repeat(jnp.repeat(x, side, axis=1), side, axis=2)
