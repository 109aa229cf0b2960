"""Numbers that say how good a result is: point estimates, posteriors, fields, observations."""

from sciml.diagnose.band import simultaneous_band
from sciml.diagnose.calibration import calibration
from sciml.diagnose.contraction import contraction
from sciml.diagnose.coverage import coverage
from sciml.diagnose.field import bias, field_scores, mae, rmse, skill
from sciml.diagnose.recovery import r2, recovery
from sciml.diagnose.sbc import sbc
from sciml.diagnose.tarp import informed_references, tarp
from sciml.diagnose.uniformity import uniformity

__all__ = [
    "bias",
    "calibration",
    "contraction",
    "coverage",
    "field_scores",
    "informed_references",
    "mae",
    "r2",
    "recovery",
    "rmse",
    "sbc",
    "simultaneous_band",
    "skill",
    "tarp",
    "uniformity",
]
