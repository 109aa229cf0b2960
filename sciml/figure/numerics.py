"""Errors of inverse maps with sparse weights, and in half precision."""

from typing import Any

import pandas as pd

from sciml.figure.runs import SCORES, draw_errors, error_of, widen
from sciml.figure.style import CPU, MUTED, WAFER, name_rows

COLOURS = {"static": CPU, "RigL": WAFER}


def draw_sparsity(table: pd.DataFrame, ax: Any) -> Any:
    """Draw 1 − R² and the median squared error against the share of zeros, by method.

    Args:
        table: a row per `method` ("dense" and others) and `sparsity`, as the study makes it.
        ax: two axes.
    """
    groups = {str(name): rows for name, rows in table.groupby("method", sort=False)}
    dense = groups.pop("dense")
    for panel, (score, label) in zip(ax, SCORES, strict=True):
        for i, (method, rows) in enumerate(groups.items()):
            errors, half = error_of(rows, score)
            places = 100 * rows["sparsity"] + i - (len(groups) - 1) / 2  # bars side by side
            bars = [half.clip(upper=0.9 * errors), half]
            colour = COLOURS.get(method, MUTED)
            panel.errorbar(places, errors, bars, color=colour, marker="o", label=method, capsize=2)
        for value in error_of(dense, score)[0]:
            panel.axhline(value, color=MUTED, linestyle="--", label="dense")
        panel.set_yscale("log")
        panel.set_xlabel("weights at zero (%)")
        panel.set_ylabel(label)
    ax[0].legend()
    return ax


def draw_precision(table: pd.DataFrame, ax: Any) -> Any:
    """Draw 1 − R² and the median squared error of every format.

    Args:
        table: a row per `precision` and `scaling`, as the study makes it.
        ax: two axes.
    """
    names = [
        f"{name}, loss scaled" if scaling == "dynamic" else f"{name}"
        for name, scaling in zip(table["precision"], table["scaling"], strict=True)
    ]
    places = name_rows(ax, names)
    colours = [MUTED if name == "float32" else CPU for name in table["precision"]]
    for panel, (score, label) in zip(ax, SCORES, strict=True):
        errors, half = draw_errors(panel, table, score, places, colours)
        widen(panel, [*errors, *(errors + half)])
        panel.set_xlabel(label)
    return ax
