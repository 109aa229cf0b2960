"""Figure 3: true against estimated parameters, for a narrow and a wide dense net."""

from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from sciml.diagnose.point.recovery import SCORES
from sciml.figure import draw_recovery, panels
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.inverse.net import EPOCHS, scored, spiking, test_set, trained
from sciml.studies.store import results_folder

WIDTHS: dict[Scale, tuple[int, int]] = {"fast": (32, 256), "full": (32, 2048)}
FAST_EPOCHS = 140
LEAST_SEEDS = 3


def figure3(
    scale: Scale = "fast", *, out=None, ax=None, seeds: int = 3, batch: int = 100
) -> xr.Dataset:
    """Estimate the parameters of FitzHugh-Nagumo with a narrow and a wide net.

    Every seed draws its own 1000 noise-free training samples, weights and shuffles; all are
    judged on the same 2000 held-out samples.

    Args:
        scale: "fast" (32 and 256 units, 140 epochs) or "full" (32 and 2048 units, 1000 epochs).
        out: the folder in which runs are kept, and from which an interrupted study goes on.
        ax: an array of axes (2 nets, 2 parameters) to draw seed 0 on; None draws nothing.
        seeds: how many repetitions, at least 3.
        batch: of training.

    Returns:
        `truth (sample, parameter)`, `estimate (units, seed, sample, parameter)`, `spiking
        (sample)`, and `r2, mse, mae, median_se, p90_se (units, seed, regime, parameter)`.

    Raises:
        ValueError: another scale, or fewer than 3 seeds.
        NotADirectoryError, PermissionError: `out` cannot be written.

    >>> from sciml import studies
    >>> found = studies.figure3(out="results")  # doctest: +SKIP
    """
    check_scale(scale)
    if seeds < LEAST_SEEDS:
        raise ValueError(f"seeds is {seeds}; it must be at least {LEAST_SEEDS} to show the spread")
    folder = results_folder(out)
    epochs = EPOCHS if scale == "full" else FAST_EPOCHS
    parts = [
        [judged(width, seed, epochs=epochs, batch=batch, out=folder) for seed in range(seeds)]
        for width in WIDTHS[scale]
    ]
    dataset = assemble(parts, WIDTHS[scale]).assign_attrs(
        title="Figure 3",
        scale=scale,
        epochs=epochs,
        batch=batch,
        seeds=list(range(seeds)),
        **provenance(),
    )
    if ax is not None:
        draw_recovery(dataset, ax)
    return dataset


def judged(width: int, seed: int, *, epochs: int, batch: int, out) -> xr.Dataset:
    """Return estimates and scores of one trained net on the held-out set."""
    test = test_set(None)
    fit = trained(width, epochs=epochs, batch=batch, seed=seed, out=out)
    estimate = fit.predict(test)
    return estimate[["estimate"]].drop_attrs().merge(scored(fit, test, estimate))


def assemble(parts: list[list[xr.Dataset]], widths: tuple[int, int]) -> xr.Dataset:
    """Return all nets and seeds as one Dataset, with the truth."""
    join = partial(xr.concat, join="exact", data_vars="all", coords="minimal", compat="override")
    both = join([join(row, "seed") for row in parts], "units")
    both["samples"] = both["samples"].isel(units=0, seed=0)
    return both.assign_coords(units=list(widths), seed=np.arange(both.sizes["seed"])).assign(
        truth=(("sample", "parameter"), test_set(None).parameters.values),
        spiking=("sample", spiking()),
    )


def wide_wins(dataset: xr.Dataset) -> bool:
    """Tell whether the wide net has the higher mean R² and the lower mean squared error.

    Means over seeds, both parameters and all held-out samples.
    """
    mean = dataset[["r2", "mse"]].sel(regime="all").mean(("seed", "parameter"))
    narrow, wide = mean.isel(units=0), mean.isel(units=-1)
    return bool(wide.r2 > narrow.r2) and bool(wide.mse < narrow.mse)


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return scores by net, regime and parameter: mean, least and greatest over the seeds."""
    scores = dataset[list(SCORES)]
    frame = scores.mean("seed").to_dataframe()
    for name, extreme in (("min", scores.min("seed")), ("max", scores.max("seed"))):
        frame = frame.join(extreme[["r2", "mse"]].to_dataframe().add_suffix(f"_{name}"))
    frame = frame.reset_index()
    samples = dataset["samples"].to_series()
    frame.insert(3, "samples", samples.reindex(frame["regime"]).to_numpy())
    return {
        "figure3": frame,
        "figure3_seeds": scores.sel(regime="all", drop=True).to_dataframe().reset_index(),
    }


SHOWN_OF_ALL = {
    "parameter": "parameter",
    "r2": "R²",
    "median_se": "median squared error",
    "p90_se": "its 90th percentile",
}
SHOWN = {"units": "units", "regime": "regime"} | SHOWN_OF_ALL

STUDY = Study(
    name="figure3",
    title="Figure 3: parameter estimates of a narrow and a wide net",
    about=(
        "FitzHugh-Nagumo without noise: 1000 training samples a seed, 2000 held-out samples, at "
        "least three seeds (data, weights and shuffles all differ). Adam with warm-up, cosine "
        "decay, clipping, and a step size that falls with width. A few samples where spiking and "
        "rest meet carry most of the squared error, so medians and regimes stand beside the means."
    ),
    published=(
        "OSTI brief, Figure 3: the net of 2048 units estimates the parameters clearly better than "
        "the one of 32 units; scatter plots, no numbers."
    ),
    run=figure3,
    tables=tables,
    shown={
        "figure3": SHOWN,
        "figure3_seeds": {"units": "units", "seed": "seed"} | SHOWN_OF_ALL,
    },
    axes=lambda _: panels(2, 2, (7.0, 7.4)),
)
