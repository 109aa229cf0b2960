"""Fields of wind: where they come from, and how they are made coarse and fine."""

from sciml.wind.cf import units
from sciml.wind.cf.check import Finding, Report, check
from sciml.wind.cf.components import speed_and_direction
from sciml.wind.cf.level import Level
from sciml.wind.cf.schema import conform
from sciml.wind.make.gaussian import gaussian, random_phases
from sciml.wind.make.store import generate_parts
from sciml.wind.make.surface_qg import SurfaceQG, kinetic_spectrum
from sciml.wind.make.synthetic import generate
from sciml.wind.make.terrain import with_hills
from sciml.wind.make.two_resolutions import generate_two
from sciml.wind.prepare import upsample
from sciml.wind.prepare.channels import Normaliser, channels, fit_normaliser
from sciml.wind.prepare.coarsen import (
    block_mean,
    block_mean_present,
    crop,
    pair,
    restore_means,
    restore_means_above,
)
from sciml.wind.prepare.correction import Correction
from sciml.wind.prepare.height import log_law, power_law
from sciml.wind.prepare.matching import Agreement, Matched, fit_correction, matched
from sciml.wind.prepare.patches import Plan, gridded, scattered
from sciml.wind.prepare.regrid import onto_blocks
from sciml.wind.prepare.resolution import coarser, finer
from sciml.wind.prepare.split import Split, decorrelation_h, random_split, split, stripes
from sciml.wind.prepare.stream import stream
from sciml.wind.prepare.symmetry import symmetry
from sciml.wind.prepare.tiled import (
    Tiles,
    Window,
    located_rows,
    refine_located,
    refine_tiled,
    refined_rows,
)
from sciml.wind.prepare.upsample import bicubic, bilinear, block, conservative_bicubic, spectral
from sciml.wind.read.covariates import covariates, open_statics, with_statics
from sciml.wind.read.reader import open
from sciml.wind.read.registry import registered
from sciml.wind.read.retrieval import DatasetUnavailable, fetch
from sciml.wind.read.stations import open_stations

__all__ = [
    "Agreement",
    "Correction",
    "DatasetUnavailable",
    "Finding",
    "Level",
    "Matched",
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
    "fit_correction",
    "finer",
    "fit_normaliser",
    "gaussian",
    "generate",
    "generate_parts",
    "generate_two",
    "gridded",
    "kinetic_spectrum",
    "located_rows",
    "log_law",
    "matched",
    "onto_blocks",
    "open",
    "open_stations",
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
    "units",
    "upsample",
    "with_hills",
    "with_statics",
]
__dir__ = __all__.copy  # what tab completion shows
