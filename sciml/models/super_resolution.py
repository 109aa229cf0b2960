"""Super-resolution: a residual net at coarse resolution and one sub-pixel upsampling."""

from dataclasses import dataclass

from flax import nnx
from jaxtyping import Array, Float

from sciml.models.convolution import Conv, Image
from sciml.models.sizes import check_sizes
from sciml.wind.coarsen import restore_means
from sciml.wind.upsample import bicubic


@dataclass(frozen=True)
class SuperResolution:
    """A net that refines a field by `factor` in both directions.

    Good values: the defaults (79,000 weights) for a few dozen fields; more channels before more
    blocks when there are more.

    Args:
        factor: fine points per coarse point, in each direction.
        channels: width of the hidden layers.
        blocks: residual blocks, of two 3 × 3 convolutions each.
        conservative: whether block means of the output equal the input exactly.

    Raises:
        ValueError: a size is not a positive integer, or the factor is below 2.
    """

    factor: int = 4
    channels: int = 32
    blocks: int = 4
    conservative: bool = True

    def __post_init__(self):
        """Check every value."""
        check_sizes(self, factor=2, channels=1, blocks=1)

    def build(self, rngs: nnx.Rngs) -> "SuperResolutionNet":
        """Return the net with fresh weights."""
        return SuperResolutionNet(self, rngs)


class Block(nnx.Module):
    """x + conv(relu(conv(x))), without normalisation: fields keep their amplitude."""

    def __init__(self, channels: int, rngs: nnx.Rngs):
        """Make the branch small at first, so that the sum of many blocks stays bounded."""
        self.first = Conv(channels, channels, rngs)
        self.second = Conv(channels, channels, rngs, gain=0.1)

    def __call__(self, x: Image) -> Image:
        """Add the branch."""
        return x + self.second(nnx.relu(self.first(x)))


class SuperResolutionNet(nnx.Module):
    """fine = bicubic(coarse) + shuffle(net(coarse)), shifted to the coarse block means.

    All layers but the last sum work at coarse resolution, so that they cost factor² times less
    than after the upsampling. The net starts as (conservative) bicubic interpolation, since its
    last layer starts at zero. It is fully convolutional: a field of any size goes in, and a fine
    point depends on at most 2 `blocks` + 2 coarse points in each direction.

    References: Lim et al. (2017), arXiv 1707.02921 (residual blocks without normalisation);
    Shi et al. (2016), arXiv 1609.05158 (sub-pixel upsampling); Harder et al. (2023),
    arXiv 2208.05424 (additive constraint layer).
    """

    def __init__(self, config: SuperResolution, rngs: nnx.Rngs):
        """Draw the weights."""
        self.config = config
        self.head = Conv(1, config.channels, rngs)
        self.blocks = nnx.List([Block(config.channels, rngs) for _ in range(config.blocks)])
        self.tail = Conv(config.channels, config.factor**2, rngs, gain=0.0)

    def __call__(
        self, coarse: Float[Array, "batch 1 y_lo x_lo"]
    ) -> Float[Array, "batch 1 y_hi x_hi"]:
        """Return the fine field of each coarse one, both normalised alike."""
        hidden = self.head(coarse.transpose(0, 2, 3, 1))
        for block in self.blocks:
            hidden = block(hidden)
        factor = self.config.factor
        fine = bicubic(coarse, factor) + shuffle(self.tail(hidden), factor)
        return restore_means(fine, coarse) if self.config.conservative else fine


def shuffle(x: Image, factor: int) -> Float[Array, "batch 1 y_hi x_hi"]:
    """Lay the factor² channels of each coarse point out as the fine points of its block."""
    batch, y, x_, _ = x.shape
    cells = x.reshape(batch, y, x_, factor, factor).transpose(0, 1, 3, 2, 4)
    return cells.reshape(batch, 1, factor * y, factor * x_)
