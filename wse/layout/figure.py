"""Drawings of layouts and placements on the wafer."""

from itertools import cycle
from typing import Any

import numpy as np

from wse.layout.pieces import Wafer
from wse.layout.pipeline import Placement
from wse.layout.plan import Placed

NARROW = 0.05  # of the wafer's width: too little for a name
CORNER = 10  # PEs across and down that are magnified
# Okabe and Ito's palette.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")


def draw(what: Placed | Placement, wafer: Wafer | None = None, ax: Any = None) -> Any:
    """Draw one layer's layout, or a placement of all layers, to scale on the wafer.

    A layout shows the parts of the batch, and magnified the first PEs: which part of the channels
    each holds, with lines between parts of the image. A placement shows each layer's rectangle.

    Args:
        what: a layer of `wse.layout.plan`, or a placement of `wse.layout.pipeline`.
        wafer: the grid; None: the placement's own, or one CS-2.
        ax: where to draw; None: on a new figure.

    >>> from wse import layout
    >>> placed = layout.pipeline(layout.dense_kernels(784, 500, 300, 10), pes=3660)
    >>> layout.draw(placed).get_title()
    '3660 PEs, 462 cycles a sample'
    """
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=(5.5, 6), layout="constrained").subplots()
    if isinstance(what, Placement):
        grid = wafer or what.wafer
        _placement(ax, what, grid)
    else:
        grid = wafer or Wafer.of()
        _layout(ax, what, grid)
    ax.set(
        xlim=(0, grid.columns),
        ylim=(grid.rows, 0),
        xlabel="column of PEs",
        ylabel="row of PEs",
        aspect="equal",
    )
    return ax


def _layout(ax: Any, placed: Placed, wafer: Wafer) -> None:
    from matplotlib.patches import Rectangle as Patch

    layout = placed.layout
    tall = layout.rows / layout.batch
    for n in range(layout.batch):
        colour = ("#0072B2", "#56B4E9")[n % 2]
        ax.add_patch(Patch((0, n * tall), layout.columns, tall, facecolor=colour, alpha=0.6))
        ax.annotate(f"samples, part {n + 1}", (4, n * tall + 4), va="top", fontsize=7)
    _corner(ax.inset_axes((0.3, 0.3, 0.5, 0.5)), placed)
    image = " x ".join(map(str, layout.size))
    title = f"{placed.shape.name}: {layout.batch} parts of the batch, image in {image},"
    share = 100 * layout.pes / wafer.pes
    ax.set_title(f"{title}\nchannels in {layout.channels}; {share:.0f} % of the PEs", fontsize=9)


def _corner(ax: Any, placed: Placed) -> None:
    """The first PEs, coloured by channels, with lines between parts of the image."""
    from matplotlib.colors import ListedColormap

    layout = placed.layout
    columns, rows = min(layout.columns, CORNER), min(layout.rows, CORNER)
    down, across = np.arange(rows) % layout.down, np.arange(columns) % layout.across
    channels = across[None, :] + layout.across * down[:, None]
    ax.imshow(
        channels % len(COLOURS),
        extent=(0, columns, rows, 0),
        cmap=ListedColormap(COLOURS),
        vmin=-0.5,
        vmax=len(COLOURS) - 0.5,
        interpolation="nearest",
    )
    for y, x in np.ndindex(rows, columns):
        ax.annotate(str(channels[y, x]), (x + 0.5, y + 0.5), ha="center", va="center", fontsize=6)
    for x in range(0, columns + 1, layout.across):
        ax.axvline(x, color="black", linewidth=1)
    for y in range(0, rows + 1, layout.down):
        ax.axhline(y, color="black", linewidth=1)
    ax.set_title("the first PEs: part of the channels", fontsize=7)
    ax.tick_params(labelsize=6)


def _placement(ax: Any, placement: Placement, wafer: Wafer) -> None:
    from matplotlib.patches import Rectangle as Patch

    for x, colour in zip(placement.rectangles, cycle(COLOURS), strict=False):
        ax.add_patch(
            Patch((x.column, x.row), x.columns, x.rows, facecolor=colour, edgecolor="black")
        )
        ax.annotate(
            x.kernel.name,
            (x.column + x.columns / 2, x.row + x.rows / 2),
            ha="center" if x.columns > NARROW * wafer.columns else "left",
            va="center",
            fontsize=8,
        )
    ax.set_title(f"{placement.pes} PEs, {placement.cycles_per_sample} cycles a sample")
