"""A net that sees wind relative to what is around it: the same storm, stronger, is the same."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import lax
from jaxtyping import Array, Float

from sciml.models.shared.sizes import check_sizes
from sciml.models.wind.drawing import DrawingNet
from sciml.models.wind.refinement import Coarse, Draws, Fine, Ground, Scalar, Seed, square_error
from sciml.wind.prepare.coarsen import spread
from sciml.wind.prepare.upsample import bicubic, conservative_bicubic

LEAST = 0.05  # of the training set's standard deviation: what is calmer is noise (calibrated)


@dataclass(frozen=True)
class LocallyScaled:
    """What `net` adds to interpolation, learned in units of the wind's local variation.

    With m, s the mean and standard deviation of the coarse wind c within `window` coarse points,

        fine = I(c) + s · (net((c − m)/s) − I((c − m)/s))

    where I is bicubic interpolation, (conservative if `net` is), and s is constant in each coarse
    cell, so block means are kept. Multiplying the wind or adding to it then changes nothing but
    the scale: f(a c + b) = a f(c) + b. Nets of few data carry over to other weather better so.

    Args:
        net: a configuration of a net that refines.
        window: coarse points along each side of the square around a point; odd.

    Raises:
        ValueError: the window is not an odd number of at least 3, or `net` is itself one of these.

    >>> from sciml.models import SuperResolution
    >>> LocallyScaled(SuperResolution(factor=4), window=7).reach
    13
    """

    net: Any
    window: int = 7

    def __post_init__(self):
        """Check the window and what it is put around."""
        check_sizes(self, window=3)
        if self.window % 2 == 0:
            raise ValueError(f"LocallyScaled.window is {self.window}; it must be odd: pass 7")
        if isinstance(self.net, LocallyScaled):
            raise ValueError(f"LocallyScaled.net is {self.net!r}; scale once")

    probabilistic = property(lambda self: self.net.probabilistic, doc="Whether the net draws.")
    factor = property(lambda self: self.net.factor, doc="Fine points per coarse point, each way.")
    wind = property(lambda self: self.net.wind, doc="Channels of wind, in and out.")
    statics = property(lambda self: self.net.statics, doc="Channels known on the fine grid.")
    beside = property(lambda self: self.net.beside, doc="Channels known beside the coarse wind.")
    conservative = property(lambda self: self.net.conservative, doc="Whether block means are kept.")

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point depends."""
        return self.net.reach + self.window // 2

    @property
    def reach_of_draws(self) -> int:
        """Coarse points to each side on which a draw depends."""
        return getattr(self.net, "reach_of_draws", self.net.reach) + self.window // 2

    def build(self, rngs: nnx.Rngs) -> "LocallyScaledNet":
        """Return the net with fresh weights."""
        return LocallyScaledNet(self, rngs)


class LocallyScaledNet(DrawingNet):
    """See `LocallyScaled`; it draws if the net inside does."""

    def __init__(self, config: LocallyScaled, rngs: nnx.Rngs):
        self.config = config
        self.net = config.net.build(rngs)

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the fine field of each coarse one, both normalised alike."""
        seen, scale = self.scaled(coarse)
        return self.physical(coarse, seen, scale, self.net(seen, statics))

    def scaled(self, coarse: Coarse) -> tuple[Coarse, Float[Array, "batch 1 y_lo x_lo"]]:
        """Return the coarse wind in local units, what is beside it as it is, and the unit."""
        wind, beside = jnp.split(coarse, [self.config.wind], axis=1)
        seen, scale = scaled(wind, self.config.window)
        return jnp.concatenate([seen, beside], axis=1), scale

    def interpolated(self, coarse: Coarse) -> Fine:
        """Return I(coarse) of the wind."""
        method = conservative_bicubic if self.config.conservative else bicubic
        return method(coarse[:, : self.config.wind], self.config.factor)

    def physical(
        self, coarse: Coarse, seen: Coarse, scale: Float[Array, "batch 1 y_lo x_lo"], fine: Any
    ) -> Any:
        """Return I(c) + s (fine − I(seen)), for one field or draws of each coarse one."""
        added = fine - self.interpolated(seen)
        return self.interpolated(coarse) + spread(scale, self.config.factor) * added

    def loss(self, coarse: Coarse, fine: Fine, statics: Ground = None, key: Seed = None) -> Scalar:
        """Return the plain squared error; of nets that draw, their own loss in local units."""
        if not self.config.probabilistic:
            return square_error(self(coarse, statics), fine)
        seen, scale = self.scaled(coarse)
        added = (fine - self.interpolated(coarse)) / spread(scale, self.config.factor)
        return self.net.loss(seen, self.interpolated(seen) + added, statics, key)

    @property
    def separable(self) -> bool:
        """Whether the loss of a batch is the mean of those of its samples."""
        return self.net.separable if self.config.probabilistic else True

    def drawn(self, coarse: Coarse, noise: Draws, statics: Ground = None) -> Draws:
        """Return what the net inside draws, in local units."""
        seen, scale = self.scaled(coarse)
        return self.physical(coarse, seen, scale, self.net.drawn(seen, noise, statics))


def scaled(coarse: Coarse, window: int) -> tuple[Coarse, Float[Array, "batch 1 y_lo x_lo"]]:
    """Return (c − m)/s and s, which is common to all channels; beyond the edges is nothing."""

    def mean(field: Float[Array, "batch some y_lo x_lo"]) -> Float[Array, "batch some y_lo x_lo"]:
        def total(f):
            return lax.reduce_window(f, 0.0, lax.add, (1, 1, window, window), (1,) * 4, "SAME")

        return total(field) / total(jnp.ones_like(field[:1, :1]) + 0 * field[:1, :1])

    middle = mean(coarse)
    square = mean(jnp.square(coarse).mean(axis=1, keepdims=True))
    variance = square - jnp.square(middle).mean(axis=1, keepdims=True)
    scale = jnp.sqrt(jnp.maximum(variance, 0.0) + LEAST**2)
    return (coarse - middle) / scale, scale
