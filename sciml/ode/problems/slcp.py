"""Simple likelihood, complex posterior: four draws of a normal pair whose covariance is sought."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from numpyro.distributions import Uniform

from sciml.ode.observe.level import Levelled
from sciml.ode.static import Static

# Sourced: sbibm 1.1, observation 1.
TRUTH = (-2.8581212, -0.44451332, 2.9473476, 1.2396116, 2.9712725)


@dataclass(frozen=True)
class NormalPairs(Levelled):
    """Draw `pairs` points of N(m_θ, S_θ) in the plane.

    m = (θ₀, θ₁), standard deviations s₁ = θ₂² and s₂ = θ₃², correlation tanh θ₄; `floor` is
    added to both variances, so that S has an inverse.

    >>> from sciml.ode import NormalPairs
    >>> NormalPairs(pairs=2).pairs
    2
    """

    pairs: int = 4  # sourced: arXiv 2101.04653, task T.3
    floor: float = 1e-6  # sourced: code of sbibm 1.1
    estimate: ClassVar[bool] = False

    def cholesky(self, parameters: Float[Array, "*sample 5"]):
        """Return (l₁₁, l₂₁, l₂₂) of the lower triangle L with L Lᵀ = S."""
        s1, s2 = parameters[..., 2] ** 2, parameters[..., 3] ** 2
        rho = jnp.tanh(parameters[..., 4])
        first = jnp.sqrt(s1**2 + self.floor)
        below = rho * s1 * s2 / first
        # s₂² + floor − below², without the difference of nearly equal numbers
        rest = s2**2 * (1 - rho**2 + rho**2 * self.floor / first**2) + self.floor
        return first, below, jnp.sqrt(rest)

    def apply(
        self, key: Key[Array, ""], clean: Float[Array, "sample 5"], levels: dict
    ) -> Float[Array, "sample feature"]:
        """Return the points of each θ, one after the other."""
        del levels
        shape = (len(clean), self.pairs)
        e1, e2 = jax.random.normal(key, (2, *shape), clean.dtype)
        first, below, last = (x[:, None] for x in self.cholesky(clean))
        points = [clean[:, :1] + first * e1, clean[:, 1:2] + below * e1 + last * e2]
        return jnp.stack(points, axis=-1).reshape(len(clean), 2 * self.pairs)


def slcp() -> Static:
    """Return the task of a simple likelihood with a complex posterior.

    θ ~ U(−3, 3)⁵; four points of the plane are drawn from N(m_θ, S_θ), see `NormalPairs`. The
    signs of θ₂ and θ₃ do not matter: the posterior has four symmetric modes.

    Source: Lueckmann et al., "Benchmarking Simulation-Based Inference", arXiv 2101.04653,
    task T.3; Papamakarios, Sterratt, Murray, 2019.

    >>> slcp().features
    8
    """
    return Static(
        name="slcp",
        prior={f"theta{i}": Uniform(-3.0, 3.0) for i in range(5)},
        features=8,
        noise=NormalPairs(),
        reference="Lueckmann et al., arXiv 2101.04653",
    )
