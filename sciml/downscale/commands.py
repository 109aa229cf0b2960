"""What the commands of `sciml wind` do: train, predict, score, from files to files."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sciml.diagnose.wind.scorecard import scorecard
from sciml.downscale.apply import predict
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.result import Downscaling
from sciml.downscale.settings import Settings
from sciml.downscale.sources import collected, wind_of
from sciml.wind.cf.names import IN_M_S
from sciml.wind.prepare.resolution import coarser
from sciml.wind.prepare.split import decorrelation_h, step_h
from sciml.wind.prepare.upsample import METHODS
from wse._files import ensure_folder, write_aside

log = logging.getLogger(__name__)

BASELINE = "conservative bicubic"
FACTOR = "refinement_factor"  # the attribute of a prediction
IN_MEMORY_BYTES = 2**28  # of fine wind at once: more is written piece by piece, to Zarr


def train(settings: Settings) -> tuple[Path, Downscaling]:
    """Train a net as settings say, and keep it; an interrupted training goes on."""
    out = Path(settings.out)
    ensure_folder(out.parent)
    parts = collected(settings.sources, settings.target, settings.statics)
    for part, fields in parts.items():
        points = sum(field.size for field in fields)
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

    Raises:
        ValueError: it is large and `out` is not a Zarr group; or as `predict`.
    """
    one_bytes = 4 * coarse.sizes["y"] * coarse.sizes["x"] * net.model.factor**2 * max(1, draws) * 5
    step = max(1, IN_MEMORY_BYTES // one_bytes)
    times = coarse.sizes["time"]
    zarr = out.suffix == ".zarr"
    if step < times and not zarr:
        raise ValueError(
            f"the result has about {times * one_bytes / 1e9:.1f} GB, which netCDF takes at once "
            f"only; write it piece by piece: name {out.with_suffix('.zarr')}"
        )
    attrs = {FACTOR: net.model.factor, "history": str(net.attrs.get("history", ""))}
    pieces = (
        predict(
            net, coarse.isel(time=slice(a, a + step)), statics, draws=draws, seed=seed + a
        ).assign_attrs(attrs)
        for a in range(0, times, step)
    )
    return to_zarr(pieces, out) if zarr else to_netcdf(next(pieces), out)


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
    with write_aside(out) as aside:
        for number, piece in enumerate(pieces):
            where: Any = {"append_dim": "time"} if number else {}
            plain(piece).chunk(time=1).to_zarr(aside, consolidated=True, zarr_format=2, **where)
    return out


def plain(fine: xr.Dataset) -> xr.Dataset:
    """Return a dataset whose attributes and times every format takes, in pieces too."""
    for variable in fine.variables.values():
        variable.encoding = {}
    if "time" in fine.coords and fine["time"].dtype.kind in "MO":
        fine["time"].encoding = {"units": "seconds since 1970-01-01", "dtype": "int64"}
    attrs = {k: v if isinstance(v, int | float | str) else str(v) for k, v in fine.attrs.items()}
    return fine.assign_attrs(attrs)


def scores(
    prediction: xr.Dataset,
    truth: xr.Dataset,
    factor: int,
    coarse: xr.Dataset | None = None,
) -> pd.DataFrame:
    """Return the scorecards of all winds that prediction and truth have in common.

    Interpolations of the coarse wind stand beside the prediction: of `coarse` where it is given,
    else of the truth's own block means. Where the truth is larger, its last rows and columns that
    do not fill a block are left out. Of draws the mean is scored.

    Raises:
        ValueError: no wind in common, or grids or times that differ.
    """
    names = [name for name in IN_M_S if name in prediction and name in truth]
    if not names:
        raise ValueError(
            f"prediction ({', '.join(map(str, prediction.data_vars))}) and truth "
            f"({', '.join(map(str, truth.data_vars))}) have no wind in common"
        )
    truth = aligned(prediction, truth, factor)
    coarse = coarser(truth, factor) if coarse is None else coarse
    tables = []
    for name in names:
        field = prediction[name].mean("draw") if "draw" in prediction.dims else prediction[name]
        known = np.asarray(truth[name].transpose("time", "y", "x").values)
        seen = np.asarray(coarse[name].transpose("time", "y", "x").values)
        gap = np.kron(~np.isfinite(seen), np.ones((1, factor, factor), bool))
        whole = filled(seen)
        guesses = {
            scheme: np.where(gap, np.nan, np.asarray(method(whole, factor)))
            for scheme, method in METHODS.items()
        } | {"prediction": np.asarray(field.transpose("time", "y", "x").values)}
        table = scorecard(
            guesses,
            known,
            baseline=BASELINE,
            factor=factor,
            spacing_m=float(truth.attrs.get("spacing_m", np.nan)),
            block=block_of(truth),
        )
        table.insert(0, "variable", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def filled(fields: np.ndarray) -> np.ndarray:
    """Return fields (time, y, x) whose missing values are those of the nearest point that is there.

    Interpolation would carry a missing value over the whole field.
    """
    from scipy.ndimage import distance_transform_edt

    missing = ~np.isfinite(fields)
    result = fields.copy()
    for field, absent in zip(result, missing, strict=True):
        if absent.any() and not absent.all():
            nearest: Any = distance_transform_edt(
                absent, return_distances=False, return_indices=True
            )
            field[:] = field[tuple(nearest)]
    return result


def aligned(prediction: xr.Dataset, truth: xr.Dataset, factor: int) -> xr.Dataset:
    """Return the truth on the grid and at the times of the prediction."""
    sizes = {axis: prediction.sizes[axis] for axis in ("y", "x")}
    if any(not 0 <= truth.sizes[a] - n < factor for a, n in sizes.items()):
        there = f"{truth.sizes['y']}×{truth.sizes['x']}"
        raise ValueError(
            f"the prediction has {sizes['y']}×{sizes['x']} points and the truth {there}; they must "
            f"be of one grid, but for rows and columns that do not fill a block of {factor}"
        )
    truth = truth.isel(y=slice(sizes["y"]), x=slice(sizes["x"]))
    for name in ("latitude", "longitude"):
        if name in prediction.coords and name in truth.coords:
            a, b = prediction[name].values, truth[name].values
            cell = np.abs(np.diff(b, axis=-1)).max() if b.size > 1 else 1.0
            off = np.abs((a - b + 180) % 360 - 180).max() if a.shape == b.shape else np.inf
            if off > factor * max(float(cell), 1e-3):
                raise ValueError(f"prediction and truth differ in {name} by up to {off:g} degrees")
    if "time" in prediction.coords and "time" in truth.coords:
        absent = np.setdiff1d(prediction.time.values, truth.time.values)
        if absent.size:
            raise ValueError(f"the truth lacks {absent.size} times, the first {absent[0]}")
        return truth.sel(time=prediction.time.values)
    if truth.sizes["time"] != prediction.sizes["time"]:
        raise ValueError(
            f"there are {prediction.sizes['time']} predictions of {truth.sizes['time']} times"
        )
    return truth


def block_of(truth: xr.Dataset) -> int | None:
    """Return how many consecutive times share their weather; None where it cannot be told."""
    if "time" not in truth.coords or truth.sizes["time"] < 3:
        return None
    field = wind_of(truth)
    lasts = decorrelation_h(field)
    return None if lasts is None else max(1, round(lasts / max(step_h(field), 1e-9)))


def read_prediction(path: Path | str) -> xr.Dataset:
    """Return a prediction as `refine_file` wrote it."""
    try:
        return xr.load_dataset(path, engine="zarr" if Path(path).is_dir() else "h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read: {error}; name a file of predict") from error


def factor_of(prediction: xr.Dataset, given: int | None) -> int:
    """Return the factor that is given, else the one that the prediction states."""
    if given is not None:
        return given
    if FACTOR not in prediction.attrs:
        raise ValueError(f"the prediction has no attribute {FACTOR!r}; pass the factor")
    return int(prediction.attrs[FACTOR])


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV."""
    with write_aside(path) as aside:
        table.to_csv(aside, index=False, float_format="%.6g")
    return path


def as_text(table: pd.DataFrame) -> str:
    """Return a table turned on its side: a block for each variable, a column for each scheme."""
    blocks = []
    for variable, rows in table.groupby("variable", sort=False):
        turned = rows.drop(columns="variable").set_index("scheme").T
        blocks.append(f"{variable}\n{turned.to_string(float_format=lambda v: f'{v:.4g}')}")
    return "\n\n".join(blocks)
