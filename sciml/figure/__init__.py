"""Figures: each function draws on axes that it is given and returns them."""

from sciml.figure.fields import draw_fields
from sciml.figure.recovery import draw_recovery
from sciml.figure.runtimes import draw_rates, draw_runtimes
from sciml.figure.scores import draw_scores
from sciml.figure.style import panels, styled

__all__ = [
    "draw_fields",
    "draw_rates",
    "draw_recovery",
    "draw_runtimes",
    "draw_scores",
    "panels",
    "styled",
]
