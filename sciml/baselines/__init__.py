"""Classical estimators, to stand beside every net."""

from sciml.baselines.features import (
    Summary,
    principal_components,
    spike_features,
    together,
)
from sciml.baselines.least_squares import Search, least_squares
from sciml.baselines.neighbours import extra_trees, nearest_neighbours

__all__ = [
    "Search",
    "Summary",
    "extra_trees",
    "least_squares",
    "nearest_neighbours",
    "principal_components",
    "spike_features",
    "together",
]
__dir__ = __all__.copy  # what tab completion shows
