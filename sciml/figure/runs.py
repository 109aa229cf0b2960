"""Runs of many nets: their scores, with intervals."""

import math
from typing import Any

import pandas as pd

from sciml.figure.style import CPU, MUTED, WAFER, name_rows

SCORES = (("r2", "1 − R²"), ("median_se", "median squared error"))
TRAININGS = {
    "fixed": ("noise fixed", MUTED),
    "fresh": ("noise fresh", CPU),
    "online": ("simulated anew", WAFER),
}


def draw_runs(table: pd.DataFrame, ax: Any) -> Any:
    """Draw 1 − R² and the median squared error of every kind of run; both are best at the left.

    Args:
        table: as `sciml.studies.inverse.recovery_runs.summary` returns it.
        ax: two axes.

    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> row = {"net": "CNN", "noise": "none", "training": "fixed", "samples": 1000}
    >>> row |= {"r2": 0.97, "r2_half": 0.01, "median_se": 1e-4, "median_se_half": 2e-5}
    >>> left, _ = figure.draw_runs(pd.DataFrame([row]), Figure().subplots(1, 2))
    >>> left.get_xlabel()
    '1 − R²'
    """
    sized = set(table["samples"]) != {1000}
    places = name_rows(ax, [row_label(row, sized) for _, row in table.iterrows()])
    colours = [TRAININGS[training][1] for training in table["training"]]
    for panel, (score, label) in zip(ax, SCORES, strict=True):
        values, _ = draw_errors(panel, table, score, places, colours)
        widen(panel, values)
        panel.set_xlabel(label)
    for training in table["training"].unique():
        name, colour = TRAININGS[training]
        ax[1].plot([], [], "o-", color=colour, markersize=4, label=name)
    ax[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax


def error_of(table: pd.DataFrame, score: str) -> tuple[Any, Any]:
    """Return what is best when small, and half the interval around it."""
    value = 1 - table[score] if score == "r2" else table[score]
    return value, table[f"{score}_half"].fillna(0)


def draw_errors(
    panel: Any, table: pd.DataFrame, score: str, places: Any, colours: list[str]
) -> tuple[Any, Any]:
    """Draw the error of each row with its interval; return both."""
    errors, half = error_of(table, score)
    for y, value, width, colour in zip(places, errors, half, colours, strict=True):
        panel.plot([max(value - width, value / 10), value + width], [y, y], color=colour)
        panel.plot(value, y, "o", color=colour, markersize=4)
    return errors, half


def widen(panel: Any, values: Any) -> None:
    """Show whole decades on a logarithmic axis, so that its ticks do not crowd."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    panel.set_xscale("log")
    panel.set_xlim(10.0**low * 0.9, 10.0 ** max(high, low + 1) * 1.1)


def row_label(row: Any, sized: bool) -> str:
    """Return what is run, in few words; the number of samples where it is not 1000 everywhere."""
    size = f", {row['samples']} samples" if sized else ""
    size = ", online" if row["training"] == "online" else size
    noise = "no noise" if row["noise"] == "none" else row["noise"]
    parameter = f": {row['parameter']}" if "parameter" in row else ""
    return f"{row['net']}, {noise}{size}{parameter}"
