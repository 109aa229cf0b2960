"""A generative net: noise becomes wind below the coarse grid along a learned flow."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml._random import flat
from sciml.models.shared.sizes import check_sizes
from sciml.models.shared.velocity import FREQUENCIES, even_times, integrate, time_features
from sciml.models.wind.drawing import DepartureNet, drawing
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
    unshuffle,
)
from sciml.models.wind.residual import reach_of
from sciml.models.wind.residual_refinement import ResidualRefinement


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

    >>> FlowRefinement(factor=4).reach_of_draws
    160
    """

    probabilistic: ClassVar[bool] = True

    steps: int = 4
    spread: float = 0.25

    def __post_init__(self):
        ResidualRefinement.__post_init__(self)
        check_sizes(self, steps=1)
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


class FlowRefinementNet(DepartureNet):
    """See `FlowRefinement`; its departure is the velocity v."""

    def __init__(self, config: FlowRefinement, rngs: nnx.Rngs):
        DepartureNet.__init__(self, config, rngs, conditions=1 + 2 * FREQUENCIES)

    def velocity(self, r: Fine, t: Float[Array, " batch"], known: Known) -> Fine:
        """Return v(r, t; coarse)."""
        inputs = jnp.concatenate([known, unshuffle(r, self.config.factor)], axis=-1)
        return self.free(shuffle(self.departure(inputs, time_features(t)), self.config.factor))

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return ⟨(μ − fine)²⟩ and ⟨(v(r(t), t) − (r − z))²⟩ at a random t and z per sample."""
        known = at_coarse(self.config, coarse, statics)
        mean = self.mean(coarse, statics)
        error = filled(fine, mean) - mean
        r = self.free(jax.lax.stop_gradient(error)) / self.config.spread
        noise_key, time_key = jax.random.split(drawing(key))
        z = self.free(flat(jax.random.normal, noise_key, r.shape))
        t = even_times(time_key, len(coarse))
        at = t[:, None, None, None]
        v = self.velocity((1 - at) * z + at * r, t, known)
        missed = jnp.where(jnp.isnan(fine), 0, v - (r - z))
        return jnp.mean(jnp.square(error)) + jnp.mean(jnp.square(missed))

    def drawn(self, coarse: Coarse, noise: Draws, statics: Ground = None) -> Draws:
        """Return μ + spread · r(1) for each r(0) = P z."""
        known = jnp.tile(at_coarse(self.config, coarse, statics), (len(noise), 1, 1, 1))
        z = self.free(noise.reshape(-1, *noise.shape[2:]))

        def slope(t, r):
            return self.velocity(r, jnp.full(len(r), t), known)

        r = integrate(slope, z, 0.0, 1.0, self.config.steps)
        return self.mean(coarse, statics) + self.config.spread * r.reshape(noise.shape)
