"""Numbers that say how good a result is: point estimates, posteriors, fields, observations."""

from sciml.diagnose.draws.arviz_tree import arviz_tree
from sciml.diagnose.draws.band import simultaneous_band
from sciml.diagnose.draws.calibration import calibration
from sciml.diagnose.draws.contraction import contraction
from sciml.diagnose.draws.coverage import coverage
from sciml.diagnose.draws.predictive import predictive, replicate
from sciml.diagnose.draws.recalibration import recalibrate, recalibration
from sciml.diagnose.draws.sbc import sbc
from sciml.diagnose.draws.tarp import informed_references, tarp
from sciml.diagnose.draws.uniformity import uniformity
from sciml.diagnose.point.bootstrap import bootstrap, learning_curve
from sciml.diagnose.point.recovery import r2, recovery
from sciml.diagnose.samples.c2st import c2st
from sciml.diagnose.samples.distance import Kernel, Mahalanobis, Nearest
from sciml.diagnose.samples.kernel import mmd
from sciml.diagnose.samples.local_c2st import Classifier, local_c2st
from sciml.diagnose.samples.misspecification import View, alarm, judge
from sciml.diagnose.wind.ensemble import crps, rank_histogram, spread_skill
from sciml.diagnose.wind.errors import bias, field_scores, mae, psnr, rmse, skill, vector_rmse
from sciml.diagnose.wind.fractions import fractions_skill
from sciml.diagnose.wind.increments import (
    distribution_distance,
    gradient_length,
    quantile_bias,
    structure_function,
)
from sciml.diagnose.wind.similarity import ssim
from sciml.diagnose.wind.skill_interval import skill_interval
from sciml.diagnose.wind.spectra import (
    cosine_spectrum,
    effective_wavelength_m,
    spectral_ratio,
    windowed_spectrum,
)
from sciml.diagnose.wind.subgrid import subgrid_by_wind, subgrid_variance, subgrid_variance_ratio

__all__ = [
    "Classifier",
    "Kernel",
    "Mahalanobis",
    "Nearest",
    "View",
    "alarm",
    "arviz_tree",
    "bias",
    "bootstrap",
    "c2st",
    "calibration",
    "contraction",
    "cosine_spectrum",
    "coverage",
    "crps",
    "distribution_distance",
    "effective_wavelength_m",
    "field_scores",
    "fractions_skill",
    "gradient_length",
    "informed_references",
    "judge",
    "learning_curve",
    "local_c2st",
    "mae",
    "mmd",
    "predictive",
    "psnr",
    "quantile_bias",
    "r2",
    "rank_histogram",
    "recalibrate",
    "recalibration",
    "recovery",
    "replicate",
    "rmse",
    "sbc",
    "simultaneous_band",
    "skill",
    "skill_interval",
    "spectral_ratio",
    "spread_skill",
    "ssim",
    "structure_function",
    "subgrid_by_wind",
    "subgrid_variance",
    "subgrid_variance_ratio",
    "tarp",
    "uniformity",
    "vector_rmse",
    "windowed_spectrum",
]
__dir__ = __all__.copy  # what tab completion shows
