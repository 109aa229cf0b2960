"""Figures: each function draws on axes that it is given and returns them."""

from sciml.figure.calibration import (
    draw_calibration,
    draw_coverage,
    draw_ecdf,
    draw_ranks,
    draw_tarp,
)
from sciml.figure.contraction import draw_contraction
from sciml.figure.estimates import draw_estimates
from sciml.figure.fields import draw_fields
from sciml.figure.local_c2st import draw_local_c2st
from sciml.figure.misspecification import draw_alarm
from sciml.figure.numerics import draw_precision, draw_sparsity
from sciml.figure.pairs import draw_pairs
from sciml.figure.posteriors import draw_posteriors
from sciml.figure.predictive import draw_predictive
from sciml.figure.recovery import draw_recovery
from sciml.figure.runs import draw_runs
from sciml.figure.runtimes import draw_rates, draw_runtimes
from sciml.figure.scores import draw_learning, draw_scores
from sciml.figure.style import panels, styled
from sciml.figure.training import draw_history
from sciml.figure.viewer import FieldViewer, view

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
