"""Nets: a frozen configuration each, whose `build` makes the Flax module."""

from sciml.models.attention import Attention
from sciml.models.convolutional import Convolutional
from sciml.models.dense import Dense
from sciml.models.ensemble import Ensemble
from sciml.models.flow_matching import FlowMatching
from sciml.models.gaussian import Gaussian
from sciml.models.spline_flow import SplineFlow
from sciml.models.super_resolution import SuperResolution

# What `sciml.load` may build, by the name that a file gives.
INVERSE_MAPS = {
    kind.__name__: kind
    for kind in (Dense, Convolutional, Attention, Ensemble, Gaussian, SplineFlow, FlowMatching)
}

__all__ = [
    "INVERSE_MAPS",
    "Attention",
    "Convolutional",
    "Dense",
    "Ensemble",
    "FlowMatching",
    "Gaussian",
    "SplineFlow",
    "SuperResolution",
]
