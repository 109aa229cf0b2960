"""Which format a file has, by its first bytes, and how its content is had lazily."""

import warnings
from contextlib import suppress
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import xarray as xr

from sciml.wind.cf.level import Level
from sciml.wind.cf.names import WINDS, found
from sciml.wind.read.grib import open_grib
from sciml.wind.read.probe import refuse_endless
from sciml.wind.read.wrf import from_wrf, is_wrf
from sciml.wind.read.wtk import is_wtk, open_wtk

HDF5 = b"\x89HDF\r\n\x1a\n"
OTHERS = {  # by how a file begins, what it is, and what is to be done
    b"\x1f\x8b": "gzip: unpack it, as gunzip does",
    b"BZh": "bzip2: unpack it, as bunzip2 does",
    b"\xfd7zXZ": "xz: unpack it, as unxz does",
    b"\x28\xb5\x2f\xfd": "Zstandard: unpack it, as unzstd does",
    b"PK\x03\x04": "zip: unpack it, as unzip does",
    b"<": "a web page or XML, no data: fetch the file itself",
}
ZARR_MARKS = ("zarr.json", ".zgroup", ".zmetadata")


def content(path: Path, level: Level) -> xr.Dataset:
    """Return what a file holds, with the names and units that it has, lazily."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is not a file; name a netCDF, HDF5, Zarr or GRIB file")
    stored = opened(path, level)
    if not is_wrf(stored):
        return stored
    winds = from_wrf(stored, str(path), level.model_level)
    winds.set_close(stored.close)
    return winds


def opened(path: Path, level: Level) -> xr.Dataset:
    """Return what the reader of a file's format makes of it."""
    if path.is_dir():
        return zarr(path)
    with path.open("rb") as stream:
        start = stream.read(2048)
    if start[:3] == b"CDF":
        return netcdf(path, "scipy" if start[3:4] in b"\x01\x02" else "netcdf4")
    if any(start[at : at + 8] == HDF5 for at in (0, 512, 1024)):
        refuse_endless(path)
        return open_wtk(path) if is_wtk(path) else netcdf(path, "h5netcdf")
    if b"GRIB" in start:
        if find_spec("eccodes") is None:
            raise ImportError(f"{path} is GRIB, for which ecCodes is needed: pip install eccodes")
        return open_grib(path, level)
    if not start:
        raise ValueError(f"{path} is empty: fetch it again")
    if other := next((said for mark, said in OTHERS.items() if start.startswith(mark)), None):
        raise ValueError(f"{path} is {other}")
    raise ValueError(
        f"{path} cannot be read: it begins with {start[:8]!r}, which is neither netCDF, HDF5, "
        "Zarr nor GRIB"
    )


def netcdf(path: Path, engine: str) -> xr.Dataset:
    """Return the content of a netCDF file: classic by SciPy, netCDF-4 by h5netcdf."""
    try:
        with warnings.catch_warnings():  # marks that cannot occur, or are several
            warnings.simplefilter("ignore", xr.SerializationWarning)
            return xr.open_dataset(path, engine=engine, chunks={}, decode_timedelta=False)  # pyright: ignore[reportArgumentType]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as netCDF: {error}; fetch it again") from error


def zarr(path: Path) -> xr.Dataset:
    """Return the content of a Zarr store, refusing lost chunks, which would read as calm."""
    if not any((path / mark).exists() for mark in ZARR_MARKS):
        raise ValueError(
            f"{path} cannot be read: it is a folder without {' or '.join(ZARR_MARKS)}; "
            "name a file, or a Zarr group"
        )
    try:
        with warnings.catch_warnings():  # as above
            warnings.simplefilter("ignore", xr.SerializationWarning)
            stored = xr.open_dataset(
                path, engine="zarr", chunks={}, consolidated=False, decode_timedelta=False
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as Zarr: {error}; write it again") from error
    for name in stored.data_vars:
        if absent := missing_chunks(path, str(name)):
            raise ValueError(
                f"{name} of {path} lacks {len(absent)} chunks, the first {absent[0]}; they would "
                "read as the fill value: write them again, empty ones as well, by zarr.config.set"
                "({'array.write_empty_chunks': True})"
            )
    return stored


def winds_of(path: Path, level: Level) -> xr.Dataset:
    """Return `content`; refuse a file that has no wind at its top but in groups, by their names."""
    stored = content(path, level)
    if any(one.kind in WINDS for one in found(stored)) or not (below := groups_of_wind(path)):
        return stored
    remedy = f"write it as a file, by xarray.open_dataset(path, group={below[0]!r}).to_netcdf(…)"
    remedy = f"name {path / below[0]}" if path.is_dir() else remedy
    raise ValueError(f"{path} has its wind in groups, {', '.join(below)}: {remedy}")


def groups_of_wind(path: Path) -> list[str]:
    """Return the groups of a netCDF-4 file or a Zarr store that hold wind."""
    engine, more = ("zarr", {"consolidated": False}) if path.is_dir() else ("h5netcdf", {})
    options: dict[str, Any] = {"decode_times": False, "chunks": {}, **more}
    nodes: dict[str, xr.Dataset] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):  # no such tree
        tree = xr.open_datatree(path, engine=engine, **options)
        nodes = {node.path.strip("/"): node.to_dataset() for node in tree.subtree}
        tree.close()
    return [name for name, it in nodes.items() if name and any(f.kind in WINDS for f in found(it))]


def missing_chunks(path: Path, name: str) -> list[str]:
    """Return the keys of those chunks of an array that are not stored."""
    import zarr as library

    array = library.open_array(path / name, mode="r")
    if array.nchunks_initialized == array.nchunks:
        return []
    stored = array.shards or array.chunks
    counts = [-(-n // size) for n, size in zip(array.shape, stored, strict=True)]
    keys = (array.metadata.encode_chunk_key(at) for at in product(*map(range, counts)))
    return [key for key in keys if not (path / name / key).exists()]
