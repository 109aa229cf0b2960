"""Many observations of one system: a population of individuals, or one parameter value."""

from sciml.reference.several.hierarchy import Hyper
from sciml.reference.several.population import population
from sciml.reference.several.trials import trials

__all__ = ["Hyper", "population", "trials"]
__dir__ = __all__.copy  # what tab completion shows
