"""Simulations on disk: a Zarr 3 group that grows by whole chunks and survives interruption.

An array `written` marks each chunk, after its data; what is read ends before the first chunk
without a mark. Zarr replaces each file as a whole from version 3.1.3 on. A chunk that has a mark
but no file, which would read as NaN or as failed, is refused here and made again by `accumulate`;
changed bytes are told by the checksum that Zstandard keeps.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wse._files import write_aside

if TYPE_CHECKING:
    import xarray as xr
    import zarr

SCHEMA = 1
WRITTEN = "written"  # also chunks that hold nothing but the fill value have a file


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

    with whole(path):
        group = opened(path, "r")
        said: dict[str, Any] = json.loads(str(group.attrs["labels"]))
        count = min(wanted(group), readable(group))
        check_complete(path, group, count)
        variables = {
            name: (
                said["dimensions"][name],
                dask.array.from_array(
                    Checked(values, f"{path}/{name}"),
                    chunks=values.chunks,  # pyright: ignore[reportArgumentType]
                    name=False,
                )[:count],
                said["variables"][name],
            )
            for name, values in sampled_arrays(group).items()
        }
        coordinates = {name: tuple(parts) for name, parts in said["coordinates"].items()}
        data = xr.Dataset(variables, coordinates, said["attributes"])
        return data.assign_attrs(failures=int((~data.valid.values).sum()))


@contextmanager
def whole(path: Path | str) -> Iterator[None]:
    """Within, what Zarr and JSON raise over a damaged store becomes one line.

    Raises:
        ValueError: something could not be read.
    """
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise damaged(path, error) from error
    except PermissionError:
        raise
    except Exception as error:  # they raise whatever damaged bytes lead them to
        raise damaged(path, error) from error


def damaged(path: Path | str, error: Exception) -> ValueError:
    """Return the error of something that cannot be read."""
    said = " ".join(str(error).split())[:200]
    return ValueError(
        f"{path} cannot be read ({type(error).__name__}: {said}); a part of the store of "
        "simulations was damaged after it was written: remove that part and accumulate again with "
        "the same arguments, or take a copy that is whole"
    )


class Checked:
    """An array on disk that says where it is damaged when it is read."""

    def __init__(self, values: "zarr.Array", path: str):
        """Take over what Dask asks for."""
        self.values, self.path = values, path
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, key: Any) -> np.ndarray:
        """Read a part."""
        with whole(f"{self.path}/c/{(key[0].start or 0) // self.values.chunks[0]}"):
            return np.asarray(self.values[key])


def check_complete(path: Path | str, group: "zarr.Group", samples: int) -> None:
    """Refuse a store that lacks a file of a chunk that was written.

    Raises:
        ValueError: it does, naming the first.
    """
    chunks = range(-(-samples // chunk_size(group)))
    if absent := [file for index in chunks for file in missing(path, group, index)]:
        raise ValueError(
            f"{path} lacks {len(absent)} files of chunks that were written, the first "
            f"{absent[0]}; they would read as NaN, or as failed: accumulate again with the same "
            "arguments, which makes them again"
        )


def missing(path: Path | str, group: "zarr.Group", index: int) -> list[str]:
    """Return the files that a written chunk lacks; earlier versions left out what is all empty."""
    files = {
        name: f"{name}/{values.metadata.encode_chunk_key((index, *[0] * (values.ndim - 1)))}"
        for name, values in sampled_arrays(group).items()
    }
    absent = {name: file for name, file in files.items() if not Path(path, file).exists()}
    if not absent or group.attrs.get("empty") == WRITTEN:
        return list(absent.values())
    start = index * chunk_size(group)
    lives = np.asarray(array(group, "valid")[start : start + chunk_size(group)], bool).any()
    return [file for name, file in absent.items() if name == "parameters" or lives]


def create(path: Path | str, like: "xr.Dataset", chunk: int, identity: dict[str, Any]) -> None:
    """Make an empty store, all of it or nothing; one that another process has made stays.

    Args:
        path: where; nothing may be there.
        like: a data set whose variables, labels and attributes the store takes over.
        chunk: samples in a chunk.
        identity: all that the numbers depend on.
    """
    import zarr
    from zarr.codecs import ZstdCodec

    with suppress(FileExistsError), write_aside(path) as aside:  # another process may be faster
        group = zarr.open_group(aside, mode="w", zarr_format=3)
        for name, values in like.data_vars.items():
            group.create_array(
                str(name),
                shape=(0, *values.shape[1:]),
                chunks=(chunk, *values.shape[1:]),
                dtype=values.dtype,
                compressors=ZstdCodec(level=0, checksum=True),
                fill_value=np.nan if values.dtype.kind == "f" else False,
                dimension_names=[str(d) for d in values.dims],
            )
        group.create_array("written", shape=(0,), chunks=(1,), dtype=bool, fill_value=False)
        group.attrs.update(
            {
                "schema": SCHEMA,
                "empty": WRITTEN,
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
    """Make room for so many samples; return the chunks that are not written, or lack a file."""
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
    asked = range(-(-samples // chunk))
    done = np.asarray(marks[:], bool)
    return [i for i in asked if not done[i] or missing(path, group, i)]


def write(path: Path | str, index: int, data: "xr.Dataset") -> None:
    """Write one chunk, its mark last; chunks may be written at once and in any order."""
    import zarr

    with zarr.config.set({"array.write_empty_chunks": True}):
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
    found = dict(group.arrays())
    if name not in found:
        raise KeyError(f"it has no array {name}")
    return found[name]


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
