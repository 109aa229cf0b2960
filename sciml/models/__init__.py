"""Nets: a frozen configuration each, whose `build` makes the Flax module."""

from sciml.models.convolutional import Convolutional
from sciml.models.dense import Dense
from sciml.models.super_resolution import SuperResolution

# What `sciml.load` may build, by the name that a file gives.
INVERSE_MAPS = {"Dense": Dense, "Convolutional": Convolutional}

__all__ = ["INVERSE_MAPS", "Convolutional", "Dense", "SuperResolution"]
