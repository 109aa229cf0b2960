"""Simulations on disk: a Zarr 3 group that grows by whole chunks and survives interruption.

An array `written` marks each chunk, after its data; what is read ends before the first chunk
without a mark. Zarr itself replaces each file as a whole.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wse._files import write_aside

if TYPE_CHECKING:
    import xarray as xr
    import zarr

SCHEMA = 1


def open_simulations(path: Path | str) -> "xr.Dataset":
    """Return the simulations of a store, lazily: values are read when they are used.

    Args:
        path: a folder that `accumulate` or `distribute` made; it may still be growing.

    Returns:
        A data set as `simulate` returns it, of Dask arrays chunked as the files are.

    Raises:
        ValueError: there is no store of simulations at `path`, or it is of another version.
    """
    import dask.array
    import xarray as xr

    group = opened(path, "r")
    said: dict[str, Any] = json.loads(str(group.attrs["labels"]))
    count = min(wanted(group), readable(group))
    variables = {
        name: (
            said["dimensions"][name],
            dask.array.from_array(values, chunks=values.chunks, name=False)[:count],  # pyright: ignore
            said["variables"][name],
        )
        for name, values in sampled_arrays(group).items()
    }
    coordinates = {name: tuple(parts) for name, parts in said["coordinates"].items()}
    data = xr.Dataset(variables, coordinates, said["attributes"])
    return data.assign_attrs(failures=int((~data.valid.values).sum()))


def create(path: Path | str, like: "xr.Dataset", chunk: int, identity: dict[str, Any]) -> None:
    """Make an empty store, all of it or nothing; one that another process has made stays.

    Args:
        path: where; nothing may be there.
        like: a data set whose variables, labels and attributes the store takes over.
        chunk: samples in a chunk.
        identity: all that the numbers depend on.
    """
    import zarr

    with suppress(FileExistsError), write_aside(path) as aside:  # another process may be faster
        group = zarr.open_group(aside, mode="w", zarr_format=3)
        for name, values in like.data_vars.items():
            group.create_array(
                str(name),
                shape=(0, *values.shape[1:]),
                chunks=(chunk, *values.shape[1:]),
                dtype=values.dtype,
                fill_value=np.nan if values.dtype.kind == "f" else False,
                dimension_names=[str(d) for d in values.dims],
            )
        group.create_array("written", shape=(0,), chunks=(1,), dtype=bool, fill_value=False)
        group.attrs.update(
            {
                "schema": SCHEMA,
                "identity": json.dumps(identity),
                "labels": json.dumps(labels(like)),
                "samples": 0,
            }
        )


def labels(like: "xr.Dataset") -> dict[str, Any]:
    """Return what a data set says of itself beside its numbers, as JSON takes it."""
    return {
        "attributes": like.attrs,
        "dimensions": {str(name): list(values.dims) for name, values in like.data_vars.items()},
        "variables": {str(name): values.attrs for name, values in like.data_vars.items()},
        "coordinates": {
            str(name): ([str(d) for d in values.dims], values.values.tolist(), values.attrs)
            for name, values in like.coords.items()
        },
    }


def grow(path: Path | str, samples: int) -> list[int]:
    """Make room for so many samples, and return the chunks that are not written."""
    group = opened(path, "r+")
    chunk = chunk_size(group)
    chunks = max(-(-samples // chunk), array(group, "written").shape[0])
    for values in sampled_arrays(group).values():
        if values.shape[0] < chunks * chunk:
            values.resize((chunks * chunk, *values.shape[1:]))
    marks = array(group, "written")
    if marks.shape[0] < chunks:
        marks.resize((chunks,))
    if samples > wanted(group):
        group.attrs["samples"] = samples
    return [int(i) for i in np.flatnonzero(~np.asarray(marks[:], bool)) if i * chunk < samples]


def write(path: Path | str, index: int, data: "xr.Dataset") -> None:
    """Write one chunk, its mark last; chunks may be written at once and in any order."""
    group = opened(path, "r+")
    start = index * chunk_size(group)
    for name, values in sampled_arrays(group).items():
        values[start : start + data.sizes["sample"]] = data[name].values
    array(group, "written")[index] = True


def opened(path: Path | str, mode: Any) -> "zarr.Group":
    """Return the group of a store, or refuse what is none."""
    import zarr

    try:
        group = zarr.open_group(path, mode=mode, zarr_format=3)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(
            f"{path} is no store of simulations; it must be a folder that sciml.ode.accumulate made"
        ) from error
    if (schema := group.attrs.get("schema")) != SCHEMA or "identity" not in group.attrs:
        raise ValueError(
            f"{path} is a Zarr group of schema {schema}; it must be a store of simulations of "
            f"schema {SCHEMA}: name another folder"
        )
    return group


def array(group: "zarr.Group", name: str) -> "zarr.Array":
    """Return an array of a group."""
    return dict(group.arrays())[name]


def sampled_arrays(group: "zarr.Group") -> "dict[str, zarr.Array]":
    """Return the arrays whose first axis is samples."""
    return {name: values for name, values in sorted(group.arrays()) if name != "written"}


def chunk_size(group: "zarr.Group") -> int:
    """Return the number of samples in a chunk."""
    return array(group, "valid").chunks[0]


def wanted(group: "zarr.Group") -> int:
    """Return the largest number of samples that was asked for."""
    return int(str(group.attrs["samples"]))


def readable(group: "zarr.Group") -> int:
    """Return how many samples lie before the first chunk without a mark."""
    marks = np.asarray(array(group, "written")[:], bool)
    return int(np.argmin([*marks, False])) * chunk_size(group)


def identity_of(path: Path | str) -> dict[str, Any]:
    """Return what a store says its numbers depend on."""
    return json.loads(str(opened(path, "r").attrs["identity"]))
