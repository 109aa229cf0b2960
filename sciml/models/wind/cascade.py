"""One net for many factors: a step that halves the spacing, taken as often as needed."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.sizes import check_sizes
from sciml.models.wind.refinement import (
    Coarse,
    Fine,
    Ground,
    RefinementNet,
    Scalar,
    Seed,
    at_coarse,
    check_statics,
    refined,
    shuffle,
    square_error,
)
from sciml.models.wind.residual import reach_of
from sciml.models.wind.residual_refinement import ResidualRefinement, cell_net
from sciml.wind.prepare.coarsen import block_mean, pair_known, spread
from sciml.wind.prepare.upsample import bicubic


@dataclass(frozen=True)
class Cascade(ResidualRefinement):
    """A net that is scale-aware: the same weights refine by 2, 4, … up to `factor`.

    One step doubles the resolution: fine = bicubic(coarse) + shuffle(net(coarse, statics; s)). Of s
    the net learns how far from the fine grid the step is, and how many steps were taken before it
    (its input is smoother after each). Every step keeps the means of its own input, so any number
    does. Static fields enter each step averaged to the grid that it makes. Training deals a batch
    out over the factors and counts each factor against the error of interpolation.

    References: Lai et al. (2017), arXiv 1704.03915 (steps of two with shared weights); Bessac et
    al. (2021), JAMES, 10.1029/2020MS002367 (subgrid wind wants one model for all resolutions).

    Args:
        factor: by which it refines where nothing else is said, a power of 2.
        channels, blocks, conservative, wind, statics: of a step, as of `ResidualRefinement`.
        largest: the largest factor that is learned; None: `factor`.

    Raises:
        ValueError: a size is not a positive integer, or a factor is no power of 2.

    >>> Cascade(factor=16).factors
    [2, 4, 8, 16]
    """

    factor: int = 16
    channels: int = 24
    blocks: int = 3
    largest: int | None = None

    def __post_init__(self):
        ResidualRefinement.__post_init__(self)
        if self.beside:
            raise ValueError(
                f"Cascade.beside is {self.beside}; its later steps have no such fields: take "
                "another net, as SuperResolution"
            )
        if self.largest is not None:
            check_sizes(self, largest=2)
        steps_to(self.top, self.top)
        steps_to(self.factor, self.top)

    @property
    def top(self) -> int:
        """The largest factor."""
        return self.factor if self.largest is None else self.largest

    @property
    def factors(self) -> list[int]:
        """All factors, ascending."""
        return [2**step for step in range(1, self.top.bit_length())]

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point depends."""
        return self.reach_at(self.factor)

    def at(self, factor: int) -> "Cascade":
        """Return the configuration of the same net with another factor to refine by.

        Raises:
            ValueError: it is no power of 2, or larger than the largest.
        """
        return replace(self, factor=factor, largest=self.top)

    def reach_at(self, factor: int) -> int:
        """Return the reach for one of the factors."""
        side = 0
        for _ in range(steps_to(factor, self.top)):
            side = -(-side // 2) + reach_of(self.blocks)
        return side

    def build(self, rngs: nnx.Rngs) -> "CascadeNet":
        """Return the net with fresh weights."""
        return CascadeNet(self, rngs)


class CascadeNet(RefinementNet):
    """See `Cascade`; every factor starts as steps of (conservative) bicubic interpolation."""

    def __init__(self, config: Cascade, rngs: nnx.Rngs):
        self.config = config
        self.net = cell_net(config.at(2), rngs, conditions=2 * len(config.factors))

    def __call__(self, coarse: Coarse, statics: Ground = None, factor: int | None = None) -> Fine:
        """Return the fine field of each coarse one, `factor` being a power of 2 up to the net's."""
        check_statics(self.config, statics)
        steps = steps_to(self.config.factor if factor is None else factor, self.config.top)
        wind = coarse
        for done in range(steps):
            left = steps - done - 1
            known = None if statics is None else block_mean(statics, 2**left)
            wind = self.step(wind, known, left, done)
        return wind

    def step(
        self,
        coarse: Coarse,
        statics: Float[Array, "batch statics y_hi x_hi"] | None,
        left: int,
        done: int,
    ) -> Float[Array, "batch wind y_hi x_hi"]:
        """Halve the spacing once, with `left` steps to go after it and `done` before it."""
        scales = len(self.config.factors)
        place = jnp.concatenate([jax.nn.one_hot(left, scales), jax.nn.one_hot(done, scales)])
        half = self.config.at(2)
        inputs = at_coarse(half, coarse, statics)
        residual = self.net(inputs, jnp.broadcast_to(place, (len(coarse), 2 * scales)))
        return refined(half, coarse, shuffle(residual, 2))

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return the mean over all factors of ⟨(net − fine)²⟩ / ⟨(bicubic − fine)²⟩.

        Each sample is refined by one of the factors, in turn; by all of them in a batch that is too
        small for that. Coarse fields of the smaller factors are block means of the fine ones.
        """
        del key
        ratios, turns = [], len(self.config.factors)
        for turn, factor in enumerate(self.config.factors):
            part = slice(turn, None, turns) if len(fine) >= turns else slice(None)
            truth, known = fine[part], None if statics is None else statics[part]
            wind = coarse[part]
            if factor != self.config.factor:
                means, truth = pair_known(truth, factor)
                beside = spread(wind, self.config.factor // factor)
                wind = jnp.where(jnp.isnan(means), beside, means)
            error = square_error(self(wind, known, factor), truth)
            plain = square_error(bicubic(wind, factor), truth)
            ratios.append(error / jnp.maximum(plain, jnp.finfo(plain.dtype).tiny))
        return jnp.mean(jnp.stack(ratios))


def steps_to(factor: int, largest: int) -> int:
    """Return log₂ of a factor."""
    steps = factor.bit_length() - 1
    if factor != 2**steps or not 2 <= factor <= largest:
        raise ValueError(
            f"factor is {factor}; a Cascade takes steps of two, up to {largest} here: pass a power "
            "of 2, or Cascade(factor=…) with a larger one"
        )
    return steps
