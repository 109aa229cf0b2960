"""Figure 4: wind at subgrid scale, from a coarse field, by a convolutional net."""

import logging
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

import wse
from sciml import wind
from sciml.diagnose.wind.errors import field_scores
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.objective import traceable
from sciml.downscale.pool import Patches
from sciml.downscale.result import Downscaling
from sciml.figure import draw_fields, panels
from sciml.models.wind.generative import Generative
from sciml.models.wind.locally_scaled import LocallyScaled
from sciml.models.wind.super_resolution import SuperResolution
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.store import kept, results_folder
from sciml.train.recipe import Recipe
from sciml.wind.prepare.coarsen import block_mean, crop
from sciml.wind.prepare.upsample import METHODS
from wse.machine.support.rules import VERDICTS

log = logging.getLogger(__name__)

FACTOR = 4
NET = "CNN"
BASELINE = "conservative bicubic"
PLACES = ("latitude", "longitude")  # of each point, for the coast
SNAPSHOTS = {"train": 24, "validation": 8, "test": 8}  # of the generator, where it stands in


@dataclass(frozen=True)
class Size:
    """What a scale trains, and for how long."""

    model: Any  # a configuration that refines
    epochs: int
    drawing: Any  # one that draws, and its epochs
    drawn_epochs: int
    recipe: Recipe
    patches: Patches


def sized(channels: int, epochs: int) -> Size:
    """Return a net of a width, trained for so many epochs."""
    model = LocallyScaled(SuperResolution(FACTOR, channels, 4))
    drawing = LocallyScaled(Generative(FACTOR, channels, 4))
    return Size(model, epochs, drawing, epochs // 2, Recipe(batch=28), Patches(64, 196))


SIZES: dict[Scale, Size] = {"fast": sized(32, 70), "full": sized(64, 150)}


def figure4(scale: Scale = "fast", *, out=None, ax=None, seed: int = 0) -> xr.Dataset:
    """Refine block-averaged 10 m wind speed fourfold, on dates that training never saw.

    Trained on February 2016 of the data set "metcoop", its epoch chosen on January 2016, judged
    on all hours of November 2015: other dates, and another region than in training. Where the
    files cannot be had, turbulence of the embedded generator stands in (three independent seeds),
    and every title says SYNTHETIC.

    Args:
        scale: "fast" (79,000 weights, 70 visits to each field; skill 4.3, 3.9 and 4.5 % with
            seeds 0, 1 and 2) or "full" (305,000, 150; 3.2, 3.3 and 4.3 %: no better).
        out: the folder in which the result is kept, and from which an interrupted training goes on.
        ax: an array of axes (2 samples, 7 columns) to draw on; None draws nothing.
        seed: of weights, patches and, where it stands in, the generator.

    Returns:
        `coarse (sample, y_lo, x_lo)`, `truth` and `draw (sample, y, x)`, `estimate (scheme,
        sample, y, x)` of two held-out samples, in m/s; `rmse, mae, bias, skill (scheme)` over the
        whole held-out set (skill against conservative bicubic); `loss (epoch)`; by `net`, which
        operations a CS-2 is known to have and what it is predicted to take; attrs with source,
        licence, sizes, seed and training seconds.

    Raises:
        ValueError: another scale, or a file of the mirror with a wrong checksum.
        NotADirectoryError, PermissionError: `out` cannot be written.

    >>> from sciml import studies
    >>> found = studies.figure4(out="results")  # doctest: +SKIP
    """
    check_scale(scale)
    folder = results_folder(out)
    fields, attrs = split_fields(seed)
    size = SIZES[scale]
    identity = {"run": f"figure4-{scale}", "seed": seed, "data": attrs["data"], **asdict(size)}

    def learned(model: Any, epochs: int, checkpoint: Path) -> Downscaling:
        return fit_downscaling(
            model,
            fields["train"].values,
            fields["validation"].values,
            recipe=size.recipe,
            epochs=epochs,
            patches=size.patches,
            seed=seed,
            checkpoint=checkpoint,
        )

    def make(checkpoint: Path) -> xr.Dataset:
        net = learned(size.model, size.epochs, checkpoint)
        second = checkpoint.with_name(f"{checkpoint.name}-draw")
        drawing = learned(size.drawing, size.drawn_epochs, second)
        second.unlink(missing_ok=True)
        found = judged(net, fields["test"])
        draw = drawing.draw(found.coarse.values, 1, seed=seed)[:, 0]
        return found.assign(draw=found.truth.copy(data=draw)).assign_attrs(
            **attrs,
            **described(size, net),
            title="Figure 4",
            scale=scale,
            seed=seed,
            **provenance(),
        )

    dataset = kept(folder, identity, ".nc", make).assign(ported(size))
    if ax is not None:
        draw_fields(dataset, ax)
    return dataset


def split_fields(seed: int) -> "tuple[dict[str, xr.DataArray], dict[str, Any]]":
    """Return the wind speed of each split, and what a result says about its source."""
    try:
        paths = wind.fetch("metcoop")
    except wind.DatasetUnavailable as error:
        log.warning("SYNTHETIC wind stands in for the real data set: %s", error)
        return synthetic_fields(seed)
    source = wind.registered("metcoop")
    fields = {split: wind.open(path).wind_speed for split, path in paths.items()}
    return fields, {
        "source": "10 m wind speed, AROME-MetCoOp (MET Norway), ×4, November 2015 held out",
        "split": (
            "trained on 49 hours of February 2016, the epoch chosen on January 2016, judged on all "
            "67 hours of November 2015 in another region; no hours are split at random"
        ),
        "licence": source.licence,
        "citation": source.citation,
        "data": "metcoop " + " ".join(file.sha256[:8] for file in source.files.values()),
        "synthetic": "false",
    }


def synthetic_fields(seed: int) -> "tuple[dict[str, xr.DataArray], dict[str, Any]]":
    """Return generated wind speed, an independent run for each split; made once, then read."""
    runs = wind.generate_parts(seed, SNAPSHOTS)
    one = runs["train"].attrs
    return {split: run.wind_speed for split, run in runs.items()}, {
        "source": "surface quasi-geostrophic turbulence, ×4, nominal units",
        "split": "one run trains, another chooses the epoch, a third is judged",
        "licence": one["licence"],
        "citation": "Tulloch and Smith (2006), PNAS 103, 14690",
        "data": f"synthetic {one['model']} {SNAPSHOTS}",
        "synthetic": "true",
    }


def judged(net: Downscaling, test: xr.DataArray) -> xr.Dataset:
    """Return the scores of all methods on all of the test split, and the fields of two samples."""
    truth = np.asarray(crop(test.values, FACTOR))
    coarse = np.asarray(block_mean(truth, FACTOR))
    estimates: dict[str, Float[np.ndarray, "sample y x"]] = {
        name: np.asarray(method(coarse, FACTOR)) for name, method in METHODS.items()
    } | {NET: net.refine(coarse)}
    shown = [len(truth) // 4, 3 * len(truth) // 4]  # chosen by date, not by looks
    centres = test.isel(y=slice(truth.shape[1]), x=slice(truth.shape[2]))
    coarse_grid = centres.coarsen(y=FACTOR, x=FACTOR).mean()
    unit = {"units": "m/s"}
    return (
        field_scores(estimates, truth, baseline=BASELINE)
        .assign(
            coarse=(("sample", "y_lo", "x_lo"), coarse[shown], unit),
            truth=(("sample", "y", "x"), truth[shown], unit),
            estimate=(
                ("scheme", "sample", "y", "x"),
                np.stack([estimate[shown] for estimate in estimates.values()]),
                unit,
            ),
            loss=("epoch", net.trained.loss),
        )
        .assign_coords(
            time=xr.Variable("sample", test.time.values[shown], test.time.attrs),
            y=centres.y.variable,
            x=centres.x.variable,
            y_lo=("y_lo", coarse_grid.y.values, centres.y.attrs),
            x_lo=("x_lo", coarse_grid.x.values, centres.x.attrs),
        )
        .assign_coords({name: centres[name].variable for name in PLACES if name in centres.coords})
        .assign_attrs(test_fields=len(truth))
    )


def described(size: Size, net: Downscaling) -> dict[str, Any]:
    """Return what was trained as attributes."""
    return {
        "model": str(size.model),
        "recipe": str(size.recipe),
        "patches": str(size.patches),
        "epochs": size.epochs,
        "drawn_by": str(size.drawing),
        "weights": net.weights,
        "compile_s": net.trained.compile_s,
        "train_s": net.trained.train_s,
        "kept_epoch": int(net.trained.validated[net.trained.validation.argmin()]),
    }


@cache
def ported(size: Size) -> xr.Dataset:
    """Return what a CS-2 would say to the study's net, and to the net inside it alone.

    `portable` counts the operations that it is known to have, `unknown` and `unsupported` name the
    others (`wse.check`); seconds are those of `wse.estimate`, whose
    efficiencies were calibrated on a transformer: of convolutions nothing was published.
    """
    whole = size.model
    nets: tuple[Any, ...] = (whole, whole.net) if isinstance(whole, LocallyScaled) else (whole,)
    rows = {}
    for net in nets:
        asked = traceable(net, size.recipe.batch, size.patches.size)
        report = wse.check(*asked)
        found = wse.estimate(*asked, samples=size.epochs * size.patches.count)
        named = {v: sorted({f.use.operation for f in report.of(v)}) for v in VERDICTS}
        rows[type(net).__name__] = {
            "portable": len(named["native"]) + len(named["decomposed"]),
            "unknown": " ".join(named["unknown"]) or "none",
            "unsupported": " ".join(named["unsupported"]) or "none",
            "predicted_setup_s": found.setup_s,
            "predicted_train_s": found.train_s,
            "predicted_train_most_s": found.training_interval_s[1],
        }
    return xr.Dataset.from_dataframe(pd.DataFrame.from_dict(rows, "index").rename_axis("net"))


def net_wins(dataset: xr.Dataset) -> bool:
    """Tell whether the net's error over the held-out set is below that of every interpolation."""
    others = dataset["rmse"].drop_sel(scheme=NET)
    return bool(dataset["rmse"].sel(scheme=NET) < others.min())


def tables(dataset: xr.Dataset) -> "dict[str, pd.DataFrame]":
    """Return the scores over the held-out set by method, and what a CS-2 would say by net."""
    frame = dataset[["rmse", "mae", "bias", "skill"]].to_dataframe().reset_index()
    units = {"rmse": "rmse_m_s", "mae": "mae_m_s", "bias": "bias_m_s", "skill": "mse_skill"}
    frame = frame.rename(columns=units)
    frame["test_fields"] = dataset.attrs["test_fields"]
    frame["synthetic"] = dataset.attrs["synthetic"]
    machine = dataset[[name for name in dataset if dataset[name].dims == ("net",)]]
    return {"figure4": frame, "figure4_machine": machine.to_dataframe().reset_index()}


STUDY = Study(
    name="figure4",
    title="Figure 4: subgrid wind speed by a convolutional net",
    about=(
        "10 m wind speed, averaged over blocks of 4 x 4 points and refined again. The net is "
        "conservative: block means of its output equal its input. Conservative bicubic "
        "interpolation is the honest baseline. "
        "The same training runs in weight streaming on the emulated machine, to the same weights "
        "but for rounding: fit_downscaling(model, fields, validation, wse.CS2(), ...). The second "
        "table says which of its operations a CS-2 is known to have, and the seconds predicted, by "
        "efficiencies that were calibrated on a transformer."
    ),
    published=(
        "OSTI brief, Figure 4: coarse input, CNN output, truth and error of surface wind speed for "
        "two test samples; pictures, no numbers, and another data set."
    ),
    run=figure4,
    tables=tables,
    shown={
        "figure4": {
            "scheme": "scheme",
            "rmse_m_s": "RMSE (m/s)",
            "mae_m_s": "MAE (m/s)",
            "mse_skill": "MSE skill",
        },
        "figure4_machine": {
            "net": "net",
            "portable": "operations that port",
            "unknown": "unknown",
            "predicted_setup_s": "set-up on a CS-2 (s)",
            "predicted_train_s": "training (s)",
            "predicted_train_most_s": "at most (s)",
        },
    },
    axes=lambda _: panels(2, 7, (14.6, 8.4)),
)
