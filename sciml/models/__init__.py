"""Nets: a frozen configuration each, whose `build` makes the Flax module."""

from sciml.models.inverse.attention import Attention
from sciml.models.inverse.convolutional import Convolutional
from sciml.models.inverse.dense import Dense
from sciml.models.inverse.ensemble import Ensemble
from sciml.models.inverse.flow_matching import FlowMatching
from sciml.models.inverse.gaussian import Gaussian
from sciml.models.inverse.spline_flow import SplineFlow
from sciml.models.wind.between import Between
from sciml.models.wind.cascade import Cascade
from sciml.models.wind.density import Density
from sciml.models.wind.flow_refinement import FlowRefinement
from sciml.models.wind.generative import Generative
from sciml.models.wind.locally_scaled import LocallyScaled
from sciml.models.wind.refinement import Refinement
from sciml.models.wind.srcnn import SRCNN
from sciml.models.wind.super_resolution import SuperResolution
from sciml.models.wind.unet import UNet

# What `sciml.load` may build, by the name that a file gives.
INVERSE_MAPS = {
    kind.__name__: kind
    for kind in (Dense, Convolutional, Attention, Ensemble, Gaussian, SplineFlow, FlowMatching)
}

# What refines wind, by name.
REFINEMENTS = {
    kind.__name__: kind
    for kind in (
        SuperResolution,
        SRCNN,
        UNet,
        Cascade,
        Density,
        Generative,
        FlowRefinement,
        LocallyScaled,
    )
}

__all__ = [
    "INVERSE_MAPS",
    "REFINEMENTS",
    "SRCNN",
    "Attention",
    "Between",
    "Cascade",
    "Convolutional",
    "Dense",
    "Density",
    "Ensemble",
    "FlowMatching",
    "FlowRefinement",
    "Gaussian",
    "Generative",
    "LocallyScaled",
    "Refinement",
    "SplineFlow",
    "SuperResolution",
    "UNet",
]
__dir__ = __all__.copy  # what tab completion shows
