"""Inverse maps: trained, kept, applied to observations."""

from sciml.inverse.alarms.collapse import CollapseWarning
from sciml.inverse.beyond_memory.windows import Windows
from sciml.inverse.fit import fit
from sciml.inverse.refinement.rounds import refine
from sciml.inverse.result import Fit, load
from sciml.inverse.surrogate.law import Likelihood
from sciml.inverse.surrogate.learn import fit_likelihood

__all__ = [
    "CollapseWarning",
    "Fit",
    "Likelihood",
    "Windows",
    "fit",
    "fit_likelihood",
    "load",
    "refine",
]
__dir__ = __all__.copy  # what tab completion shows
