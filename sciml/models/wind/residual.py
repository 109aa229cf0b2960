"""A residual net of 3 × 3 convolutions, without normalisation: fields keep their amplitude."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.linear import zero_linear
from sciml.models.wind.square_convolution import Change, Conv, Image

Condition = Float[Array, "batch condition"]


class Block(nnx.Module):
    """x + conv(relu(a · conv(x) + b)), with a = 1 and b = 0 unless a condition shifts them."""

    def __init__(self, channels: int, rngs: nnx.Rngs, *, conditions: int = 0):
        """Make the branch small at first, so that the sum of many blocks stays bounded."""
        self.first = Conv(channels, channels, rngs)
        self.second = Conv(channels, channels, rngs, gain=0.1)
        self.film = zero_linear(conditions, 2 * channels, rngs) if conditions else None

    def __call__(self, x: Image, condition: Condition | None = None) -> Image:
        """Add the branch."""
        hidden = self.first(x)
        if self.film is not None and condition is not None:
            change, shift = jnp.split(self.film(condition)[:, None, None], 2, axis=-1)
            hidden = hidden * (1 + change) + shift
        return x + self.second(nnx.relu(hidden))


class ResidualNet(nnx.Module):
    """conv, `blocks` residual blocks, conv; the last layer starts at zero.

    A point depends on 2 · blocks + 2 points to each side. With `conditions` numbers per sample,
    such as a time or a scale, each block's hidden layer is scaled and shifted by them.

    References: Lim et al. (2017), arXiv 1707.02921 (residual blocks without normalisation); Perez
    et al. (2018), arXiv 1709.07871 (conditions that scale and shift).
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        rngs: nnx.Rngs,
        *,
        channels: int,
        blocks: int,
        conditions: int = 0,
    ):
        self.head = Conv(inputs, channels, rngs)
        self.blocks = nnx.List(
            [Block(channels, rngs, conditions=conditions) for _ in range(blocks)]
        )
        self.tail = Conv(channels, outputs, rngs, gain=0.0)

    def __call__(self, x: Image, condition: Condition | None = None) -> Change:
        """Return the outputs at every point."""
        hidden = self.head(x)
        for block in self.blocks:
            hidden = block(hidden, condition)
        return self.tail(hidden)


def reach_of(blocks: int) -> int:
    """Return how many points to each side a `ResidualNet` looks."""
    return 2 * blocks + 2
