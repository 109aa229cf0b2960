"""Values that a measurement failed to take."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key
from numpyro.distributions import Distribution

from sciml._random import flat
from sciml.ode.observe import level
from sciml.ode.observe.level import Levels
from sciml.ode.observe.noise import Noise, check_noise
from sciml.ode.prior import draws


@dataclass(frozen=True)
class Missing:
    """Another noise, after which a random share of the values is missing: NaN.

    Every value is missing with the probability `fraction`, a number or a distribution from which
    every sample draws its own; the value that is luckiest in a sample stays in any case, so that
    no series is empty. `noise` comes first; None adds nothing.

    The fraction is no level to estimate, since the values that are there tell it.

    Raises:
        ValueError: the fraction reaches outside [0, 1].

    >>> from sciml.ode import Gaussian
    >>> Missing(Gaussian(sd=0.1), 0.2).describe()['fraction']
    0.2
    """

    noise: Noise | None
    fraction: float | Distribution

    def __post_init__(self):
        check_noise(self.noise)
        level.check(self, "fraction", 0.0, 1.0)

    @property
    def shares(self) -> dict[str, Distribution]:
        """The distribution of the fraction, if it has one."""
        return level.sampled({"fraction": self.fraction})

    @property
    def estimate(self) -> bool:
        """Whether the levels of the noise beneath are to be estimated."""
        return self.noise is not None and self.noise.estimate

    @property
    def prior(self) -> dict[str, Distribution]:
        """The sampled levels of the noise beneath."""
        return self.noise.prior if self.noise else {}

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return the measurement, NaN where it is missing."""
        for_noise, for_fraction, for_values = jax.random.split(key, 3)
        seen = self.noise.apply(for_noise, clean, levels) if self.noise else jnp.asarray(clean)
        drawn = draws(self.shares, len(seen), for_fraction)
        fraction = level.value(self, "fraction", drawn, seen)
        luck = flat(jax.random.uniform, for_values, seen.shape)
        luckiest = luck == luck.max(axis=tuple(range(1, seen.ndim)), keepdims=True)
        return jnp.where((luck < fraction) & ~luckiest, jnp.nan, seen)

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this noise."""
        beneath = self.noise.describe() if self.noise else None
        return {"kind": "Missing", "noise": beneath, "fraction": level.told(self.fraction)}
