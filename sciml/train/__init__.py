"""Training: loss and data in, weights and history out."""

from sciml.train.checkpoint import Checkpoint
from sciml.train.epoch import Online
from sciml.train.loop import Trained, Validation, train
from sciml.train.parts import InParts
from sciml.train.recipe import Recipe, paper, width_scaled

__all__ = [
    "Checkpoint",
    "InParts",
    "Online",
    "Recipe",
    "Trained",
    "Validation",
    "paper",
    "train",
    "width_scaled",
]
__dir__ = __all__.copy  # what tab completion shows
