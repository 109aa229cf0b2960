"""The sizes that nets of residual blocks have in common."""

from dataclasses import dataclass
from typing import ClassVar

from flax import nnx

from sciml.models.shared.sizes import check_sizes
from sciml.models.wind.residual import ResidualNet, reach_of


@dataclass(frozen=True)
class ResidualRefinement:
    """Sizes of a net that refines wind by residual blocks, mostly on the coarse grid.

    Args:
        factor: fine points per coarse point, in each direction.
        channels: width of the hidden layers.
        blocks: residual blocks, of two 3 × 3 convolutions each.
        conservative: whether block means of the output equal the input exactly.
        wind: channels of wind, in and out.
        statics: channels of fields known on the fine grid, such as terrain.
        beside: channels known on the coarse grid beside the wind, such as temperature.

    Raises:
        ValueError: a size is not a positive integer, or the factor is below 2.
    """

    probabilistic: ClassVar[bool] = False

    factor: int = 4
    channels: int = 32
    blocks: int = 4
    conservative: bool = True
    wind: int = 1
    statics: int = 0
    beside: int = 0

    def __post_init__(self):
        check_sizes(self, factor=2, wind=1, statics=0, beside=0, channels=1, blocks=1)

    @property
    def reach(self) -> int:
        """Coarse points to each side on which a fine point of the estimate depends."""
        return reach_of(self.blocks)


def cell_net(
    config: ResidualRefinement,
    rngs: nnx.Rngs,
    *,
    noises: int = 0,
    outputs: int = 1,
    blocks: int | None = None,
    conditions: int = 0,
) -> ResidualNet:
    """Return a net on coarse cells, whose fine points are channels; sizes are `config`'s.

    It sees the coarse wind and what is beside it, statics and `noises` fine fields of the shape of
    the wind, and gives `outputs` such fields.
    """
    cell = config.factor**2
    return ResidualNet(
        config.wind + config.beside + (config.statics + noises * config.wind) * cell,
        outputs * config.wind * cell,
        rngs,
        channels=config.channels,
        blocks=config.blocks if blocks is None else blocks,
        conditions=conditions,
    )
