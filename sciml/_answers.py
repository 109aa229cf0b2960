"""Answers for more observations than fit into memory, written to Zarr as they come."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from sciml._arguments import check_whole
from sciml._numbers import short
from wse._files import alone_in, as_path, ensure_folder, to_disk, write_json

STORE, RECORD = "answers", "answered.json"  # in the folder of what is not complete
SLACK_S = 5.0  # assumed: the clock of a file system is no more behind


def in_parts(
    call: Callable[[Any, int], xr.Dataset | xr.DataArray],
    data: xr.Dataset | xr.DataArray,
    out: Path | str,
    *,
    asked: dict[str, Any],
    at_once: int = 1000,
) -> xr.Dataset:
    """Return what `call` says of all observations, lazily, from a Zarr store.

    Observations, best lazy, are read `at_once`, answered, and written to a folder beside `out`.
    When all are there they take its name. After a kill the same call goes on: it answers what was
    not answered, or is observed otherwise now.

    Args:
        call: (some observations, number of the first) ↦ answers along `sample`, such as
            `lambda part, first: sciml.reference.importance(fit, problem, part, seed=first)`.
        data: observations (sample, …).
        out: a store that is not there yet.
        asked: on what answers depend beside observations, as JSON takes it: a call that asks
            otherwise does not go on with these.
        at_once: how many observations.

    Raises:
        ValueError: no observations, or another call did not end here.
        FileExistsError: `out` is there.

    >>> import tempfile
    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.van_der_pol(), samples=120)
    >>> fit = sciml.fit(sciml.models.Gaussian(width=8, depth=1), data, epochs=2)
    >>> found = sciml.estimator.in_parts(
    ...     lambda part, _: fit.log_prob(part, part),
    ...     data,
    ...     tempfile.mkdtemp() + "/densities.zarr",
    ...     asked={"fit": "two epochs"},
    ... )
    >>> found.log_prob.sizes
    Frozen({'sample': 120})
    """
    if not isinstance(data, xr.Dataset | xr.DataArray) or not data.sizes.get("sample"):
        said = dict(data.sizes) if isinstance(data, xr.Dataset | xr.DataArray) else type(data)
        raise ValueError(f"the observations are {said}; out= needs at least 1 along `sample`")
    if isinstance(data.indexes.get("sample"), pd.MultiIndex):
        raise ValueError(
            "the samples have labels of several levels, for which a Zarr store has no place: pass "
            "data.reset_index('sample')"
        )
    out = as_path("out", out, 'pass the path of a store that is not there yet, as "draws.zarr"')
    beside = out.with_name(f".{out.name}.partial")
    check_whole(1, at_once=at_once)
    told = _told(asked, observations=data.sizes["sample"], at_once=at_once)
    _check_new(out)
    ensure_folder(beside)
    with alone_in(beside):
        _check_new(out)  # another process may have made it meanwhile
        done = _done(beside, told)
        try:
            _answer(call, data, beside, told, done)
        except Exception as error:
            if done:
                error.add_note(f"{len(done)} chunks are kept in {beside}: the same call goes on")
            raise
        finally:
            if not done:
                shutil.rmtree(beside, ignore_errors=True)
        (beside / STORE).replace(out)
        to_disk(out.parent)
        shutil.rmtree(beside, ignore_errors=True)
    return xr.open_zarr(out, consolidated=False)


def _answer(
    call: Callable[[Any, int], xr.Dataset | xr.DataArray],
    data: Any,
    beside: Path,
    asked: dict[str, Any],
    done: list[list[str]],
) -> None:
    """Write the answers that are not there, and add to `done` what is."""
    from dask.base import tokenize

    total, count = asked["observations"], asked["at_once"]
    own = data.variables if isinstance(data, xr.Dataset) else data.coords
    for number, start in enumerate(tqdm(range(0, total, count), unit="chunk", leave=False)):
        part = data.isel(sample=slice(start, start + count)).compute()
        here = {"sample": slice(start, start + part.sizes["sample"])}
        token = tokenize(part)
        if done[number : number + 1] == [[token, _on_disk(beside / STORE, here)]]:
            continue
        found, began = call(part, start), time.time() - SLACK_S
        found = _checked(found, part.sizes["sample"])
        if not number:
            done.clear()
            _make_room(found, own, total, beside / STORE, count)
        more = [n for n, v in found.variables.items() if "sample" in v.dims and n not in own]
        _check_labels(found, own, here, beside)
        new = found[more].drop_vars([n for n in found.coords if n not in more])
        new.drop_encoding().to_zarr(beside / STORE, region=here, consolidated=False)
        for path in (beside / STORE, *(beside / STORE).rglob("*")):
            if path.stat().st_mtime >= began:
                to_disk(path)
        done[number : number + 1] = [[token, _on_disk(beside / STORE, here)]]
        write_json(beside / RECORD, {"asked": asked, "done": done})


def _on_disk(store: Path, here: dict[str, slice]) -> str:
    """Return what tells the answers to a part as they are read; nothing where they are not."""
    from dask.base import tokenize

    try:
        there = xr.open_zarr(store, consolidated=False).isel(here).load()
    except Exception:  # a lost or damaged file: each codec has errors of its own
        return ""
    return tokenize({str(n): v.values for n, v in there.variables.items() if "sample" in v.dims})


def _told(asked: Any, **more: int) -> dict[str, Any]:
    """Return what is asked as JSON gives it back."""
    try:
        if not isinstance(asked, dict) or asked.keys() & more.keys():
            raise TypeError(f"it is {short(asked)}")
        return json.loads(json.dumps({**asked, **more}))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"asked must be a dict of text, numbers and lists of these ({error}), without "
            f"{' and '.join(more)}, which are added: pass asked={{'draws': 1000, 'seed': 0}}"
        ) from error


def _checked(found: Any, count: int) -> xr.Dataset:
    """Return the answer to a part as a data set; refuse one that is not of its samples."""
    if isinstance(found, xr.DataArray):
        found = found.to_dataset(name=str(found.name or "answer"))
    if not isinstance(found, xr.Dataset) or found.sizes.get("sample") != count:
        said = dict(found.sizes) if isinstance(found, xr.Dataset) else short(found)
        raise ValueError(
            f"call gave {said}; it must give a Dataset or DataArray with {count} along sample: "
            "an answer to each observation of its part"
        )
    return found


def _check_labels(found: xr.Dataset, own: Any, here: dict[str, slice], beside: Path) -> None:
    """Refuse labels and conditions that are no longer those with which the store was made."""
    there = xr.open_zarr(beside / STORE, consolidated=False).isel(here)
    for name in found.coords:
        if name in own and not found[name].variable.equals(there[name].variable.load()):
            raise ValueError(
                f"{name} of the observations is not what it was when {beside} was begun: remove "
                "that folder to begin anew"
            )


def _done(beside: Path, asked: dict[str, Any]) -> list[list[str]]:
    """Return what tells the parts that were answered, and their answers; refuse another call's."""
    if not (beside / RECORD).exists():
        return []
    try:
        found = json.loads((beside / RECORD).read_text(encoding="utf-8"))
        before, done = dict(found["asked"]), [[*map(str, x)] for x in found["done"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{beside / RECORD} is damaged ({error}); remove {beside}") from error
    if before != asked:
        other = [name for name in {**before, **asked} if before.get(name) != asked.get(name)]
        raise ValueError(
            f"{beside} holds answers of a call that did not end and asked otherwise ("
            + ", ".join(f"{n}: there {before.get(n)}, here {asked.get(n)}" for n in other)
            + "): ask the same to go on, remove that folder, or name another store"
        )
    return done


def _make_room(found: xr.Dataset, own: Any, total: int, path: Path, count: int) -> None:
    """Make the store of all answers, of which `found` are the first; `own` is what is known."""
    import dask.array

    def whole(name: Any, values: xr.DataArray) -> Any:
        if "sample" not in values.dims:
            return values.variable
        if name in own:  # of all: text as long as that of the first would be cut short
            return own[name].compute()
        sizes = [total if dim == "sample" else size for dim, size in values.sizes.items()]
        chunks = [min(count, total) if d == "sample" else s for d, s in values.sizes.items()]
        return values.dims, dask.array.zeros(sizes, values.dtype, chunks=chunks), values.attrs

    made = xr.Dataset(
        {name: whole(name, values) for name, values in found.items()},
        {name: whole(name, values) for name, values in found.coords.items()},
        found.attrs,
    )
    # Names are text, for which Zarr 3 has no stable format. How the file of the observations packs
    # its labels is not how they are kept here.
    made.drop_encoding().to_zarr(path, mode="w", compute=False, consolidated=False, zarr_format=2)


def _check_new(out: Path) -> None:
    if out.exists():
        raise FileExistsError(f"{out} is there already; remove it, or name another")
