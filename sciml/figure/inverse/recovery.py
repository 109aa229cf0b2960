"""True against estimated parameters: Figure 3."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.palette import symbol
from sciml.figure.style import MUTED, NARROW, QUIESCENT, checked


def draw_recovery(dataset: xr.Dataset, axes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Draw estimates against the truth: a row of panels for each net, one for each parameter.

    Args:
        dataset: as `sciml.studies.figure3` returns it.
        axes: shape (nets, parameters).
        seed: which repetition to draw; the panels tell the scores of all.

    Raises:
        ValueError: the axes do not fit the data.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> truth = np.linspace(0.0, 1.0, 9)[:, None]
    >>> found = xr.Dataset({"truth": (("sample", "parameter"), truth)}, {"parameter": ["a"]})
    >>> found["estimate"] = ("units", "seed", "sample", "parameter"), truth[None, None] + 0.01
    >>> found["spiking"] = "sample", truth[:, 0] > 0.5
    >>> for score in ("r2", "mse", "median_se", "p90_se"):
    ...     found[score] = ("units", "seed", "regime", "parameter"), np.full((1, 1, 3, 1), 0.9)
    >>> found = found.assign_coords(units=[32], seed=[0], regime=["all", "spiking", "quiescent"])
    >>> figure.draw_recovery(found, Figure().subplots(1, 1, squeeze=False))[0, 0].get_xlabel()
    'true'
    """
    axes = checked(axes, (dataset.sizes["units"], dataset.sizes["parameter"]))
    for row, units in zip(axes, dataset.units.values, strict=True):
        for ax, name in zip(row, dataset.parameter.values, strict=True):
            draw_panel(dataset.sel(units=units, parameter=name), ax, seed)
            ax.set_title(f"{units} units, {symbol(name)}", loc="left")
    axes.flat[0].legend(loc="lower right", markerscale=3)
    return axes


def draw_panel(part: xr.Dataset, ax: Axes, seed: int) -> None:
    """Draw one parameter of one net, coloured by regime, with its scores over all seeds."""
    truth, estimate = part.truth.values, part.estimate.sel(seed=seed).values
    limits = (truth.min(), truth.max())
    margin = 0.05 * (limits[1] - limits[0])
    limits = (limits[0] - margin, limits[1] + margin)
    ax.plot(limits, limits, color=MUTED, lw=0.8, zorder=1)
    for name, colour, mask in (
        ("spiking", NARROW, part.spiking.values),
        ("quiescent", QUIESCENT, ~part.spiking.values),
    ):
        ax.scatter(truth[mask], estimate[mask], s=3, color=colour, label=name, lw=0, zorder=2)
    ax.set(xlim=limits, ylim=limits, xlabel="true", ylabel="estimated", aspect="equal")
    box = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1.5}
    ax.text(0.03, 0.97, score_text(part), transform=ax.transAxes, va="top", fontsize=7.5, bbox=box)


def score_text(part: xr.Dataset) -> str:
    """Return the scores of one panel: means over the seeds, R² with its range."""
    everything = part.sel(regime="all")
    mean = everything.mean("seed")
    low, high = float(everything.r2.min()), float(everything.r2.max())
    lines = [
        f"R² {float(mean.r2):.4f}  ({low:.4f}–{high:.4f})",
        f"MSE {float(mean.mse):.1e}",
        f"median SE {float(mean.median_se):.1e}",
        f"90 % SE {float(mean.p90_se):.1e}",
    ]
    for regime in ("spiking", "quiescent"):
        lines.append(f"{regime}: R² {float(part.r2.sel(regime=regime).mean('seed')):.4f}")
    return "\n".join(lines)
