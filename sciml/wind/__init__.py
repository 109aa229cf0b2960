"""Fields of wind: where they come from, and how they are made coarse and fine."""

from sciml.wind.channels import Normaliser, channels, fit_normaliser
from sciml.wind.check import Finding, Report, check
from sciml.wind.coarsen import (
    block_mean,
    block_mean_present,
    crop,
    pair,
    restore_means,
    restore_means_above,
)
from sciml.wind.components import speed_and_direction
from sciml.wind.covariates import covariates, open_statics, with_statics
from sciml.wind.gaussian import gaussian, random_phases
from sciml.wind.generator import generate
from sciml.wind.height import log_law, power_law
from sciml.wind.patches import Plan, gridded, scattered
from sciml.wind.reader import open
from sciml.wind.registry import registered
from sciml.wind.resolution import coarser, finer
from sciml.wind.retrieval import DatasetUnavailable, fetch
from sciml.wind.schema import Level, conform
from sciml.wind.split import Split, decorrelation_h, random_split, split, stripes
from sciml.wind.store import generate_parts
from sciml.wind.stream import stream
from sciml.wind.surface_qg import SurfaceQG, kinetic_spectrum
from sciml.wind.symmetry import symmetry
from sciml.wind.terrain import with_hills
from sciml.wind.tiled import (
    Tiles,
    Window,
    located_rows,
    refine_located,
    refine_tiled,
    refined_rows,
)
from sciml.wind.upsample import bicubic, bilinear, block, conservative_bicubic, spectral

__all__ = [
    "DatasetUnavailable",
    "Finding",
    "Level",
    "Normaliser",
    "Plan",
    "Report",
    "Split",
    "SurfaceQG",
    "Tiles",
    "Window",
    "bicubic",
    "bilinear",
    "block",
    "block_mean",
    "block_mean_present",
    "channels",
    "check",
    "coarser",
    "conform",
    "conservative_bicubic",
    "covariates",
    "crop",
    "decorrelation_h",
    "fetch",
    "finer",
    "fit_normaliser",
    "gaussian",
    "generate",
    "generate_parts",
    "gridded",
    "kinetic_spectrum",
    "located_rows",
    "log_law",
    "open",
    "open_statics",
    "pair",
    "power_law",
    "random_phases",
    "random_split",
    "refine_located",
    "refine_tiled",
    "refined_rows",
    "registered",
    "restore_means",
    "restore_means_above",
    "scattered",
    "spectral",
    "speed_and_direction",
    "split",
    "stream",
    "stripes",
    "symmetry",
    "with_hills",
    "with_statics",
]
