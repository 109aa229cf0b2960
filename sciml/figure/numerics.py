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

    >>> import matplotlib.pyplot as plt
    >>> import pandas as pd
    >>> rows = [("dense", 0.0, 0.98, 2e-5), ("static", 0.5, 0.97, 4e-5), ("static", 0.9, 0.9, 9e-5)]
    >>> table = pd.DataFrame(rows, columns=["method", "sparsity", "r2", "median_se"])
    >>> table["r2_half"], table["median_se_half"] = 0.001, 1e-6
    >>> axes = draw_sparsity(table, plt.figure().subplots(1, 2))
    >>> axes[0].get_xlabel()
    'weights at zero (%)'
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

    >>> import matplotlib.pyplot as plt
    >>> import pandas as pd
    >>> rows = [("float32", "none", 0.98, 2e-5), ("float16", "dynamic", 0.97, 4e-5)]
    >>> table = pd.DataFrame(rows, columns=["precision", "scaling", "r2", "median_se"])
    >>> table["r2_half"], table["median_se_half"] = 0.001, 1e-6
    >>> axes = draw_precision(table, plt.figure().subplots(1, 2))
    >>> [label.get_text() for label in axes[0].get_yticklabels()]
    ['float32', 'float16, loss scaled']
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
