"""Total time over samples, a line and a band for each machine."""

# Matplotlib annotates only part of what it gives.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Bounds: TypeAlias = tuple[int | float, int | float, int | float]  # least, as estimated, most
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def draw(
    lines: Sequence[tuple[str, Bounds, Bounds]],
    crossings: Sequence[tuple[float, str]],
    samples: int,
    ax: Any = None,
) -> Any:
    """Draw the seconds of each machine over samples, and where the fastest one changes.

    Args:
        lines: name, set-up and seconds of a sample (least, as estimated, most) of each machine.
        crossings: from how many samples on which machine is the fastest of all.
        samples: that were asked for; a grey line.
        ax: axes to draw on; None: new ones.

    Returns:
        The axes.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(7, 4.5), layout="constrained")[1]
    marks = [at for at, _ in crossings if at >= 1]
    low, high = min([samples, *marks]) / 100, max([samples, *marks]) * 100
    at = np.geomspace(max(1.0, low), high, 200)
    ends: list[float] = []
    for i, (name, setup_s, sample_s) in enumerate(lines):
        colour, style = COLOURS[i % len(COLOURS)], "-" if i < len(COLOURS) else "--"
        least, time_s, most = (a + b * at for a, b in zip(setup_s, sample_s, strict=True))
        ax.fill_between(at, least, most, color=colour, alpha=0.15, linewidth=0)
        ax.plot(at, time_s, style, color=colour, label=name)
        ends += [least[0], most[-1]]
    for where, _ in crossings:
        if where >= 1:
            time_s = min(setup[1] + where * one[1] for _, setup, one in lines)
            ax.plot(where, time_s, "o", color="black", markersize=5)
    ax.axvline(samples, color="grey", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlim=(at[0], at[-1]), ylim=(min(ends) / 2, max(ends) * 2))
    ax.set(xlabel="samples, every epoch counted", ylabel="set-up and training (s)")
    ax.legend(frameon=False, fontsize="small")
    return ax
