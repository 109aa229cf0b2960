"""Nets that refine wind: trained, kept, applied to domains of any size."""

from sciml.downscale.between import Interpolation, fit_between, load_between
from sciml.downscale.cards import Card, card, net_names
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.pool import Patches
from sciml.downscale.result import Downscaling, load_downscaling

__all__ = [
    "Card",
    "Downscaling",
    "Interpolation",
    "Patches",
    "card",
    "fit_between",
    "fit_downscaling",
    "load_between",
    "load_downscaling",
    "net_names",
]
__dir__ = __all__.copy  # what tab completion shows
