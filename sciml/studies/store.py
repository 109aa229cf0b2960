"""Runs that a study has made are kept, and interrupted ones go on."""

import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from sciml.downscale.result import load_downscaling
from sciml.inverse import load
from wse._files import ensure_folder, write_aside

log = logging.getLogger(__name__)


def results_folder(out: Path | str | None) -> Path:
    """Return `out`, else the folder named by SCIML_RESULTS, else 'results'; it can be written."""
    return ensure_folder(out or os.environ.get("SCIML_RESULTS") or "results")


def run_file(out: Path, identity: dict[str, Any], suffix: str) -> Path:
    """Return the file of a run, named by its own content."""
    text = json.dumps(identity, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return out / "runs" / f"{identity['run']}-{digest}{suffix}"


def kept(out: Path, identity: dict[str, Any], suffix: str, make: Callable[[Path], Any]) -> Any:
    """Return the result of a run: read it if it is there, else make it and keep it.

    `identity` is everything that decides its numbers, and `identity["run"]` starts its name; the
    suffix says what it is. `make(checkpoint)` goes on from a checkpoint that is there.
    """
    path = run_file(out, identity, suffix)
    read, write = FORMATS[suffix]
    if path.exists():
        try:
            return read(path)
        except (OSError, ValueError, KeyError) as error:
            log.warning("made anew: %s cannot be read: %s", path, error)
    checkpoint = path.with_suffix(".checkpoint")
    made = make(checkpoint)
    write(made, path)
    checkpoint.unlink(missing_ok=True)
    return made


def read_dataset(path: Path) -> xr.Dataset:
    """Return the Dataset of a netCDF file."""
    with xr.open_dataset(path, engine="h5netcdf") as found:
        return found.load()


def write_dataset(dataset: xr.Dataset, path: Path) -> None:
    """Write a Dataset, whole or not at all."""
    with write_aside(path) as aside:
        dataset.to_netcdf(aside, engine="h5netcdf")


def read_json(path: Path) -> Any:
    """Return numbers from their file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(found: Any, path: Path) -> None:
    """Write numbers, whole or not at all."""
    with write_aside(path) as aside:
        aside.write_text(json.dumps(found), encoding="utf-8")


def save(net: Any, path: Path) -> None:
    """Write a trained net by its own method."""
    net.save(path)


FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, Path], None]]] = {
    ".fit": (load, save),
    ".wind": (load_downscaling, save),
    ".nc": (read_dataset, write_dataset),
    ".json": (read_json, write_json),
}
