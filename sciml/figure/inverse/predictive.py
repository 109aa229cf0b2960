"""An observation among replicates from its posterior."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.palette import SERIES
from sciml.figure.style import CPU, legend_above

BANDS = ((0.95, 0.2), (0.8, 0.25), (0.5, 0.35))  # level, opacity


def draw_predictive(
    tree: xr.DataTree,
    ax: Axes,
    *,
    sample: int = 0,
    channel: int = 0,
    time_unit: str = "",
    observed: str = "observation",
) -> Axes:
    """Draw one observation over the bands that its posterior predicts for every moment.

    Args:
        tree: as `sciml.diagnose.predictive` returns it.
        ax: to draw on.
        sample: which one.
        channel: which channel, where there are several.
        time_unit: of the times; without it the axis counts observations.
        observed: what is observed, with its unit, for the axis.

    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import xarray as xr
    >>> copies = np.random.default_rng(0).normal(size=(1, 50, 1, 4))
    >>> dims, time = ("chain", "draw", "sample", "time"), [0.0, 1.0, 2.0, 3.0]
    >>> seen = xr.DataArray(np.zeros((1, 4)), {"time": time}, dims[2:], name="observation")
    >>> made = xr.DataArray(copies, {"time": time}, dims, name="observation")
    >>> groups = {"observed_data": seen, "posterior_predictive": made}
    >>> tree = xr.DataTree.from_dict({name: data.to_dataset() for name, data in groups.items()})
    >>> draw_predictive(tree, plt.figure().subplots(), time_unit="ms").get_xlabel()
    'time (ms)'
    """
    seen = tree["observed_data"].observation.isel(sample=sample)
    copies = tree["posterior_predictive"].observation.isel(chain=0, sample=sample)
    if seen.ndim == 2:
        last = seen.dims[-1]
        seen, copies = seen.isel({last: channel}), copies.isel({last: channel})
    axis = str(seen.dims[0])
    place = seen[axis].values
    for level, opacity in BANDS:
        low, high = np.nanquantile(copies.values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        look = {"color": CPU, "alpha": opacity, "lw": 0}
        ax.fill_between(place, low, high, label=f"{100 * level:g} % band", **look)
    ax.plot(place, seen.values, ".", color=SERIES[1], ms=3.5, label="observed")
    label = f"{axis} ({time_unit})" if time_unit else f"number along {axis}"
    ax.set(xlabel=label, ylabel=observed, xlim=(place[0], place[-1]))
    legend_above(ax)
    return ax
