"""Legends that hide nothing."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def legend_above(ax: "Axes", columns: int = 2) -> None:
    """Put the legend above the axes, where no curve can be, beginning at their left edge."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.8,
        handletextpad=0.5,
    )
