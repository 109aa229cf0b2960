"""How much posteriors shrank, and where the truth lies in them."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.palette import MARKERS, colour, symbol
from sciml.figure.style import MUTED, legend_above, worst

WIDEST = 5.0  # posterior standard deviations; truths further off are drawn at the edge
SHOWN = 1000  # samples, so that figures stay light


def draw_contraction(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw the z-score of each sample against its contraction.

    Posteriors that learnt much lie to the right, and right ones within |z| < 2 for the most part.

    Args:
        dataset: as `sciml.diagnose.contraction` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.contraction(posterior, truth)
    >>> ax = figure.draw_contraction(found, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    shown = dataset.isel(sample=slice(SHOWN))
    for level in (-2, 0, 2):
        ax.axhline(level, color=MUTED, lw=0.8, ls="-" if level == 0 else ":", zorder=0)
    lowest, told = 0.0, worst(np.abs(dataset.z_mean) + np.abs(dataset.z_sd - 1))
    for i, name in enumerate(dataset.parameter.values):
        one = shown.sel(parameter=name)
        z = np.clip(one.z_score.values, -WIDEST, WIDEST)
        spread = f"z = {float(one.z_mean):.2f} ± {float(one.z_sd):.2f}".replace("-", "−")
        ax.scatter(
            100 * one.contraction,
            z,
            s=8,
            lw=0,
            alpha=0.6,
            marker=MARKERS[i % len(MARKERS)],
            color=colour(i),
            label=f"{symbol(str(name))}: {spread}" if i in told else None,
        )
        lowest = min(lowest, float(one.contraction.quantile(0.01)))
    ax.set(
        xlabel="contraction of the variance (%)",
        ylabel="(mean − truth) / posterior sd",
        xlim=(100 * max(lowest, -1.0) - 2, 102),
        ylim=(-WIDEST - 0.4, WIDEST + 0.4),
    )
    legend_above(ax, columns=1, of=dataset.sizes["parameter"])
    return ax
