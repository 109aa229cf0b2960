"""Simulations on disk: a Zarr 3 group that grows by whole chunks and survives interruption.

An array `written` marks each chunk, after its data; what is read ends before the first chunk
without a mark. Older versions of Zarr than 3.1.3 write a file in place, so a kill could leave half
of one; later ones replace each file as a whole. A chunk that has a mark but lacks a file, which
would read as NaN or as failed, is refused here and made again by `accumulate`. Every chunk ends in
a CRC-32C, and the attributes hold one of the metadata, so changed bytes are refused as well.

Stores of schema 1 have no checksums, and no files for chunks that hold nothing but NaN or False;
they are read and added to.

For `xarray.open_zarr` and other readers, each array names its axes and has its attributes, and the
labels are arrays as well; what is read here are the labels in JSON.
"""

import json
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from sciml._labels import marked
from sciml.ode.data.damage import (
    OUT_OF_PLACE,
    Checked,
    Refusal,
    check_none_lacks,
    check_readable,
    file_of,
    has_file,
    in_one_line,
    unreadable,
)
from wse._files import alone_in, remove_left, sweep, write_aside

if TYPE_CHECKING:
    import zarr

SCHEMA = 2
READ = (1, SCHEMA)
PARTIAL = r".+\.[0-9a-f]{32}\.partial"  # how Zarr calls a file that it has not yet written whole


@dataclass(frozen=True)
class Store:
    """What the metadata of a store say."""

    path: Path
    group: "zarr.Group"
    schema: int
    samples: int  # the most that were asked for
    identity: dict[str, Any]
    labels: dict[str, Any]
    marks: "zarr.Array"  # the chunks that were written
    arrays: "dict[str, zarr.Array]"  # their first axis is samples

    @property
    def chunk(self) -> int:
        """The number of samples in a chunk."""
        return self.arrays["valid"].chunks[0]

    def chunks(self, samples: int) -> range:
        """Return the chunks that so many samples take."""
        return range(-(-samples // self.chunk))


def open_simulations(path: Path | str) -> xr.Dataset:
    """Return the simulations of a store, lazily: values are read when they are used.

    Opening looks whether all files are there; a changed value is found when it is read, and raises
    `ValueError` then.

    Args:
        path: a folder that `accumulate` or `distribute` made; it may still be growing.

    Returns:
        A data set as `simulate` returns it, of Dask arrays chunked as the files are.

    Raises:
        ValueError: there is no store of simulations at `path`, it is of another version, or it is
            damaged; what it lacks is made again by `accumulate`.

    >>> import tempfile
    >>> import sciml
    >>> folder = tempfile.mkdtemp() + "/prey.zarr"
    >>> data = sciml.ode.accumulate(sciml.ode.lotka_volterra(), folder, samples=10)
    >>> sciml.ode.open_simulations(folder).sizes["sample"]
    10
    """
    import dask.array

    store = opened(path, "r")
    check_room(store)
    count = min(store.samples, readable(store))
    check_none_lacks(store.path, [part for i in store.chunks(count) for part in lacking(store, i)])
    with in_one_line(path):
        variables = {
            name: (
                store.labels["dimensions"][name],
                dask.array.from_array(
                    Checked(store.path, values, complete=store.schema > 1),
                    chunks=values.chunks,  # pyright: ignore[reportArgumentType]
                    name=False,
                )[:count],
                store.labels["variables"][name],
            )
            for name, values in store.arrays.items()
        }
        coordinates = {name: tuple(parts) for name, parts in store.labels["coordinates"].items()}
        data = xr.Dataset(variables, coordinates, store.labels["attributes"])
        data = data.set_coords(marked(data))
        return data.assign_attrs(failures=int((~data.valid.values).sum()))


def check_room(store: Store) -> None:
    """Refuse arrays that are shorter than what was asked for; room is made before asking."""
    needed = {name: (values, store.samples) for name, values in store.arrays.items()}
    needed["written"] = (store.marks, len(store.chunks(store.samples)))
    for name, (values, length) in needed.items():
        if values.shape[0] < length:
            raise Refusal(
                f"{store.path}: the array {name} is {values.shape[0]} long; it must be at least "
                f"{length}: call accumulate again with the same arguments, which makes room"
            )


def readable(store: Store) -> int:
    """Return how many samples lie before the first chunk without a mark."""
    chunks = store.chunks(store.samples)
    check_readable(store.path, store.marks, chunks)
    marks = np.asarray(store.marks[: len(chunks)], bool)
    return int(np.argmin([*marks, False])) * store.chunk


def lacking(store: Store, index: int) -> "list[tuple[zarr.Array, int]]":
    """Return the arrays in which a written chunk has no file, but must have one."""
    absent = {
        name: (values, index)
        for name, values in store.arrays.items()
        if not has_file(store.path, values, index)
    }
    if absent and store.schema == 1 and "observation" in absent:
        part = slice(index * store.chunk, (index + 1) * store.chunk)
        with in_one_line(store.path):
            lives = np.asarray(store.arrays["valid"][part], bool).any()
        if not lives:  # all of the chunk failed
            return [part for name, part in absent.items() if name not in ("observation", "valid")]
    return list(absent.values())


def create(path: Path | str, like: xr.Dataset, chunk: int, identity: dict[str, Any]) -> None:
    """Make an empty store, all of it or nothing; one that another process has made stays.

    It takes over variables, labels and attributes of the data set `like`.
    """
    import zarr

    check_names(path, arrays_of(like))
    with suppress(FileExistsError), write_aside(path) as aside:  # another process may be faster
        group = zarr.open_group(aside, mode="w", zarr_format=3)
        for name, values in arrays_of(like).items():
            add(group, name, values, (0, *values.shape[1:]), (chunk, *values.shape[1:]))
        for name, values in like.coords.items():
            if name not in arrays_of(like):
                add(group, name, values, values.shape, values.shape)[:] = values.values
        add(group, "written", xr.DataArray([False], dims="chunk"), (0,), (1,))
        said = {"identity": json.dumps(identity), "labels": json.dumps(labels(like)), "samples": 0}
        shown = {name: value for name, value in like.attrs.items() if name != "failures"}
        shown |= {"coordinates": " ".join(marked(like))} if marked(like) else {}
        told = {"schema": SCHEMA, **said, "checksum": checksum(group, said)}
        group.update_attributes({**shown, **told})


def check_names(path: Path | str, arrays: dict[Any, xr.DataArray]) -> None:
    """Refuse names of conditions that cannot be those of a folder in the store."""
    for name in arrays:
        if "/" in name or "\\" in name or name in (".", "..", "written", "zarr.json"):
            raise ValueError(
                f"the condition {name!r} would be a folder of the store {path}; its name must have "
                "no '/' or '\\', and be none of '.', '..', 'written', 'zarr.json': rename it"
            )


def add(group: "zarr.Group", name: Any, like: xr.DataArray, shape: Any, chunks: Any) -> Any:
    """Make an empty array that has type, axes and attributes of another."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    text = like.dtype.kind in "OU"
    return group.create_array(
        str(name),
        shape=shape,
        chunks=chunks,
        dtype=str if text else like.dtype,
        compressors=(ZstdCodec(), Crc32cCodec()),
        fill_value="" if text else np.nan if like.dtype.kind == "f" else False,
        dimension_names=[str(d) for d in like.dims],
        attributes=like.attrs,
    )


def checksum(group: "zarr.Group", said: dict[str, Any]) -> int:
    """Return a CRC-32 of what is told of the simulations, and of how the arrays are cut."""
    names = [*json.loads(said["labels"])["dimensions"], "written"]
    arrays = [array(group, name) for name in sorted(names)]
    cut = [[file_of(v, 0), str(v.dtype), list(v.chunks), list(v.shape[1:])] for v in arrays]
    told = [said[name] for name in ("identity", "labels", "samples")]
    return zlib.crc32(json.dumps([*told, cut]).encode())


def labels(like: xr.Dataset) -> dict[str, Any]:
    """Return what a data set says of itself beside its numbers, as JSON takes it."""
    return {
        "attributes": like.attrs,
        "dimensions": {str(name): list(values.dims) for name, values in arrays_of(like).items()},
        "variables": {str(name): values.attrs for name, values in arrays_of(like).items()},
        "coordinates": {
            str(name): ([str(d) for d in values.dims], values.values.tolist(), values.attrs)
            for name, values in like.coords.items()
            if name not in arrays_of(like)
        },
    }


def arrays_of(like: xr.Dataset) -> dict[Any, xr.DataArray]:
    """Return what has a value for each sample: variables, and conditions, which are coordinates."""
    return {**like.data_vars, **{name: like[name] for name in marked(like)}}


def grow(path: Path | str, samples: int) -> list[int]:
    """Make room for so many samples; return the chunks to be written, or written again.

    Those are the ones without a mark, without one of their files, or whose mark or validity cannot
    be decoded. Other values are not read here: a damaged one is found by its reader. What Zarr, or
    `create`, had not yet renamed when a writer was killed is removed.
    """
    with alone_in(Path(path)):  # who has looked before another has grown it would cut it short
        store = opened(path, "r+")
        remove_left(store.path.rglob("*.partial"), PARTIAL)
        sweep(store.path)
        chunks = max(len(store.chunks(samples)), store.marks.shape[0])
        for values in store.arrays.values():
            if values.shape[0] < chunks * store.chunk:
                values.resize((chunks * store.chunk, *values.shape[1:]))
        if store.marks.shape[0] < chunks:
            store.marks.resize((chunks,))
        if samples > store.samples:
            said = {**store.group.attrs, "samples": samples}
            new = {"checksum": checksum(store.group, said)} if store.schema > 1 else {}
            # One write: attrs.update writes key by key, and a reader would find a wrong checksum.
            store.group.update_attributes({"samples": samples, **new})
    asked = store.chunks(samples)
    bad = {**unreadable(store.marks, asked), **unreadable(store.arrays["valid"], asked)}
    return [i for i in asked if i in bad or not store.marks[i] or lacking(store, i)]


def write(path: Path | str, index: int, data: xr.Dataset) -> None:
    """Write one chunk, its mark last; chunks may be written at once and in any order."""
    store = opened(path, "r+")
    part = slice(index * store.chunk, index * store.chunk + data.sizes["sample"])
    try:
        # An array's own setting: zarr.config is one for all threads, which undo each other's.
        for name, values in store.arrays.items():
            values.with_config({"write_empty_chunks": True})[part] = data[name].values
        store.marks.with_config({"write_empty_chunks": True})[index] = True
    except OUT_OF_PLACE as error:
        raise Refusal(
            f"chunk {index} of the store {path} cannot be written ({error}); every chunk must be a "
            "file, in folders: remove what is in the way, and accumulate again"
        ) from error


def opened(path: Path | str, mode: Any) -> Store:
    """Return what the metadata of a store say, or refuse what is none."""
    import zarr

    with in_one_line(path):
        try:
            group = zarr.open_group(path, mode=mode, zarr_format=3)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Refusal(
                f"{path} is no store of simulations; it must be a folder that "
                "sciml.ode.accumulate made"
            ) from error
        said = dict(group.attrs)
        if (schema := said.get("schema")) not in READ or "identity" not in said:
            raise Refusal(
                f"{path} is a Zarr group of schema {schema}; it must be a store of simulations of "
                f"schema {' or '.join(map(str, READ))}: name another folder"
            )
        if schema == SCHEMA and said["checksum"] != (made := checksum(group, said)):
            stored = said["checksum"]
            raise ValueError(f"its zarr.json have {made}, and their checksum is {stored!r}")
        told = json.loads(str(said["labels"]))
        return Store(
            path=Path(path),
            group=group,
            schema=int(str(schema)),
            samples=int(str(said["samples"])),
            identity=dict(json.loads(str(said["identity"]))),
            labels=told,
            marks=array(group, "written"),
            arrays={name: array(group, name) for name in sorted(told["dimensions"])},
        )


def array(group: "zarr.Group", name: str) -> "zarr.Array":
    """Return an array of a group."""
    import zarr

    found = group.get(name)
    if not isinstance(found, zarr.Array):
        raise LookupError(f"it has no array {name}")
    return found
