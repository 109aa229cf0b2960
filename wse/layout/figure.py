"""Drawings of layouts and placements on the wafer."""

from typing import Any

from wse.layout.pipeline import Placement
from wse.layout.plan import Placed
from wse.layout.shape import Wafer

# Okabe and Ito's palette.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")


def draw(what: Placed | Placement, wafer: Wafer | None = None, ax: Any = None) -> Any:
    """Draw one layer's layout, or a placement of all layers, to scale on the wafer.

    A layout is coloured by the channels that each PE holds, with lines where samples or parts of
    the image begin. A placement shows each layer's rectangle.

    Args:
        what: a layer of `wse.layout.plan`, or a placement of `wse.layout.pipeline`.
        wafer: the grid; None: the placement's own, or one CS-2.
        ax: where to draw; None: on a new figure.

    Returns:
        The axes.
    """
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=(5.5, 6), layout="constrained").subplots()
    if isinstance(what, Placement):
        grid = wafer or what.wafer
        _placement(ax, what)
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
    import numpy as np
    from matplotlib.colors import ListedColormap

    layout = placed.layout
    across = np.arange(layout.columns) % layout.across
    down = np.arange(layout.rows) % layout.down
    channels = across[None, :] + layout.across * down[:, None]
    ax.imshow(
        channels % len(COLOURS),
        extent=(0, layout.columns, layout.rows, 0),
        cmap=ListedColormap(COLOURS),
        vmin=0,
        vmax=len(COLOURS) - 1,
        interpolation="nearest",
    )
    for n in range(1, layout.batch):
        ax.axhline(n * layout.rows / layout.batch, xmax=1, color="black", linewidth=0.8)
    share = 100 * layout.pes / wafer.pes
    ax.set_title(f"{placed.shape.name}: {layout}\n{share:.0f} % of PEs; colours: channels")


def _placement(ax: Any, placement: Placement) -> None:
    from matplotlib.patches import Rectangle as Patch

    for i, x in enumerate(placement.rectangles):
        colour = COLOURS[i % len(COLOURS)]
        ax.add_patch(
            Patch((x.column, x.row), x.columns, x.rows, facecolor=colour, edgecolor="black")
        )
        ax.annotate(
            x.kernel.name,
            (x.column + x.columns / 2, x.row + x.rows / 2),
            ha="center",
            va="center",
            fontsize=8,
        )
    ax.set_title(f"{placement.pes} PEs, {placement.cycles_per_sample} cycles a sample")
