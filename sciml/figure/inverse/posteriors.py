"""How good posteriors are, problem by problem."""

from typing import TYPE_CHECKING, Any

from sciml.figure.legend import legend_above
from sciml.figure.style import CPU, MUTED, WAFER

if TYPE_CHECKING:
    import xarray as xr

TOLERATED_POINTS = 2.0  # assumed: deviation of the coverage that is small for most uses
CHANCE = 0.5


def draw_posteriors(dataset: "xr.Dataset", ax: Any) -> Any:
    """Draw the worst deviation of the coverage, and C2ST, of every problem; left is better.

    Filled circles are the net's own draws, crosses those that were recalibrated, open circles
    those that the likelihood has weighed.

    Args:
        dataset: as `sciml.studies.posteriors` returns it.
        ax: two axes.
    """
    places = list(range(dataset.sizes["problem"]))[::-1]
    ax[0].plot(dataset.net_points, places, "o", color=CPU, label="net")
    ax[0].plot(dataset.recalibrated_points, places, "x", color=CPU, label="recalibrated")
    ax[0].plot(dataset.weighted_points, places, "o", color=CPU, mfc="none", label="weighted")
    ax[0].axvline(TOLERATED_POINTS, color=MUTED, linestyle="--", linewidth=1)
    ax[0].set_xlim(left=0)
    ax[0].set_xlabel("worst deviation of coverage (points)")
    ax[0].set_yticks(places, list(dataset.problem.values))
    ax[1].plot(dataset.net_c2st, places, "o", color=WAFER, label="net")
    ax[1].plot(dataset.recalibrated_c2st, places, "x", color=WAFER, label="recalibrated")
    ax[1].plot(dataset.weighted_c2st, places, "o", color=WAFER, mfc="none", label="weighted")
    ax[1].set_xlim(CHANCE - 0.03, 1.0)
    ax[1].set_xlabel("C2ST against the reference")
    ax[1].set_yticks(places, [""] * len(places))
    for panel in ax:
        panel.set_ylim(-0.7, len(places) - 0.3)
        legend_above(panel)
    return ax
