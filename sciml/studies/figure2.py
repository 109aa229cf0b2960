"""Figure 2: times against the size of the net, and where the CS-2 begins to win."""

import numpy as np
import pandas as pd
import xarray as xr

from sciml.figure import draw_runtimes, panels
from sciml.studies.description import Scale, Study
from sciml.studies.table4 import table4


def figure2(scale: Scale = "fast", *, out=None, ax=None, batch: int = 100) -> xr.Dataset:
    """Set-up, training and total time against parameters, and the crossover in samples.

    The CS-2 wins from n samples on, where set-up and n samples take it as long as this CPU:

        n = (S_cs2 − S_cpu) / (1/R_cpu − 1/R_cs2)

    and never where the CPU's rate R_cpu is the higher one.

    Args:
        scale: "fast" or "full", as in `table4`, whose runs are used.
        out: the folder in which runs are kept.
        ax: axes to draw on; None draws nothing.
        batch: of the measured rows.

    Returns:
        The Dataset of `table4` with `crossover_samples (units)`; infinite means never.

    Raises:
        ValueError, NotADirectoryError, PermissionError: as `table4`.

    >>> from sciml import studies
    >>> found = studies.figure2(out="results")  # doctest: +SKIP
    """
    dataset = table4(scale, out=out, batch=batch)
    cpu, cs2 = dataset.sel(row="CPU, measured"), dataset.sel(row="CS-2, predicted")
    crossover = crossover_samples(
        setup_s=cs2.setup_s.values - cpu.setup_s.values,
        slow_per_s=cpu.samples_per_s.values,
        fast_per_s=cs2.samples_per_s.values,
    )
    dataset = dataset.assign(
        crossover_samples=("units", crossover, {"long_name": "samples from which the CS-2 wins"})
    ).assign_attrs(title="Figure 2")
    if ax is not None:
        draw_runtimes(dataset, ax)
    return dataset


def crossover_samples(
    *, setup_s: np.ndarray, slow_per_s: np.ndarray, fast_per_s: np.ndarray
) -> np.ndarray:
    """Return from how many samples a longer set-up pays off; infinite where it never does."""
    gain_s = 1 / slow_per_s - 1 / fast_per_s
    with np.errstate(divide="ignore"):
        return np.where(gain_s > 0, np.maximum(setup_s, 0) / np.maximum(gain_s, 0), np.inf)


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return the crossover by width."""
    frame = dataset[["parameters", "crossover_samples"]].to_dataframe().reset_index()
    frame["epochs_of_1000"] = frame["crossover_samples"] / dataset.attrs["samples"]
    finite = np.isfinite(frame["crossover_samples"])
    return {"figure2": frame.assign(winner=np.where(finite, "CS-2 beyond it", "CPU, always"))}


STUDY = Study(
    name="figure2",
    title="Figure 2: times against the size of the net",
    about=(
        "The times of Table 4 against the number of parameters. The crossover is the number of "
        "samples (epochs times training samples) from which set-up and training on one CS-2 take "
        "less time than on this CPU; 'CPU, always' where this CPU trains at the higher rate."
    ),
    published=(
        "OSTI brief, Figure 2: training on the CS-2 takes 4.6 to 8.9 s, set-up 173 to 802 s; "
        "its CPU takes 21 to 2576 s and is the slower one in total only at 512 units and beyond."
    ),
    run=figure2,
    tables=tables,
    shown={
        "figure2": {
            "units": "units",
            "parameters": "parameters",
            "crossover_samples": "samples from which the CS-2 wins",
            "winner": "winner",
        }
    },
    axes=lambda _: panels(1, 1, (8.4, 4.8)),
)
