"""`fit`, its result, and files of it."""

from sciml.estimator.fit import CollapseWarning, fit
from sciml.estimator.result import Fit
from sciml.estimator.storage import NotAFitError, load

__all__ = ["CollapseWarning", "Fit", "NotAFitError", "fit", "load"]
