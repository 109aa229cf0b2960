"""Numbers that say how good a result is: point estimates, posteriors, fields, observations."""

from sciml.diagnose.arviz_tree import arviz_tree
from sciml.diagnose.band import simultaneous_band
from sciml.diagnose.bootstrap import bootstrap, learning_curve
from sciml.diagnose.c2st import c2st
from sciml.diagnose.calibration import calibration
from sciml.diagnose.contraction import contraction
from sciml.diagnose.coverage import coverage
from sciml.diagnose.distance import Kernel, Mahalanobis, Nearest
from sciml.diagnose.field import bias, field_scores, mae, rmse, skill
from sciml.diagnose.kernel import mmd
from sciml.diagnose.local_c2st import Classifier, local_c2st
from sciml.diagnose.misspecification import View, alarm, judge
from sciml.diagnose.predictive import predictive, replicate
from sciml.diagnose.recovery import r2, recovery
from sciml.diagnose.sbc import sbc
from sciml.diagnose.tarp import informed_references, tarp
from sciml.diagnose.uniformity import uniformity

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
    "coverage",
    "field_scores",
    "informed_references",
    "judge",
    "learning_curve",
    "local_c2st",
    "mae",
    "mmd",
    "predictive",
    "r2",
    "recovery",
    "replicate",
    "rmse",
    "sbc",
    "simultaneous_band",
    "skill",
    "tarp",
    "uniformity",
]
