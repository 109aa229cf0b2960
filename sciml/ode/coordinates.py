"""A prior's parameters as numbers without bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import StickBreakingTransform

from sciml.ode.prior import Corner, Prior, Truncated, parts, pieces, widths


@partial(jax.tree_util.register_dataclass, data_fields=["maps"], meta_fields=["widths"])
@dataclass(frozen=True)
class Coordinates:
    """θ(z) of a whole prior: the map of each distribution from z without bounds onto its support.

    A scalar θ is an increasing function of its own z: the exponential where θ > 0, a sigmoid
    between two bounds. Some parameters on a simplex share its pieces. A rule of `Truncated` is not
    mapped away: the density is 0 where it does not hold.
    """

    maps: tuple[Any, ...]
    widths: tuple[int, ...]

    @classmethod
    def of(cls, prior: Prior) -> "Coordinates":
        """Return the coordinates of a prior, in the order of its names."""
        return cls(tuple(mapped(each) for _, each in parts(prior)), widths(prior))

    def __call__(self, z: Float[Array, "*point param"]) -> Float[Array, "*point param"]:
        """Return θ(z)."""
        return self.together([m(x) for m, x in zip(self.maps, self.apart(z), strict=True)])

    def inv(self, theta: Float[Array, "*point param"]) -> Float[Array, "*point param"]:
        """Return z(θ)."""
        pairs = zip(self.maps, self.apart(theta), strict=True)
        return self.together([m.inv(value) for m, value in pairs])

    def log_slopes(self, z: Any, theta: Any) -> list[Float[Array, "*point"]]:
        """Return log |det dθ/dz| of each distribution."""
        each = zip(self.maps, self.apart(z), self.apart(theta), strict=True)
        return [m.log_abs_det_jacobian(x, value) for m, x, value in each]

    def log_abs_det_jacobian(self, z: Any, theta: Any) -> Float[Array, "*point"]:
        """Return log |det dθ/dz|."""
        return jnp.sum(jnp.stack(self.log_slopes(z, theta)), axis=0)

    def apart(self, values: Any) -> list[Any]:
        """Return the values of each distribution."""
        return pieces(self.widths, values)

    def together(self, values: Sequence[Any]) -> Any:
        """Return the values of all distributions."""
        pairs = zip(self.widths, values, strict=True)
        return jnp.concatenate([v if wide else v[..., None] for wide, v in pairs], axis=-1)


@jax.tree_util.register_static
@dataclass(frozen=True)
class Sticks:
    """Numbers without bounds ↦ the first components of a point of the simplex."""

    def __call__(self, z: Any) -> Any:
        """Return all components but the last."""
        return broken()(z)[..., :-1]

    def inv(self, theta: Any) -> Any:
        """Return where they come from."""
        return broken().inv(Corner.filled(theta))

    def log_abs_det_jacobian(self, z: Any, theta: Any) -> Any:
        """Return log |det dθ/dz|, which is of the first components alone."""
        return broken().log_abs_det_jacobian(z, Corner.filled(theta))


def broken() -> Any:
    """Return the map from numbers without bounds onto the simplex."""
    return StickBreakingTransform()


def mapped(distribution: Any) -> Any:
    """Return the map from numbers without bounds onto the support of one distribution."""
    if isinstance(distribution, Truncated):
        return Coordinates.of(distribution.base)
    return Sticks() if isinstance(distribution, Corner) else biject_to(distribution.support)
