"""Measurement noise."""

from dataclasses import asdict, dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


@dataclass(frozen=True)
class AR1:
    """Stationary autoregressive noise of first order.

    x_t = φ x_{t−1} + sd √(1 − φ²) ε_t,  ε ~ N(0, 1),  x_0 ~ N(0, sd²)

    `sd` is the marginal standard deviation, the same at all times; it has no default, since the
    level of the published data is not certain: its files name φ ≈ 0.8 and "stddev" ≈ 0.07, while
    the published errors fit a marginal sd near 0.3. `correlation` is φ, from one sample to the
    next, whatever the time between them.

    Raises:
        ValueError: sd is negative or |φ| is not below 1.
    """

    sd: float
    correlation: float = 0.8  # derived: mean of the published correlations is 0.801

    def __post_init__(self):
        """Check both values."""
        if not self.sd >= 0:
            raise ValueError(f"AR1.sd is {self.sd}; a standard deviation must be 0 or more")
        if not abs(self.correlation) < 1:
            raise ValueError(f"AR1.correlation is {self.correlation}; it must lie in (−1, 1)")

    def sample(self, key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "*batch time"]:
        """Draw noise along the last axis, by doubling: log2(time) vectorised passes.

        After pass k each value holds the terms of the sum Σ_j φ^j e_{t−j} with j < 2^(k+1).
        """
        draws = jax.random.normal(key, shape)
        noise = draws.at[..., 1:].multiply(jnp.sqrt(1 - self.correlation**2))
        lag = 1
        while lag < shape[-1]:
            earlier = jnp.pad(noise[..., :-lag], [(0, 0)] * (len(shape) - 1) + [(lag, 0)])
            noise = noise + self.correlation**lag * earlier
            lag *= 2
        return self.sd * noise

    def describe(self) -> dict[str, float | str]:
        """Return what a file must say of this noise."""
        return {"kind": "AR1", **asdict(self)}
