"""What the commands of `sciml wind` do: train, predict, score, from files to files."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sciml.downscale.apply import predict
from sciml.downscale.at_stations import station_scores
from sciml.downscale.comparison import BASELINE, PREDICTION
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.result import Downscaling
from sciml.downscale.settings import Settings
from sciml.downscale.sources import collected
from sciml.provenance import provenance
from sciml.train.checkpoint import digest
from sciml.wind.cf.position import MAP
from sciml.wind.read.probe import refuse_endless
from sciml.wind.read.stations import are_stations as are_stations
from sciml.wind.read.stations import open_stations
from wse._files import ensure_folder, write_aside

log = logging.getLogger(__name__)

FACTOR = "refinement_factor"  # the attribute of a prediction
OTHERS = (".grib", ".grib2", ".grb", ".grb2", ".csv", ".npz", ".npy", ".tif", ".tiff", ".txt")
IN_MEMORY_BYTES = 2**28  # of fine wind at once: more is written piece by piece, to Zarr


def train(settings: Settings) -> tuple[Path, Downscaling]:
    """Train a net as settings say, and keep it; an interrupted training goes on."""
    out = Path(settings.out)
    ensure_folder(out.parent)
    parts = collected(
        settings.sources,
        settings.target,
        settings.statics,
        settings.beside,
        factor=settings.model.factor,
        correct=settings.correct,
    )
    for part, fields in parts.items():
        points = sum(getattr(field, "fine", field).size for field in fields)
        log.info("%s: %d pieces, %s values", part, len(fields), f"{points:,}")
    net = fit_downscaling(
        settings.model,
        parts["train"],
        parts["validation"],
        recipe=settings.recipe,
        epochs=settings.epochs,
        patches=settings.patches,
        seed=settings.seed,
        checkpoint=out.with_suffix(".checkpoint"),
    )
    return net.save(out), net


def refine_file(
    net: Downscaling,
    coarse: xr.Dataset,
    out: Path,
    statics: xr.Dataset | None = None,
    *,
    draws: int = 0,
    seed: int = 0,
) -> Path:
    """Write fine wind to CF netCDF, or, where `out` ends in .zarr, to a Zarr group.

    It appears whole or not at all. A result of more than a quarter of a gigabyte is made some
    times at once, which only Zarr takes.
    """
    one_bytes = 4 * coarse.sizes["y"] * coarse.sizes["x"] * net.model.factor**2 * max(1, draws) * 5
    step = max(1, IN_MEMORY_BYTES // one_bytes)
    times = coarse.sizes["time"]
    zarr = out.suffix == ".zarr"
    if out.suffix.lower() in OTHERS:
        raise ValueError(
            f"the output is {out}; fine wind is written as netCDF or Zarr: name "
            f"{out.with_suffix('.nc')} or {out.with_suffix('.zarr')}"
        )
    if step < times and not zarr:
        raise ValueError(
            f"the result has about {times * one_bytes / 1e9:.1f} GB, which netCDF takes at once "
            f"only; write it piece by piece: name {out.with_suffix('.zarr')}"
        )
    attrs = {FACTOR: net.model.factor, **origin(net, coarse, draws, seed)}
    pieces = (
        predict(
            net,
            coarse.isel(time=slice(a, a + step)),
            statics,
            draws=draws,
            seed=seed,
            before=a,
        ).assign_attrs(attrs)
        for a in range(0, times, step)
    )
    return to_zarr(pieces, out) if zarr else to_netcdf(next(pieces), out)


def origin(net: Downscaling, coarse: xr.Dataset, draws: int, seed: int) -> dict[str, str]:
    """Return what made a prediction: the net by its weights' digest, files, versions, when."""
    said = f"refined {net.model.factor}-fold by sciml wind predict"
    said += f", {draws} draws of seed {seed}" if draws else ""
    line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: {said}"
    before = str(coarse.attrs.get("history", ""))
    found = {
        "history": f"{line}\n{before}" if before else line,
        "net_digest": str(digest([member.trained.params for member in net.members])),
        "versions": provenance()["versions"],
        "revision": provenance()["revision"],
    }
    files = coarse.attrs.get("files")
    return found if files is None else found | {"input_files": str(files)}


def to_netcdf(fine: xr.Dataset, out: Path) -> Path:
    """Write a netCDF-4 file aside and rename it."""
    packed = {"zlib": True, "complevel": 1, "_FillValue": np.float32(np.nan)}
    encoding = {n: dict(packed) for n, field in fine.items() if field.dtype == np.float32}
    with write_aside(out) as aside:
        plain(fine).to_netcdf(aside, engine="h5netcdf", encoding=encoding)
    return out


def to_zarr(pieces: Any, out: Path) -> Path:
    """Write pieces, one after the other in time, to a Zarr group aside and rename it."""
    if out.exists():
        raise FileExistsError(f"{out} is there already; remove it, or name another")
    from zarr import config

    # A chunk without a value would else be left out, and be taken for a lost one.
    with write_aside(out) as aside, config.set({"array.write_empty_chunks": True}):
        for number, piece in enumerate(pieces):
            where: Any = {"append_dim": "time"} if number else {}
            plain(piece).chunk(time=1).to_zarr(aside, consolidated=True, zarr_format=2, **where)
    return out


def plain(fine: xr.Dataset) -> xr.Dataset:
    """Return a dataset whose attributes and times every format takes, in pieces too."""
    for variable in fine.variables.values():
        variable.encoding = {}
        variable.attrs.pop("grid_mapping", None)  # the name that the input's file had for it
        if MAP in fine.coords and {"y", "x"} <= {*variable.dims}:
            variable.attrs["grid_mapping"] = MAP
    if "time" in fine.coords and fine["time"].dtype.kind in "MO":
        fine["time"].encoding = {"units": "seconds since 1970-01-01", "dtype": "int64"}
    attrs = {k: v if isinstance(v, int | float | str) else str(v) for k, v in fine.attrs.items()}
    return fine.assign_attrs(attrs)


def read_prediction(path: Path | str) -> xr.Dataset:
    """Return a prediction as `refine_file` wrote it."""
    engine = "zarr" if Path(path).is_dir() else "h5netcdf"
    if engine == "h5netcdf":
        refuse_endless(Path(path))
    try:
        return xr.load_dataset(path, engine=engine)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read: {error}; name a file of predict") from error


def factor_of(prediction: xr.Dataset, given: int | None) -> int:
    """Return the factor that is given, else the one that the prediction states."""
    if given is not None and prediction.attrs.get(FACTOR, given) != given:
        raise ValueError(
            f"factor is {given}; the prediction was refined {prediction.attrs[FACTOR]}-fold: leave "
            "it out"
        )
    if given is not None:
        return given
    if FACTOR not in prediction.attrs:
        raise ValueError(f"the prediction has no attribute {FACTOR!r}; pass the factor")
    return int(prediction.attrs[FACTOR])


def score_stations(
    prediction: xr.Dataset,
    files: list[Path],
    factor: int,
    coarse: xr.Dataset | None,
    *,
    height_m: float | None,
    tolerance_h: float,
    method: Any,
) -> pd.DataFrame:
    """Score a prediction by one table of stations, beside the coarse wind."""
    if len(files) > 1 or coarse is None:
        raise ValueError(
            "stations are one table, and do not tell what was refined: name one, and as --coarse "
            "the coarse files (or fine ones, of which block means are taken)"
        )
    return station_scores(
        prediction,
        open_stations(files[0], height_m=height_m),
        factor,
        coarse,
        tolerance_h=tolerance_h,
        method=method,
    )


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV."""
    with write_aside(path) as aside:
        table.to_csv(aside, index=False, float_format="%.6g")
    return path


def as_text(table: pd.DataFrame) -> str:
    """Return a line on each variable, then its scores: a column for each scheme."""
    blocks = ["\n".join(in_short(rows) for _, rows in table.groupby("variable", sort=False))]
    for variable, rows in table.groupby("variable", sort=False):
        turned = (
            rows.dropna(axis="columns", how="all").drop(columns="variable").set_index("scheme").T
        )
        blocks.append(f"{variable}\n{turned.to_string(float_format=lambda v: f'{v:.4g}')}")
    return "\n\n".join(blocks)


def in_short(rows: pd.DataFrame) -> str:
    """Return in a sentence how a prediction of one variable does beside the best interpolation."""
    by = rows.set_index("scheme")
    ours, other = by.loc[PREDICTION], by.loc[BASELINE]
    sure = "" if np.isnan(ours.skill_low) else f" ({ours.skill_low:.1%} to {ours.skill_high:.1%})"
    said = (
        f"{ours.variable}: skill {ours.skill:.1%}{sure} over {BASELINE}; root mean square error "
        f"{ours.rmse_m_s:.3g} m/s, that of {BASELINE} {other.rmse_m_s:.3g} m/s"
    )
    if not np.isnan(ours.get("spread_skill", np.nan)):
        said += (
            f"; CRPS of the draws {ours.crps_m_s:.3g} m/s, that of {BASELINE} {other.crps_m_s:.3g}"
        )
    return said
