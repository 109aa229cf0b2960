"""Nets: a frozen configuration each, whose `build` makes the Flax module."""

from sciml.models.attention import Attention
from sciml.models.cascade import Cascade
from sciml.models.convolutional import Convolutional
from sciml.models.dense import Dense
from sciml.models.density import Density
from sciml.models.ensemble import Ensemble
from sciml.models.flow_matching import FlowMatching
from sciml.models.flow_refinement import FlowRefinement
from sciml.models.gaussian import Gaussian
from sciml.models.generative import Generative
from sciml.models.locally_scaled import LocallyScaled
from sciml.models.refinement import Refinement
from sciml.models.spline_flow import SplineFlow
from sciml.models.srcnn import SRCNN
from sciml.models.super_resolution import SuperResolution
from sciml.models.unet import UNet

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
