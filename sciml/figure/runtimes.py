"""Times and rates against the size of a net: Table 4 and Figure 2 as drawings."""

from typing import TYPE_CHECKING

import numpy as np

from sciml.figure.style import CPU, MUTED, WAFER

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# Published results are open and dashed, ours are filled and solid.
LOOKS = {
    "CPU, published": {"color": CPU, "ls": "--", "marker": "o", "mfc": "white"},
    "CPU, measured": {"color": CPU, "ls": "-", "marker": "o"},
    "CS-2, published": {"color": WAFER, "ls": "--", "marker": "s", "mfc": "white"},
    "CS-2, predicted": {"color": WAFER, "ls": "-", "marker": "s"},
}
NAMES = {
    "CPU, published": "4-core CPU, published",
    "CPU, measured": "this CPU, measured",
    "CS-2, published": "CS-2, published",
    "CS-2, predicted": "CS-2, model (calibrated)",
}


def draw_rates(dataset: "xr.Dataset", ax: "Axes") -> "Axes":
    """Draw samples per second against parameters, one line for each row of Table 4."""
    for row in dataset["row"].values:
        part = dataset.sel(row=row)
        ax.plot(part.parameters, part.samples_per_s, label=NAMES[row], lw=1.5, **LOOKS[row])
    ax.set(xscale="log", yscale="log", xlabel="trainable parameters", ylabel="samples / s")
    ax.legend()
    return ax


def draw_runtimes(dataset: "xr.Dataset", ax: "Axes") -> "Axes":
    """Draw total times against parameters, the CS-2's training alone, and the crossover.

    The upper margin says from how many samples the CS-2 wins over this CPU.
    """
    for row in dataset["row"].values:
        part = dataset.sel(row=row)
        label = f"{NAMES[row]}: total"
        ax.plot(part.parameters, part.total_s, label=label, lw=1.6, **LOOKS[row])
    for row in ("CS-2, published", "CS-2, predicted"):
        part = dataset.sel(row=row)
        look = {**LOOKS[row], "marker": "v", "lw": 1.0, "alpha": 0.8}
        ax.plot(part.parameters, part.train_s, label=f"{NAMES[row]}: training alone", **look)
    low, high = dataset.total_s.min(), dataset.total_s.max()
    bottom = min(float(dataset.train_s.sel(machine_is(dataset, "CS-2")).min()), float(low))
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="trainable parameters",
        ylabel=f"time for {dataset.attrs['samples'] * dataset.attrs['epochs']:,} samples / s",
        ylim=(bottom / 1.6, float(high) * 6),
    )
    annotate_crossover(dataset, ax, float(high) * 2.2)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 0.95))
    return ax


def machine_is(dataset: "xr.Dataset", machine: str) -> dict[str, np.ndarray]:
    """Return the selection of the rows of one machine."""
    return {"row": dataset["row"].values[dataset["machine"].values == machine]}


def annotate_crossover(dataset: "xr.Dataset", ax: "Axes", height_s: float) -> None:
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
