"""Super-resolution: a residual net at coarse resolution and one sub-pixel upsampling."""

from dataclasses import dataclass

from flax import nnx

from sciml.models.wind.refinement import (
    Coarse,
    Fine,
    Ground,
    RefinementNet,
    at_coarse,
    refined,
    shuffle,
)
from sciml.models.wind.residual_refinement import ResidualRefinement, cell_net


@dataclass(frozen=True)
class SuperResolution(ResidualRefinement):
    """A net that refines wind by `factor` in both directions.

    Good values: the defaults (79,000 weights) for a few dozen fields; more channels before more
    blocks when there are more.

    Sizes, and what is raised, are those of `ResidualRefinement`.

    >>> SuperResolution(factor=4).reach
    10
    """

    def build(self, rngs: nnx.Rngs) -> "SuperResolutionNet":
        """Return the net with fresh weights."""
        return SuperResolutionNet(self, rngs)


class SuperResolutionNet(RefinementNet):
    """fine = bicubic(coarse) + shuffle(net(coarse, statics)), shifted to the coarse block means.

    All layers but the last sum work at coarse resolution, so that they cost factor² times less
    than after the upsampling. The net starts as (conservative) bicubic interpolation, since its
    last layer starts at zero. It is fully convolutional: a field of any size goes in, and a fine
    point depends on at most `config.reach` coarse points in each direction.

    References: Lim et al. (2017), arXiv 1707.02921 (residual net); Shi et al. (2016), arXiv
    1609.05158 (sub-pixel upsampling); Harder et al. (2023), arXiv 2208.05424 (additive constraint
    layer).
    """

    def __init__(self, config: ResidualRefinement, rngs: nnx.Rngs):
        self.config = config
        self.net = cell_net(config, rngs)

    def __call__(self, coarse: Coarse, statics: Ground = None) -> Fine:
        """Return the fine field of each coarse one, both normalised alike."""
        residual = self.net(at_coarse(self.config, coarse, statics))
        return refined(self.config, coarse, shuffle(residual, self.config.factor))
