"""The local classifier test against its null distribution."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sciml.figure.palette import BAND, SERIES
from sciml.figure.style import legend_above


def draw_local_c2st(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw, for each observation, the statistic on the range that a right posterior gives.

    Args:
        dataset: as `sciml.diagnose.local_c2st` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> null = ("null", "sample"), np.linspace(0.0, 0.1, 20)[:, None]
    >>> found = xr.Dataset({"statistic": ("sample", [0.2]), "null": null})
    >>> found["p_value"] = "sample", [0.05]
    >>> ax = figure.draw_local_c2st(found, Figure().subplots())
    >>> bool(ax.get_xlabel())
    True
    """
    place = np.arange(dataset.sizes["sample"])
    low, high = dataset.null.min("null").values, dataset.null.quantile(0.95, "null").values
    ax.bar(place, high - low, 0.7, low, color=BAND, alpha=0.7, label="95 % band")
    wrong = dataset.p_value.values < 0.05
    value = dataset.statistic.values
    ax.plot(place[~wrong], value[~wrong], "o", color=SERIES[0], label="p ≥ 0.05")
    ax.plot(place[wrong], value[wrong], "X", color=SERIES[1], ms=8, label="p < 0.05")
    ax.set(xlabel="observation, by number", ylabel=r"$\langle (d - 1/2)^2 \rangle$")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, None)
    legend_above(ax)
    return ax
