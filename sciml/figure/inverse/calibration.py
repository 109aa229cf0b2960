"""Ranks, coverage and TARP: how calibrated posteriors are."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.figure.inverse.contraction import draw_contraction
from sciml.figure.palette import BAND, colour, line, symbol
from sciml.figure.style import MUTED, checked, legend_above, worst

FILL: Any = {"color": BAND, "alpha": 0.55, "lw": 0, "zorder": 0}


def draw_ranks(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw the histogram of ranks of each parameter, and the binomial interval of one bin.

    ∪ says over-confident, ∩ under-confident, a slope biased.

    Args:
        dataset: as `sciml.diagnose.sbc` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.sbc(posterior, truth)
    >>> ax = figure.draw_ranks(found, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    edges = np.linspace(0, 1, dataset.sizes["bin"] + 1)
    low, high = float(dataset.count_low), float(dataset.count_high)
    ax.fill_between(
        [0, 1], low, high, label=f"{100 * dataset.attrs['probability']:g} % of bins", **FILL
    )
    ax.axhline(dataset.attrs["samples"] / dataset.sizes["bin"], color=MUTED, lw=0.8, zorder=1)
    for i, name in enumerate(dataset.parameter.values):
        counts = dataset["count"].sel(parameter=name).values
        ax.stairs(counts, edges, color=colour(i), ls=line(i), lw=1.5, label=symbol(name))
    top = max(high, float(dataset["count"].max()))
    ax.set(xlabel="rank of the truth / draws", ylabel="samples", xlim=(0, 1), ylim=(0, 1.1 * top))
    legend_above(ax)
    return ax


def draw_ecdf(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw the empirical distribution of the ranks minus the uniform one, and its band.

    A calibrated posterior stays within the band all along with the probability that it names.
    Above the band first and below it last says over-confident, the reverse under-confident; above
    all along says that truths lie below the draws.

    Args:
        dataset: as `sciml.diagnose.sbc` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.sbc(posterior, truth)
    >>> ax = figure.draw_ecdf(found, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    level = dataset.level.values
    ax.fill_between(
        closed(level, 1.0),
        closed(dataset.lower.values - level),
        closed(dataset.upper.values - level),
        label=band_label(dataset),
        **FILL,
    )
    ax.axhline(0, color=MUTED, lw=0.8, zorder=1)
    told = worst(-dataset.ecdf_p)
    for i, name in enumerate(dataset.parameter.values):
        off = dataset.ecdf.sel(parameter=name).values - level
        text = f"{symbol(name)} ({p_text(dataset.ecdf_p.sel(parameter=name))})"
        look = {"color": colour(i), "ls": line(i), "label": text if i in told else None}
        ax.plot(closed(level, 1.0), closed(off), lw=1.5, **look)
    ax.set(xlabel="rank of the truth / draws", ylabel="ECDF − uniform", xlim=(0, 1))
    legend_above(ax, of=dataset.sizes["parameter"])
    return ax


def draw_coverage(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw the coverage of credible regions against their level, with intervals and the band.

    Below the diagonal is over-confident, above it under-confident. The legend tells the largest
    deviation in points of per cent.

    Args:
        dataset: as `sciml.diagnose.coverage` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.coverage(posterior, truth)
    >>> ax = figure.draw_coverage(found, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    level = 100 * dataset.level.values
    band(ax, dataset)
    told = worst(np.abs(dataset.worst_points))
    for i, name in enumerate(dataset.parameter.values):
        one = dataset.sel(parameter=name)
        off = f"{float(one.worst_points):+.1f}".replace("-", "−")
        share = 100 * one.coverage.values
        bars = np.abs(100 * np.stack([one.low.values, one.high.values]) - share)
        look: Any = {"color": colour(i), "ls": line(i), "lw": 1.5, "elinewidth": 0.7}
        text = f"{symbol(str(name))}: {off} points" if i in told else None
        ax.errorbar(level, share, bars, label=text, **look)
    ax.set_ylabel("truths inside (%)")
    legend_above(ax, of=dataset.sizes["parameter"])
    return ax


def draw_tarp(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw the coverage of balls around reference points against their level, with the band.

    Args:
        dataset: as `sciml.diagnose.tarp` returns it.
        ax: to draw on.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.tarp(posterior, truth)
    >>> ax = figure.draw_tarp(found, Figure().subplots())
    >>> bool(ax.get_ylabel())
    True
    """
    band(ax, dataset)
    level, share = closed(dataset.level.values, 1.0), closed(dataset.coverage.values, 1.0)
    ax.plot(
        100 * level, 100 * share, color=colour(0), lw=1.5, label=f"TARP ({p_text(dataset.p_value)})"
    )
    ax.set_ylabel("truths inside (%)")
    legend_above(ax)
    return ax


def draw_calibration(tree: xr.DataTree, axes: np.ndarray) -> np.ndarray:
    """Draw ranks, coverage, TARP and contraction in four panels.

    Args:
        tree: as `sciml.diagnose.calibration` returns it.
        axes: shape (2, 2).

    Raises:
        ValueError: the axes have another shape.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import diagnose, figure
    >>> draw = np.random.default_rng(0)
    >>> truth, posterior = draw.normal(size=(60, 1)), draw.normal(size=(40, 60, 1))
    >>> found = diagnose.calibration(posterior, truth)
    >>> figure.draw_calibration(found, Figure().subplots(2, 2)).shape
    (2, 2)
    """
    axes = checked(axes, (2, 2))
    draw_ecdf(tree["sbc"].to_dataset(), axes[0, 0])
    draw_coverage(tree["coverage"].to_dataset(), axes[0, 1])
    draw_tarp(tree["tarp"].to_dataset(), axes[1, 0])
    draw_contraction(tree["contraction"].to_dataset(), axes[1, 1])
    return axes


def band(ax: Axes, dataset: xr.Dataset) -> None:
    """Draw the diagonal and the band around it, on axes in per cent."""
    level = closed(dataset.level.values, 1.0)
    ax.fill_between(
        100 * level,
        100 * closed(dataset.lower.values, 1.0),
        100 * closed(dataset.upper.values, 1.0),
        label=band_label(dataset),
        **FILL,
    )
    ax.plot([0, 100], [0, 100], color=MUTED, lw=0.8, zorder=1)
    ax.set(xlabel="level of the region (%)", xlim=(0, 100), ylim=(0, 100))


def closed(values: np.ndarray, end: float = 0.0) -> np.ndarray:
    """Return a curve with its known ends: 0, and `end`."""
    return np.concatenate([[0.0], values, [end]])


def band_label(dataset: xr.Dataset) -> str:
    """Return how many calibrated curves the band holds."""
    return f"{100 * dataset.attrs['probability']:g} % band"


def p_text(value: Any) -> str:
    """Return a p-value to two digits, or the bound it is below."""
    p_value = float(value)
    return f"p = {p_value:.2g}" if p_value >= 0.001 else "p < 0.001"
