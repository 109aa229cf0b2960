"""SRCNN: three convolutions on the interpolated field, at fine resolution."""

from dataclasses import dataclass
from typing import ClassVar

from flax import nnx

from sciml.models.shared.sizes import check_sizes
from sciml.models.wind.refinement import (
    CUBIC,
    Coarse,
    Fine,
    Ground,
    RefinementNet,
    at_fine,
    refined,
)
from sciml.models.wind.square_convolution import Conv

SIDES = (9, 1, 5)  # sourced: of the kernels, Dong et al. (2016), arXiv 1501.00092, section 4.1


@dataclass(frozen=True)
class SRCNN:
    """The first net for super-resolution, on wind and terrain.

    fine = bicubic(coarse) + c₃ ∗ relu(c₂ ∗ relu(c₁ ∗ [bicubic(coarse), statics])), shifted to the
    coarse block means: kernels of 9, 1 and 5 points a side, on the fine grid. The published study
    of subgrid wind starts from this family, and finds wind with terrain the best input.

    References: Dong et al. (2016), arXiv 1501.00092; Getter, Bessac, Rudi and Feng (2024), arXiv
    2211.16708.

    Args:
        channels: width of the first hidden layer.
        narrow: width of the second.
        factor, conservative, wind, statics, beside: as of `ResidualRefinement`.

    Raises:
        ValueError: a size is not a positive integer, or the factor is below 2.

    >>> SRCNN(factor=4).reach
    4
    """

    probabilistic: ClassVar[bool] = False

    factor: int = 4
    channels: int = 64
    narrow: int = 32
    conservative: bool = True
    wind: int = 1
    statics: int = 0
    beside: int = 0

    def __post_init__(self):
        check_sizes(self, factor=2, wind=1, statics=0, beside=0, channels=1, narrow=1)

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point depends."""
        fine = sum(side // 2 for side in SIDES)
        return -(-fine // self.factor) + CUBIC

    def build(self, rngs: nnx.Rngs) -> "SRCNNNet":
        """Return the net with fresh weights."""
        return SRCNNNet(self, rngs)


class SRCNNNet(RefinementNet):
    """See `SRCNN`; it starts as (conservative) bicubic interpolation."""

    def __init__(self, config: SRCNN, rngs: nnx.Rngs):
        self.config = config
        first, second, third = SIDES
        inputs = config.wind + config.beside + config.statics
        self.features = Conv(inputs, config.channels, rngs, side=first)
        self.mapping = Conv(config.channels, config.narrow, rngs, side=second)
        self.tail = Conv(config.narrow, config.wind, rngs, side=third, gain=0.0)

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the fine field of each coarse one, both normalised alike."""
        hidden = nnx.relu(self.features(at_fine(self.config, coarse, statics)))
        residual = self.tail(nnx.relu(self.mapping(hidden)))
        return refined(self.config, coarse, residual.transpose(0, 3, 1, 2))
