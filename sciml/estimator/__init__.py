"""`fit`, its result, and files of it."""

from sciml.estimator.archive import NotAFitError
from sciml.estimator.collapse import CollapseWarning
from sciml.estimator.downscaled import Downscaling
from sciml.estimator.downscaling import fit_downscaling
from sciml.estimator.downscaling_file import load_downscaling
from sciml.estimator.fit import fit
from sciml.estimator.pool import Patches
from sciml.estimator.result import Fit
from sciml.estimator.storage import load

__all__ = [
    "CollapseWarning",
    "Downscaling",
    "Fit",
    "NotAFitError",
    "Patches",
    "fit",
    "fit_downscaling",
    "load",
    "load_downscaling",
]
