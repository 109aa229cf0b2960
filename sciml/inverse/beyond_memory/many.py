"""Answers for more observations than fit into memory, written to Zarr as they come."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr
from tqdm.auto import tqdm

from wse._files import write_aside

CHUNK_BYTES = 2**26  # assumed: of draws that are in memory and in one file


def written(
    call: Callable[[Any, int], xr.Dataset], data: Any, each_bytes: int, out: Path | str
) -> xr.Dataset:
    """Return `call(observations, number of the first)` of all, lazily, from the store `out`.

    Chunk i of the observations, as many as take 64 MiB of `each_bytes`, is read, answered, and
    written; the store appears when all are there.
    """
    if not isinstance(data, xr.Dataset | xr.DataArray) or not data.sizes.get("sample"):
        said = dict(data.sizes) if isinstance(data, xr.Dataset | xr.DataArray) else type(data)
        raise ValueError(f"the observations are {said}; out= needs at least 1 along `sample`")
    if not isinstance(out, str | Path):
        raise TypeError(f"out is {out!r}; it must be the path of a store that is not there yet")
    if Path(out).exists():
        raise FileExistsError(f"{out} is there already; remove it, or name another")
    count, total = max(1, CHUNK_BYTES // each_bytes), data.sizes["sample"]
    with write_aside(out) as aside:
        for number, start in enumerate(tqdm(range(0, total, count), unit="chunk", leave=False)):
            part = data.isel(sample=slice(start, start + count)).compute()
            append(call(part, start), aside, number, min(count, total))
    return xr.open_zarr(out, consolidated=False)


def append(found: xr.Dataset, path: Path, number: int, count: int) -> None:
    """Write the answer of one chunk behind those that are there."""
    if not number:
        sizes = dict(found.sizes) | {"sample": count}
        encoding = {n: {"chunks": [sizes[d] for d in v.dims]} for n, v in found.items()}
        # Names are text, for which Zarr 3 has no stable format.
        found.to_zarr(path, mode="w-", encoding=encoding, consolidated=False, zarr_format=2)
        return
    along = [name for name, values in found.variables.items() if "sample" in values.dims]
    found[along].drop_vars([n for n in found.coords if n not in along]).to_zarr(
        path, append_dim="sample", consolidated=False, zarr_format=2
    )
