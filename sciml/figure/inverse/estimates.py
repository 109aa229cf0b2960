"""Estimates against the truth, one panel for each parameter."""

import numpy as np
import xarray as xr

from sciml._labels import by_name, truths
from sciml.diagnose.pairs import belonging
from sciml.figure.style import MUTED, NARROW, WIDE


def draw_estimates(
    estimates: xr.Dataset, truth: xr.DataArray | xr.Dataset, axes: np.ndarray
) -> np.ndarray:
    """Draw what was estimated over what was true; the diagonal is a perfect estimate.

    Args:
        estimates: `estimate (sample, parameter)`, as `Fit.predict` returns it; with `spread` each
            point gets a bar of one standard deviation to both sides, and samples that are
            `flagged` another colour.
        truth: `(sample, parameter)`, or a data set that has them; put in order by their names.
        axes: one for each parameter.

    Raises:
        ValueError: there are other numbers of samples, parameters or axes.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> names = {"parameter": ["a", "b"]}
    >>> truth = xr.DataArray(np.eye(2), dims=("sample", "parameter"), coords=names)
    >>> guess = xr.Dataset({"estimate": truth})
    >>> figure.draw_estimates(guess, truth, Figure().subplots(1, 2)).shape
    (2,)
    """
    axes = np.atleast_1d(np.asarray(axes))
    found = estimates.estimate.transpose("sample", "parameter")
    names = tuple(map(str, found.parameter.values))
    known = by_name(belonging(truths(truth), found, "the truth"), names, "the truth")
    if found.shape != known.shape or len(axes) != found.sizes["parameter"]:
        raise ValueError(
            f"estimates have shape {found.shape}, truths {known.shape}, and there are {len(axes)} "
            "axes; estimates and truths must be of one shape, with one axes for each parameter"
        )
    flagged = estimates.flagged.values if "flagged" in estimates else np.zeros(len(found), bool)
    for i, ax in enumerate(axes):
        true, guess = known[:, i], found.values[:, i]
        ends = (min(true.min(), guess.min()), max(true.max(), guess.max()))
        ax.plot(ends, ends, color=MUTED, lw=0.8, zorder=1)
        if "spread" in estimates:
            bars = estimates.spread.values[:, i]
            ax.errorbar(true, guess, bars, fmt="none", ecolor=NARROW, elinewidth=0.5, alpha=0.3)
        ax.scatter(true[~flagged], guess[~flagged], s=4, color=NARROW, lw=0, label="estimate")
        if flagged.any():
            ax.scatter(true[flagged], guess[flagged], s=8, color=WIDE, lw=0, label="flagged")
        ax.set(xlabel=f"true {names[i]}", ylabel=f"estimated {names[i]}")
    axes[0].legend(loc="upper left", markerscale=2)
    return axes
