"""Posteriors of one observation beside each other: every parameter, and every pair of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from scipy.ndimage import gaussian_filter

from sciml._labels import Labelled, parameter_names, variable
from sciml.figure.palette import colour, line, symbol
from sciml.figure.style import legend_above

BINS = 40  # assumed: across an axis
SMOOTH = 1.2  # assumed: standard deviation of the kernel, in bins
SHARES = (0.5, 0.9)  # of the draws, inside the two contours
TAILS = (0.002, 0.998)  # assumed: quantiles between which the axes reach

Draws = Float[np.ndarray, "draw param"]


def draw_pairs(
    posteriors: Mapping[str, Labelled], axes: Any, *, truth: Labelled | None = None
) -> Any:
    """Draw posteriors of one observation: densities on the diagonal, pairs below it.

    The two contours of a pair are of highest density and hold 50 and 90 % of the draws, of which
    a histogram is smoothed; a few hundred draws are enough, thousands draw quieter lines.

    Args:
        posteriors: draws `(draw, parameter)` under the names that the legend gives them, as
            `{"net": fit.sample(data).posterior[:, 0]}`; arrays, or DataArrays, whose parameters
            may come in another order. Draws with NaN are left out.
        axes: a square of axes, one row for each parameter; those above the diagonal are emptied.
        truth: the parameters `(parameter)`, drawn in black.

    Returns:
        The axes.

    Raises:
        ValueError: no posterior, other parameters in one of them, more dimensions than two, fewer
            than two draws, a truth that is not finite, or another number of axes.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> draws = np.random.default_rng(0).normal(size=(300, 2))
    >>> axes = figure.draw_pairs({"posterior": draws}, Figure().subplots(2, 2))
    >>> axes.shape
    (2, 2)
    """
    names, found = checked(posteriors)
    grid: Any = np.array(axes, dtype=object)
    if grid.size != len(names) ** 2:
        raise ValueError(
            f"axes are {grid.size}; {len(names)} parameters need {len(names) ** 2}: "
            f"pass plt.subplots({len(names)}, {len(names)})[1]"
        )
    grid = grid.reshape(len(names), len(names))
    known = None if truth is None else in_order(truth, ("parameter",), names)[1]
    if known is not None and not np.isfinite(known).all():
        raise ValueError(f"the truth is {known}; it must be finite, or left out")
    ranges = [reach(found, known, i) for i in range(len(names))]
    for row, column in np.ndindex(grid.shape):
        ax, ends = grid[row, column], (ranges[column], ranges[row])
        if column > row:
            ax.set_axis_off()
        elif column == row:
            one(ax, found, row, ends[0])
        else:
            pair(ax, found, (column, row), ends)
            ax.set_ylim(ends[1])
        if column <= row:
            ax.set_xlim(ends[0])
            if known is not None:
                mark(ax, float(known[column]), float(known[row]) if column < row else None)
    label(grid, names)
    return axes


def checked(posteriors: Mapping[str, Labelled]) -> tuple[tuple[str, ...], dict[str, Draws]]:
    """Return the names of the parameters, and the finite draws of each posterior."""
    names, found = None, {}
    for name, draws in posteriors.items():
        names, values = in_order(draws, ("draw", "parameter"), names)
        found[name] = values[np.isfinite(values).all(axis=1)]
        if len(found[name]) < 2:
            raise ValueError(f"{name!r} has {len(found[name])} finite draws; it must have two")
    if names is None:
        raise ValueError("there is no posterior; pass at least one, as in {'net': draws}")
    return names, found


def in_order(
    data: Labelled, dims: tuple[str, ...], names: tuple[str, ...] | None
) -> tuple[tuple[str, ...], Float[np.ndarray, "..."]]:
    """Return the names of the parameters, the last axis, and values in the order of `names`."""
    values = variable(data, "posterior", dims)
    if values.ndim != len(dims):
        raise ValueError(
            f"draws or truth have the shape {values.shape}; it must be ({', '.join(dims)}): "
            "choose one observation, as in posterior[:, 0]"
        )
    own = parameter_names(values, values.shape[-1])
    if names is not None and isinstance(values, np.ndarray) and len(own) == len(names):
        own = names  # an array without names is taken to be in order
    if names is not None and sorted(own) != sorted(names):
        raise ValueError(f"the parameters are {', '.join(own)}; before: {', '.join(names)}")
    order = [own.index(name) for name in names or own]
    return names or own, np.asarray(values, float)[..., order]


def reach(found: dict[str, Draws], known: np.ndarray | None, place: int) -> tuple[float, float]:
    """Return the ends of a parameter's axis: nearly all draws, and the truth."""
    ends = [np.quantile(draws[:, place], TAILS) for draws in found.values()]
    if known is not None:
        ends.append(np.full(2, known[place]))
    low, high = float(np.min(ends)), float(np.max(ends))
    margin = 0.05 * (high - low) or 0.05 * abs(low) or 1.0  # draws that are all equal
    return low - margin, high + margin


def one(ax: Axes, found: dict[str, Draws], place: int, ends: tuple[float, float]) -> None:
    """Draw the density of one parameter under each posterior."""
    edges = np.linspace(*ends, BINS + 1)
    for i, (name, draws) in enumerate(found.items()):
        height, _ = np.histogram(draws[:, place], edges)
        density = gaussian_filter(height / (len(draws) * np.diff(edges)), SMOOTH)
        ax.plot((edges[1:] + edges[:-1]) / 2, density, color=colour(i), ls=line(i), label=name)
    ax.set(ylim=(0, None), yticks=[])


def pair(
    ax: Axes,
    found: dict[str, Draws],
    places: tuple[int, int],
    ends: tuple[tuple[float, float], tuple[float, float]],
) -> None:
    """Draw the contours of two parameters under each posterior."""
    for i, draws in enumerate(found.values()):
        x, y = draws[:, places[0]], draws[:, places[1]]
        count, left, low = np.histogram2d(x, y, BINS, ends)
        density = gaussian_filter(count, SMOOTH, mode="constant")
        levels = levels_of(density, count / len(draws))
        levels = levels[levels > 0]
        if levels.size:
            middles = [(edges[1:] + edges[:-1]) / 2 for edges in (left, low)]
            ax.contour(*middles, density.T, levels, colors=colour(i), linestyles=line(i))


def levels_of(
    density: Float[np.ndarray, "x y"], share: Float[np.ndarray, "x y"]
) -> Float[np.ndarray, " level"]:
    """Return the densities, increasing, above which cells have the `SHARES` of the draws.

    The draws are counted as they are: smoothing widens the density, but not what a contour holds.
    """
    order = np.argsort(density, axis=None)[::-1]
    within = np.cumsum(share.ravel()[order])
    places = np.minimum(np.searchsorted(within, SHARES), order.size - 1)
    return np.unique(density.ravel()[order[places]])


def mark(ax: Axes, x: float, y: float | None) -> None:
    """Draw the truth: a line for one parameter, a cross for two."""
    if y is None:
        ax.axvline(x, color="black", lw=1)
    else:
        ax.plot([x], [y], "+", color="black", ms=9, mew=1.5)


def label(grid: Any, names: tuple[str, ...]) -> None:
    """Name the parameters at the outer axes, and the posteriors in the empty corner."""
    for column, name in enumerate(names):
        grid[-1, column].set_xlabel(symbol(name))
        if column:
            grid[column, 0].set_ylabel(symbol(name))
    for row, column in np.ndindex(grid.shape):
        if column < row < len(names) - 1 or row == column < len(names) - 1:
            grid[row, column].tick_params(labelbottom=False)
        if 0 < column < row:
            grid[row, column].tick_params(labelleft=False)
    if len(names) > 1:
        corner = grid[0, 1]
        corner.legend(*grid[0, 0].get_legend_handles_labels(), loc="upper left", frameon=False)
    else:
        legend_above(grid[0, 0])
