"""Colours by parameter, and names as formulas."""

import re

# Okabe and Ito's palette, without yellow, which is pale on white, in an order of strong contrast.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":")  # lines differ without colour too
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BAND = "#BFBFBF"


def colour(place: int) -> str:
    """Return the colour of the series at a place; they come round again."""
    return SERIES[place % len(SERIES)]


def line(place: int) -> str:
    """Return the line style of the series at a place."""
    return STYLES[place % len(STYLES)]


def symbol(name: str) -> str:
    """Return theta0 as θ₀ and the like, other names as they are."""
    found = re.fullmatch(r"theta_?(\d+)", name)
    return rf"$\theta_{{{found[1]}}}$" if found else name
