"""How good posteriors are, problem by problem."""

from typing import Any

import xarray as xr

from sciml.figure.style import CPU, MUTED, WAFER, legend_above, name_rows

TOLERATED_POINTS = 2.0  # assumed: deviation of the coverage that is small for most uses
CHANCE = 0.5
LOOKS: dict[str, Any] = {
    "net": {"marker": "o", "ls": "none"},
    "recalibrated": {"marker": "x", "ls": "none"},
    "weighted": {"marker": "o", "ls": "none", "mfc": "none"},
}


def draw_posteriors(dataset: xr.Dataset, ax: Any) -> Any:
    """Draw the worst deviation of the coverage, and C2ST, of every problem; left is better.

    Filled circles are the net's own draws, crosses those that were recalibrated, open circles
    those that the likelihood has weighed.

    Args:
        dataset: as `sciml.studies.posteriors` returns it.
        ax: two axes.

    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> whose = "net", "recalibrated", "weighted"
    >>> names = [f"{one}_{score}" for one in whose for score in ("points", "c2st")]
    >>> scores = xr.Dataset({name: ("problem", [0.6]) for name in names}, {"problem": ["sir"]})
    >>> left, _ = figure.draw_posteriors(scores, Figure().subplots(1, 2))
    >>> left.get_xlabel()
    'worst deviation of coverage (points)'
    """
    places = name_rows(ax, list(dataset.problem.values))
    for panel, score, colour in ((ax[0], "points", CPU), (ax[1], "c2st", WAFER)):
        for draws, look in LOOKS.items():
            panel.plot(dataset[f"{draws}_{score}"], places, color=colour, label=draws, **look)
        legend_above(panel)
    ax[0].axvline(TOLERATED_POINTS, color=MUTED, linestyle="--", linewidth=1)
    ax[0].set_xlim(left=0)
    ax[0].set_xlabel("worst deviation of coverage (points)")
    ax[1].set_xlim(CHANCE - 0.03, 1.0)
    ax[1].set_xlabel("C2ST against the reference")
    return ax
