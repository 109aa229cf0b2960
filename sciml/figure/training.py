"""How a training went."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.style import NARROW, WIDE


def draw_history(history: xr.Dataset, ax: Axes) -> Axes:
    """Draw the losses by epoch; on a logarithmic axis where they are all positive.

    Args:
        history: `loss (epoch)`, and `validation_loss (validated_epoch)`, of which the least is
            marked: those weights are kept.
        ax: the axes.

    >>> import matplotlib.pyplot as plt
    >>> import xarray as xr
    >>> losses = {"loss": ("epoch", [3.0, 2.0, 1.5]), "epoch": [1, 2, 3]}
    >>> held = {"validation_loss": ("validated_epoch", [2.0, 2.2]), "validated_epoch": [2, 3]}
    >>> draw_history(xr.Dataset(losses | held), plt.figure().subplots()).get_yscale()
    'log'
    """
    ax.plot(history.epoch, history.loss, color=NARROW, lw=1, label="training")
    held = history.validation_loss
    if held.size:
        ax.plot(history.validated_epoch, held, color=WIDE, lw=1.2, label="held out")
        best = int(np.nanargmin(held.values))
        place = (float(history.validated_epoch[best]), float(held[best]))
        ax.plot(*place, "o", color=WIDE, ms=5, label=f"kept: epoch {place[0]:.0f}")
    positive = bool((history.loss > 0).all() and (held > 0).all())
    ax.set(xlabel="epoch", ylabel="loss", yscale="log" if positive else "linear")
    ax.legend(loc="upper right")
    return ax
