"""Table 4: set-up and training times of dense nets, on a CPU and on one CS-2."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import wse
from sciml.figure import draw_rates
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.inverse import emulated as emulation
from sciml.studies.inverse.net import EPOCHS, SAMPLES, trained
from sciml.studies.store import results_folder
from wse.machine.published import TABLE4

WIDTHS = (32, 128, 512, 2048)
# Epochs that give a steady rate within seconds; a full run does all 1000.
FAST_EPOCHS = {32: 300, 128: 100, 512: 20, 2048: 4}
TIMES = ("setup_s", "train_s", "total_s", "samples_per_s")
STATUS = {"published": "sourced", "predicted": "calibrated"}  # by source; others are measured


def table4(scale: Scale = "fast", *, out=None, ax=None, batch: int = 100) -> xr.Dataset:
    """Train dense nets of 32 to 2048 units here, and set them beside the published times.

    The measured rows are training runs on this machine: `samples_per_s` over whole epochs,
    shuffles included; `setup_s` is the compilation; `train_s` is for 1000 epochs, at fast scale
    extrapolated from `epochs_measured`. The predicted rows come from `wse.estimate`, whose
    constants are calibrated on the published rows: they reproduce them and are no independent
    prediction. The emulated rows are the pace of this computer while `wse` executes the nets as
    one, two or four machines would, weights streaming or resident; they are not the machine's pace.

    Args:
        scale: "fast" (some epochs) or "full" (all 1000).
        out: the folder in which runs are kept, and from which an interrupted study goes on.
        ax: axes on which to draw the training rates; None draws nothing.
        batch: of the measured rows; the published one is not known.

    Returns:
        `setup_s, train_s, total_s, samples_per_s (row, units)`, NaN where nothing was published.

    Raises:
        ValueError: another scale, or a batch larger than the 1000 samples.
        NotADirectoryError, PermissionError: `out` cannot be written.

    >>> from sciml import studies
    >>> found = studies.table4(out="results")  # doctest: +SKIP
    """
    check_scale(scale)
    if not 1 <= batch <= SAMPLES:
        raise ValueError(f"batch is {batch}; it must lie in 1…{SAMPLES}, as in batch=100")
    folder = results_folder(out)
    measured = [measure(width, scale, batch, folder) for width in WIDTHS]
    emulated = {
        row: [emulate(row, width, scale, batch, folder) for width in WIDTHS]
        for row in emulation.ROWS
    }
    dataset = assemble(measured, emulated, batch, scale)
    if ax is not None:
        draw_rates(dataset, ax)
    return dataset


def measure(width: int, scale: Scale, batch: int, out) -> dict[str, Any]:
    """Return this machine's row for one width."""
    epochs = EPOCHS if scale == "full" else FAST_EPOCHS[width]
    fit = trained(width, epochs=epochs, batch=batch, seed=0, out=out)
    rate = SAMPLES // batch * batch * epochs / fit.history.attrs["train_s"]
    return {
        "parameters": fit.parameter_count,
        "epochs": epochs,
        "made_by": fit.attrs["machine"],
        "times": times_of(fit.history.attrs["compile_s"], rate, batch),
    }


def emulate(row: str, width: int, scale: Scale, batch: int, out) -> dict[str, Any]:
    """Return the emulation's row, as `measure` does."""
    mode, systems = emulation.ROWS[row]
    found = emulation.emulated(width, mode, systems, scale=scale, batch=batch, out=out)
    return {
        "epochs": found["samples"] / SAMPLES,
        "times": times_of(found["setup_s"], found["samples_per_s"], batch),
    }


def times_of(setup_s: float, rate: float, batch: int) -> tuple[float, ...]:
    """Return the `TIMES` of all epochs at a rate."""
    train_s = SAMPLES // batch * batch * EPOCHS / rate
    return setup_s, train_s, setup_s + train_s, rate


def published(machine: str) -> list[tuple[float, ...]]:
    """Return the published times of each width; the CPU's set-up was not published apart."""
    if machine == "CPU":
        return [(np.nan, np.nan, r.cpu_total_s, r.cpu_samples_per_s) for r in TABLE4]
    return [(r.cs2_setup_s, r.cs2_train_s, r.cs2_total_s, r.cs2_samples_per_s) for r in TABLE4]


def predicted(width: int, batch: int) -> tuple[float, ...]:
    """Return the calibrated estimate of one width."""
    work = wse.workload.dense(width=width)
    estimate = wse.estimate(work, machine=wse.CS2(), samples=SAMPLES * EPOCHS, batch=batch)
    return tuple(getattr(estimate, name) for name in TIMES)


def assemble(
    measured: list[dict[str, Any]],
    emulated: dict[str, list[dict[str, Any]]],
    batch: int,
    scale: Scale,
) -> xr.Dataset:
    """Return all rows as one labelled table."""
    times = {
        "CPU, published": published("CPU"),
        "CPU, measured": [row["times"] for row in measured],
        "CS-2, published": published("CS-2"),
        "CS-2, predicted": [predicted(width, batch) for width in WIDTHS],
        **{name: [row["times"] for row in rows] for name, rows in emulated.items()},
    }
    ran, unknown = {"CPU, measured": measured, **emulated}, [{"epochs": np.nan}] * len(WIDTHS)
    epochs = [[row["epochs"] for row in ran.get(name, unknown)] for name in times]
    machines, sources = zip(*(name.split(", ") for name in times), strict=True)
    values = np.array(list(times.values()), dtype=np.float64)
    units = {name: {"units": "1/s" if name == "samples_per_s" else "s"} for name in TIMES}
    return xr.Dataset(
        {name: (("row", "units"), values[..., i], units[name]) for i, name in enumerate(TIMES)},
        coords={
            "row": list(times),
            "machine": ("row", list(machines)),
            "source": ("row", list(sources)),
            "status": ("row", [STATUS.get(source, "measured") for source in sources]),
            "batch": ("row", [np.nan if source == "published" else batch for source in sources]),
            "units": list(WIDTHS),
            "parameters": ("units", [row["parameters"] for row in measured]),
            "epochs_measured": (("row", "units"), np.array(epochs, dtype=np.float64)),
        },
        attrs={
            "title": "Table 4",
            "scale": scale,
            "samples": SAMPLES,
            "epochs": EPOCHS,
            "seed": 0,
            "measured_on": measured[0]["made_by"],
            "published": "OSTI brief, Table 4",
            **provenance(),
        },
    )


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return one row per width and source."""
    frame = dataset.to_dataframe(["units", "row"]).reset_index()
    columns = ["units", "parameters", "machine", "source", "status", "batch", *TIMES]
    return {"table4": frame.loc[:, [*columns, "epochs_measured"]]}


STUDY = Study(
    name="table4",
    title="Table 4: set-up and training times",
    about=(
        "Dense nets of eight layers, 1000 samples, 1000 epochs. The measured rows were trained on "
        "this machine by sciml.fit; set-up is compilation (shorter where an earlier run kept the "
        "compiled program), and at fast scale the training time is "
        "the measured rate applied to 1000 epochs (see epochs_measured). The predicted rows are "
        "wse.estimate's, calibrated on the published rows below: they show that the model holds "
        "the table, not that it foresaw it. The emulated rows are this computer's pace while wse "
        "executes the nets as that many machines would: an emulation, never the machine's speed."
    ),
    published=(
        "OSTI brief, Table 4: a 4-core CPU and one CS-2; neither the CPU's type nor the batch is "
        "given."
    ),
    run=table4,
    tables=tables,
    shown={
        "table4": {
            "units": "units",
            "machine": "machine",
            "source": "source",
            "setup_s": "set-up (s)",
            "train_s": "training (s)",
            "total_s": "total (s)",
            "samples_per_s": "samples/s",
        }
    },
)
