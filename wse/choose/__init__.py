"""Which machine: a training on several, with time, energy, cost, memory and crossovers."""

from wse.choose.compare import compare
from wse.choose.table import Candidate, Comparison

__all__ = ["Candidate", "Comparison", "compare"]
__dir__ = __all__.copy  # what tab completion shows
