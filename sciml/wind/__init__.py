"""Fields of wind: where they come from, and how they are made coarse and fine."""

from sciml.wind.coarsen import block_mean, crop, restore_means
from sciml.wind.generator import generate
from sciml.wind.reader import open
from sciml.wind.registry import registered
from sciml.wind.retrieval import DatasetUnavailable, fetch
from sciml.wind.surface_qg import SurfaceQG, kinetic_spectrum
from sciml.wind.upsample import bicubic, bilinear, block, conservative_bicubic

__all__ = [
    "DatasetUnavailable",
    "SurfaceQG",
    "bicubic",
    "bilinear",
    "block",
    "block_mean",
    "conservative_bicubic",
    "crop",
    "fetch",
    "generate",
    "kinetic_spectrum",
    "open",
    "registered",
    "restore_means",
]
