"""Figures: each function draws on axes that it is given and returns them."""

from sciml.figure.inverse.calibration import (
    draw_calibration,
    draw_coverage,
    draw_ecdf,
    draw_ranks,
    draw_tarp,
)
from sciml.figure.inverse.contraction import draw_contraction
from sciml.figure.inverse.estimates import draw_estimates
from sciml.figure.inverse.local_c2st import draw_local_c2st
from sciml.figure.inverse.misspecification import draw_alarm
from sciml.figure.inverse.pairs import draw_pairs
from sciml.figure.inverse.posteriors import draw_posteriors
from sciml.figure.inverse.predictive import draw_predictive
from sciml.figure.inverse.recovery import draw_recovery
from sciml.figure.inverse.scores import draw_learning, draw_scores
from sciml.figure.numerics import draw_precision, draw_sparsity
from sciml.figure.runs import draw_runs
from sciml.figure.runtimes import draw_rates, draw_runtimes
from sciml.figure.style import panels, styled
from sciml.figure.training import draw_history
from sciml.figure.wind.fields import draw_fields
from sciml.figure.wind.viewer import FieldViewer, view

__all__ = [
    "FieldViewer",
    "draw_alarm",
    "draw_calibration",
    "draw_contraction",
    "draw_coverage",
    "draw_ecdf",
    "draw_estimates",
    "draw_fields",
    "draw_history",
    "draw_learning",
    "draw_local_c2st",
    "draw_pairs",
    "draw_posteriors",
    "draw_precision",
    "draw_predictive",
    "draw_ranks",
    "draw_rates",
    "draw_recovery",
    "draw_runs",
    "draw_runtimes",
    "draw_scores",
    "draw_sparsity",
    "draw_tarp",
    "panels",
    "styled",
    "view",
]
__dir__ = __all__.copy  # what tab completion shows
