"""A net that finds the hours between: fields of wind in time, on the grid that they have."""

from dataclasses import dataclass

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.sizes import check_sizes
from sciml.models.wind.locally_scaled import scaled
from sciml.models.wind.refinement import Ground, check_statics
from sciml.models.wind.residual import ResidualNet, reach_of

Ends = Float[Array, "batch end wind y x"]
Hours = Float[Array, "batch hour wind y x"]


@dataclass(frozen=True)
class Between:
    """A net for the `steps` − 1 fields between two that are `steps` apart.

        w(k) = (1 − k/n) w(0) + (k/n) w(n) + s · g_k((w(0) − m)/s, (w(n) − m)/s, m, statics)

    m and s are the mean and the standard deviation of both ends within `window` points: what
    changes is seen in units of its own size, and beside it the wind that carries it. g has residual
    blocks of 3 × 3 convolutions whose last layer starts at zero: training begins at linear
    interpolation.

    Args:
        steps: fields per known one.
        channels: width of the hidden layers.
        blocks: residual blocks, of two 3 × 3 convolutions each.
        wind: channels of wind, in and out.
        statics: channels of fields that do not change, as terrain.
        window: points along each side of the square around a point; odd.

    Raises:
        ValueError: a size is not a positive integer, `steps` is below 2, or the window even.
    """

    steps: int = 4
    channels: int = 32
    blocks: int = 4
    wind: int = 2
    statics: int = 0
    window: int = 15

    def __post_init__(self):
        check_sizes(self, steps=2, channels=1, blocks=1, wind=1, statics=0, window=3)
        if self.window % 2 == 0:
            raise ValueError(f"Between.window is {self.window}; it must be odd: pass 15")

    @property
    def reach(self) -> int:
        """Points to each side on which a point depends."""
        return reach_of(self.blocks) + self.window // 2

    def build(self, rngs: nnx.Rngs) -> "BetweenNet":
        """Return the net with fresh weights."""
        return BetweenNet(self, rngs)


class BetweenNet(nnx.Module):
    """See `Between`."""

    def __init__(self, config: Between, rngs: nnx.Rngs):
        self.config = config
        self.net = ResidualNet(
            3 * config.wind + config.statics,
            (config.steps - 1) * config.wind,
            rngs,
            channels=config.channels,
            blocks=config.blocks,
        )

    def __call__(self, ends: Ends, statics: Ground = None) -> Hours:
        """Return the fields between the two ends, which are normalised alike."""
        check_statics(self.config, statics)
        batch, _, wind, y, x = ends.shape
        average = ends.mean(axis=1)
        about, unit = scaled(average, self.config.window)
        middle = average - unit * about
        _, scale = scaled(ends.reshape(batch, 2 * wind, y, x), self.config.window)
        seen = ((ends - middle[:, None]) / scale[:, None]).reshape(batch, 2 * wind, y, x)
        inputs = jnp.concatenate([seen, middle], axis=1)
        known = inputs if statics is None else jnp.concatenate([inputs, statics], axis=1)
        found = self.net(known.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        change = scale[:, None] * found.reshape(batch, self.config.steps - 1, wind, y, x)
        return linear(ends, self.config.steps) + change


def linear(ends: Ends, steps: int) -> Hours:
    """Return linear interpolation in time between two fields."""
    share = (jnp.arange(1, steps) / steps)[:, None, None, None]
    return (1 - share) * ends[:, :1] + share * ends[:, 1:]
