"""Both estimators under one name: inverse maps (`sciml.inverse`) and wind (`sciml.downscale`)."""

from sciml._answers import in_parts
from sciml.downscale import (
    Downscaling,
    Interpolation,
    Patches,
    fit_between,
    fit_downscaling,
    load_between,
    load_downscaling,
)
from sciml.inverse import CollapseWarning, Fit, Windows, fit, load
from sciml.models.archive import NotAFitError

__all__ = [
    "CollapseWarning",
    "Downscaling",
    "Fit",
    "Interpolation",
    "NotAFitError",
    "Patches",
    "Windows",
    "fit",
    "fit_between",
    "fit_downscaling",
    "in_parts",
    "load",
    "load_between",
    "load_downscaling",
]
__dir__ = __all__.copy  # what tab completion shows
