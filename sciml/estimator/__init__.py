"""`fit`, its result, and files of it."""

from sciml.estimator.collapse import CollapseWarning
from sciml.estimator.downscaling import Downscaling, Patches, fit_downscaling
from sciml.estimator.fit import fit
from sciml.estimator.result import Fit
from sciml.estimator.storage import NotAFitError, load

__all__ = [
    "CollapseWarning",
    "Downscaling",
    "Fit",
    "NotAFitError",
    "Patches",
    "fit",
    "fit_downscaling",
    "load",
]
