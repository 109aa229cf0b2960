"""Times and rates against the size of a net: Table 4 and Figure 2 as drawings."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sciml.figure.style import CPU, MUTED, WAFER

# Published results are open markers on dashed lines, ours are filled ones on solid lines.
THEIRS: Any = {"ls": "--", "mfc": "white", "ms": 8, "zorder": 3}
OURS: Any = {"ls": "-", "ms": 5, "zorder": 4}
LOOKS: dict[str, Any] = {
    "CPU, published": {"label": "4-core CPU, published", "color": CPU, **THEIRS},
    "CPU, measured": {"label": "this CPU, measured", "color": CPU, **OURS},
    "CS-2, published": {"label": "CS-2, published", "color": WAFER, **THEIRS},
    "CS-2, predicted": {"label": "CS-2, model (calibrated)", "color": WAFER, **OURS},
}
PARTS: dict[str, Any] = {
    "total_s": {"label": "total", "marker": "o", "lw": 1.8, "alpha": 1.0},
    "setup_s": {"label": "set-up", "marker": "^", "lw": 0.9, "alpha": 0.55},
    "train_s": {"label": "training", "marker": "s", "lw": 0.9, "alpha": 0.75},
}


def draw_rates(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw samples per second against parameters: the rows of Table 4 that are no emulation.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> rows = ["CPU, published", "CPU, measured", "CS-2, published", "CS-2, predicted"]
    >>> rates = {"samples_per_s": (("row", "units"), np.full((4, 2), 1e3))}
    >>> table = xr.Dataset(rates, {"row": rows, "parameters": ("units", [4e4, 2e6])})
    >>> figure.draw_rates(table, Figure().subplots()).get_ylabel()
    'samples / s'
    """
    for row in LOOKS:
        part = dataset.sel(row=row)
        ax.plot(part.parameters, part.samples_per_s, "o", lw=1.5, **LOOKS[row])
    ax.set(xscale="log", yscale="log", xlabel="trainable parameters", ylabel="samples / s")
    ax.legend()
    return ax


def draw_runtimes(dataset: xr.Dataset, ax: Axes) -> Axes:
    """Draw set-up, training and total times against parameters, and the crossover.

    The upper margin says from how many samples the CS-2 wins over this CPU.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from matplotlib.figure import Figure
    >>> from sciml import figure
    >>> rows = ["CPU, published", "CPU, measured", "CS-2, published", "CS-2, predicted"]
    >>> one = ("row", "units"), np.ones((4, 1))
    >>> times = {"setup_s": one, "train_s": one, "total_s": one}
    >>> labels = {"row": rows, "units": [32], "parameters": ("units", [4e4])}
    >>> found = xr.Dataset(times, labels, {"samples": 1000, "epochs": 1000})
    >>> found["crossover_samples"] = "units", [2e5]
    >>> figure.draw_runtimes(found, Figure().subplots()).get_xlabel()
    'trainable parameters'
    """
    dataset = dataset.sel(row=list(LOOKS))
    for row in LOOKS:
        part = dataset.sel(row=row)
        for name, look in PARTS.items():
            ax.plot(part.parameters, part[name], **{**LOOKS[row], **look})
    times = dataset[list(PARTS)].to_dataarray()
    low, high = float(times.min()), float(times.max())
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="trainable parameters",
        ylabel=f"time for {dataset.attrs['samples'] * dataset.attrs['epochs']:,} samples / s",
        ylim=(low / 1.6, high * 12),
    )
    annotate_crossover(dataset, ax, high * 2.2)
    add_legend(ax)
    return ax


def add_legend(ax: Axes) -> None:
    """Explain colours and fills (who), and markers (which time), beside the axes."""
    who = [Line2D([], [], marker="o", lw=1.8, **look) for look in LOOKS.values()]
    what = [Line2D([], [], color=MUTED, **look) for look in PARTS.values()]
    ax.legend(handles=[*who, *what], loc="upper left", bbox_to_anchor=(1.0, 1.0))


def annotate_crossover(dataset: xr.Dataset, ax: Axes, height_s: float) -> None:
    """Write above each net from how many samples the CS-2 wins."""
    for units, parameters, samples in zip(
        dataset.units.values,
        dataset.parameters.values,
        dataset.crossover_samples.values,
        strict=True,
    ):
        wins = (
            f"CS-2 wins from\n{in_words(samples)}" if np.isfinite(samples) else "CS-2 wins:\nnever"
        )
        ax.axvline(parameters, color=MUTED, lw=0.5, zorder=0)
        ax.text(
            parameters,
            height_s,
            f"{units} units\n{wins}",
            ha="center",
            va="bottom",
            fontsize=7.5,
            bbox={"fc": "white", "ec": "none", "pad": 1},
        )
    ax.margins(x=0.14)


def in_words(samples: float) -> str:
    """Return a number of samples as people say it, to three digits."""
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if samples >= size:
            return f"{samples / size:.3g} {word}"
    return f"{samples:.0f} samples"
