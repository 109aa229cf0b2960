"""Two moons: a crescent in the data makes two crescents in the posterior."""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from numpyro.distributions import Uniform

from sciml.ode.observe.level import Levelled
from sciml.ode.static import Static

TRUTH = (-0.8176656, -0.5756806)  # sourced: sbibm 1.1, observation 1


@dataclass(frozen=True)
class Crescent(Levelled):
    """x = (r cos a + offset − |θ₀ + θ₁|/√2, r sin a + (θ₁ − θ₀)/√2), a half ring at random.

    a ~ U(−π/2, π/2), r ~ N(radius, spread²).

    >>> from sciml.ode import Crescent
    >>> Crescent(radius=0.2).radius
    0.2
    """

    radius: float = 0.1  # sourced: arXiv 2101.04653, task T.8
    spread: float = 0.01  # sourced: as radius
    offset: float = 0.25  # sourced: as radius
    estimate: ClassVar[bool] = False

    def centre(self, parameters: Float[Array, "*sample 2"]) -> Float[Array, "*sample 2"]:
        """Return the centre of the ring of each θ."""
        first, second = parameters[..., 0], parameters[..., 1]
        across = self.offset - jnp.abs(first + second) / math.sqrt(2)
        return jnp.stack([across, (second - first) / math.sqrt(2)], axis=-1)

    def apply(
        self, key: Key[Array, ""], clean: Float[Array, "sample 2"], levels: dict
    ) -> Float[Array, "sample 2"]:
        """Return one point of the half ring of each θ."""
        del levels
        angles, radii = jax.random.split(key)
        a = jax.random.uniform(angles, clean.shape[:1], clean.dtype, -math.pi / 2, math.pi / 2)
        r = self.radius + self.spread * jax.random.normal(radii, clean.shape[:1], clean.dtype)
        return self.centre(clean) + jnp.stack([r * jnp.cos(a), r * jnp.sin(a)], axis=-1)


def two_moons() -> Static:
    """Return the task whose posterior has two crescents.

    θ₀, θ₁ ~ U(−1, 1); the observation is a random point of a half ring, see `Crescent`. Since
    only |θ₀ + θ₁| enters, the posterior is symmetric about the line θ₀ + θ₁ = 0.

    Source: Lueckmann et al., "Benchmarking Simulation-Based Inference", arXiv 2101.04653,
    task T.8; Greenberg et al., 2019.

    >>> two_moons().features
    2
    """
    return Static(
        name="two_moons",
        prior={"theta0": Uniform(-1.0, 1.0), "theta1": Uniform(-1.0, 1.0)},
        features=2,
        noise=Crescent(),
        reference="Lueckmann et al., arXiv 2101.04653",
    )
