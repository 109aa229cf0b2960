"""Fields of wind: where they come from, and how they are made coarse and fine."""

from sciml.wind.check import Finding, Report, check
from sciml.wind.coarsen import block_mean, crop, restore_means
from sciml.wind.components import speed_and_direction
from sciml.wind.generator import generate
from sciml.wind.reader import open
from sciml.wind.registry import registered
from sciml.wind.retrieval import DatasetUnavailable, fetch
from sciml.wind.schema import Level, conform
from sciml.wind.surface_qg import SurfaceQG, kinetic_spectrum
from sciml.wind.upsample import bicubic, bilinear, block, conservative_bicubic

__all__ = [
    "DatasetUnavailable",
    "Finding",
    "Level",
    "Report",
    "SurfaceQG",
    "bicubic",
    "bilinear",
    "block",
    "block_mean",
    "check",
    "conform",
    "conservative_bicubic",
    "crop",
    "fetch",
    "generate",
    "kinetic_spectrum",
    "open",
    "registered",
    "restore_means",
    "speed_and_direction",
]
