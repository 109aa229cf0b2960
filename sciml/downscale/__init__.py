"""Nets that refine wind: trained, kept, applied to domains of any size."""

from sciml.downscale.fit import fit_downscaling
from sciml.downscale.pool import Patches
from sciml.downscale.result import Downscaling, load_downscaling

__all__ = ["Downscaling", "Patches", "fit_downscaling", "load_downscaling"]
__dir__ = __all__.copy  # what tab completion shows
