"""Distances of observations from what the simulator makes."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.palette import BAND, SERIES
from sciml.figure.style import MUTED, legend_above

BINS = 30
SMALLEST = 1e-3  # distance; keeps the logarithm finite


def draw_alarm(dataset: xr.Dataset, ax: Axes, *, view: str | None = None) -> Axes:
    """Draw the distances of unseen simulations, of observations, and the threshold between.

    Args:
        dataset: as `sciml.diagnose.judge` returns it.
        ax: to draw on.
        view: which; the first that flags most if not given.

    >>> import sciml
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> seen, fresh = (sciml.simulate(sciml.ode.sir(), samples=300, seed=seed) for seed in (0, 1))
    >>> judged = diagnose.judge(diagnose.alarm(seen), fresh)
    >>> bool(figure.draw_alarm(judged, Figure().subplots()).get_xlabel())
    True
    """
    beyond = (dataset.distance > dataset.threshold).mean("sample")
    name = view or str(dataset["view"].values[beyond.values.argmax()])
    one = dataset.sel(view=name)
    usual, found = (np.maximum(v.values, SMALLEST) for v in (one.usual, one.distance))
    low, high = min(usual.min(), found.min()), max(usual.max(), found.max())
    edges = np.geomspace(low / 1.05, high * 1.05, BINS + 1)
    for values, label, look in (
        (usual, "unseen simulations", {"color": BAND, "fill": True}),
        (found, f"observations, {100 * float(dataset.flagged.mean()):.0f} % flagged", OBSERVED),
    ):
        share = 100 * np.histogram(values, edges)[0] / len(values)
        ax.stairs(share, edges, label=f"{label} ({len(values)})", **look)
    ax.axvline(float(one.threshold), color=MUTED, ls="--", lw=1.2, label="threshold")
    ax.set(xscale="log", xlabel=f"distance by {name}", ylabel="share of series (%)")
    legend_above(ax, columns=1)
    return ax


OBSERVED: Any = {"color": SERIES[1], "lw": 1.6}
