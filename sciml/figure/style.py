"""One look for all figures: colours that colour-blind readers tell apart, legible type."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, by meaning.
CPU = "#0072B2"
WAFER = "#D55E00"
NARROW = "#0072B2"
WIDE = "#D55E00"
MUTED = "#7F7F7F"
QUIESCENT = "#CC79A7"

TOLD = 8  # names in a legend; of more, the worst: others would leave no room for the figure

RC: Any = {
    "figure.dpi": 120,
    "savefig.dpi": 160,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "sciml",
}


def styled() -> Any:
    """Return a context manager under which figures have this look.

    >>> import matplotlib
    >>> from sciml import figure
    >>> with figure.styled():
    ...     size = matplotlib.rcParams["font.size"]
    >>> bool(size)
    True
    """
    return mpl.rc_context(RC)


def panels(rows: int, columns: int, size_inches: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure in this look, without any window, and its axes (one, or an array).

    >>> figure, axes = panels(1, 2, (7.0, 3.0))
    >>> axes.shape
    (2,)
    """
    with styled():
        figure = Figure(figsize=size_inches, layout="constrained")
        return figure, figure.subplots(rows, columns)


def checked(axes: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return axes as an array; refuse another shape."""
    axes = np.asarray(axes)
    if axes.shape != shape:
        raise ValueError(f"axes have shape {axes.shape}; they must be {shape}: plt.subplots{shape}")
    return axes


def name_rows(axes: Any, names: Sequence[str]) -> list[int]:
    """Give axes that stand side by side a row for each name, from the top; return the heights."""
    heights = list(range(len(names)))[::-1]
    for ax in axes:
        ax.set_yticks(heights, names if ax is axes[0] else [""] * len(names))
        ax.set_ylim(-0.7, len(names) - 0.3)
    return heights


def worst(badness: Any) -> set[int]:
    """Return the places of those that a legend names: all, or the `TOLD` worst of many."""
    return {*np.argsort(-np.asarray(badness, float), kind="stable")[:TOLD].tolist()}


def legend_above(ax: Axes, columns: int = 2, of: int = 0) -> None:
    """Put the legend above the axes, where no curve can be, beginning at their left edge.

    It says so where it names but the worst `of` many.
    """
    ax.legend(
        title=f"the worst {TOLD} of {of}:" if of > TOLD else None,
        alignment="left",
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.8,
        handletextpad=0.5,
    )
