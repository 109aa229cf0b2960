"""A generative net: noise becomes wind below the coarse grid along a learned flow."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.flow_matching import FREQUENCIES, integrate, time_features
from sciml.models.noise import Corner, cell_noise, drawing
from sciml.models.refinement import (
    Coarse,
    Draws,
    Fine,
    Known,
    RefinementNet,
    Scalar,
    Statics,
    at_coarse,
    check_refinement,
    shuffle,
    unshuffle,
    without_means,
)
from sciml.models.residual import ResidualNet, reach_of
from sciml.models.residual_refinement import ResidualRefinement
from sciml.models.super_resolution import mean_net


@dataclass(frozen=True)
class FlowRefinement(ResidualRefinement):
    """Draws fine = μ(coarse) + spread · r(1), with dr/dt = v(r, t; coarse) and r(0) ~ N(0, 1).

    μ, the estimate, is trained on its squared error, the flow without integration: with the true
    r = (fine − μ) / spread, z ~ N(0, 1), t ~ U(0, 1) and r(t) = (1 − t) z + t r it minimises
    |v(r(t), t) − (r − z)|². Noise, flow and residual have no block means if `conservative`, so each
    draw keeps those of its input.

    References: Lipman et al., arXiv 2210.02747 (flow matching); Mardani et al. (2025), arXiv
    2309.15214 (a net for the mean and a generated residual, for kilometre-scale weather).

    Args:
        factor, channels, blocks, conservative, wind, statics: as of `ResidualRefinement`.
        steps: of the classical Runge-Kutta method from noise to wind, of four evaluations each.
        spread: about the standard deviation of the residual, in the unit of the fields.

    Raises:
        ValueError: a size is not a positive integer, the factor below 2 or the spread not positive.
    """

    probabilistic: ClassVar[bool] = True

    steps: int = 4
    spread: float = 0.25

    def __post_init__(self):
        """Check every value."""
        check_refinement(self, channels=1, blocks=1, steps=1)
        if not self.spread > 0:
            raise ValueError(
                f"FlowRefinement.spread is {self.spread}; it must be positive: the standard "
                "deviation of the subgrid wind, 0.25 for fields of unit variance"
            )

    @property
    def reach_of_draws(self) -> int:
        """Coarse points on which a draw depends: every evaluation looks `reach` further."""
        return 4 * self.steps * reach_of(self.blocks)

    def build(self, rngs: nnx.Rngs) -> "FlowRefinementNet":
        """Return the net with fresh weights."""
        return FlowRefinementNet(self, rngs)


class FlowRefinementNet(RefinementNet):
    """See `FlowRefinement`."""

    def __init__(self, config: FlowRefinement, rngs: nnx.Rngs):
        """Draw the weights."""
        self.config = config
        cell = config.factor**2
        self.mean = mean_net(config, rngs)
        self.flow = ResidualNet(
            config.wind + (config.statics + config.wind) * cell,
            config.wind * cell,
            rngs,
            channels=config.channels,
            blocks=config.blocks,
            conditions=1 + 2 * FREQUENCIES,
        )

    def __call__(self, coarse: Coarse, statics: Statics | None = None) -> Fine:
        """Return the mean of the draws."""
        return self.mean(coarse, statics)

    def velocity(self, r: Fine, t: Float[Array, " batch"], known: Known) -> Fine:
        """Return v(r, t; coarse)."""
        inputs = jnp.concatenate([known, unshuffle(r, self.config.factor)], axis=-1)
        return self.free(shuffle(self.flow(inputs, time_features(t)), self.config.factor))

    def free(self, field: Float[Array, "*lead y x"]) -> Float[Array, "*lead y x"]:
        """Return the part of a field that the coarse field leaves free."""
        return without_means(field, self.config.factor) if self.config.conservative else field

    def loss(
        self,
        coarse: Coarse,
        fine: Fine,
        statics: Statics | None = None,
        key: Key[Array, ""] | None = None,
    ) -> Scalar:
        """Return ⟨(μ − fine)²⟩ and ⟨(v(r(t), t) − (r − z))²⟩ at a random t and z per sample.

        Raises:
            ValueError: there is no key.
        """
        known = at_coarse(self.config, coarse, statics)
        error = fine - self.mean(coarse, statics)
        r = self.free(jax.lax.stop_gradient(error)) / self.config.spread
        noise_key, time_key = jax.random.split(drawing(key))
        z = self.free(jax.random.normal(noise_key, r.shape))
        # Times spread evenly over the batch: the same expectation with less variance.
        batch = len(coarse)
        t = (jax.random.uniform(time_key) + jnp.arange(batch) / batch) % 1.0
        at = t[:, None, None, None]
        v = self.velocity((1 - at) * z + at * r, t, known)
        return jnp.mean(jnp.square(error)) + jnp.mean(jnp.square(v - (r - z)))

    def sample(
        self,
        coarse: Coarse,
        key: Key[Array, ""],
        draws: int,
        statics: Statics | None = None,
        *,
        corner: Corner = (0, 0),
    ) -> Draws:
        """Draw fine fields.

        Noise belongs to the coarse cell at `corner` + (row, column), so that tiles of a domain draw
        the same wind where they overlap.
        """
        batch, wind, y, x = coarse.shape
        repeated = jnp.tile(at_coarse(self.config, coarse, statics), (draws, 1, 1, 1))
        z = cell_noise(key, (draws * batch, wind, y, x), self.config.factor, corner)

        def slope(t, r):
            return self.velocity(r, jnp.full(len(r), t), repeated)

        r = integrate(slope, self.free(z), 0.0, 1.0, self.config.steps)
        r = r.reshape(draws, batch, wind, *r.shape[-2:])
        return self.mean(coarse, statics) + self.config.spread * r
