"""Inverse maps: trained, kept, applied to observations."""

from sciml.inverse.alarms.collapse import CollapseWarning
from sciml.inverse.beyond_memory.windows import Windows
from sciml.inverse.fit import fit
from sciml.inverse.refinement.rounds import refine
from sciml.inverse.result import Fit, load

__all__ = ["CollapseWarning", "Fit", "Windows", "fit", "load", "refine"]
__dir__ = __all__.copy  # what tab completion shows
