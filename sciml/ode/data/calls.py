"""Simulators that are no JAX, called in parallel."""

import inspect
import json
import logging
import time as clock
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr

from sciml._labels import is_counted
from sciml._numbers import as_real, real, short
from sciml._precision import same_places
from sciml._session import asked, set_to
from sciml.ode import conditions as known
from sciml.ode import prior as priors
from sciml.ode.blackbox import BlackBox
from sciml.ode.data import kept
from sciml.ode.data.kept import Rows
from sciml.ode.data.own import arranged

log = logging.getLogger(__name__)

BLOCKS = 64  # assumed: tasks of a run; each has some samples, and the bar moves with each


def black_box(
    simulator: Callable[..., Any],
    prior: priors.Prior,
    samples: int,
    conditions: known.Conditions | None = None,
    *,
    seed: int = 0,
    time: Any = None,
    labels: Sequence[str] | None = None,
    scheduler: Any = "threads",
    folder: Path | str | None = None,
) -> xr.Dataset:
    """Return simulations of a function that is no JAX, called in parallel through Dask.

    Args:
        simulator: of one sample: a dict of parameters, name → number, ↦ an array (feature,),
            (time,) or (time, channel); or a dict, a table or a DataArray with names along these
            axes, which are put in order by them. If it takes a second argument, that is a
            `numpy.random.Generator` of the sample's own, so that the same seed gives the same
            numbers in whatever order samples are computed.
        prior: as of a `System`.
        samples: how many to draw.
        conditions: known inputs, numbers as of a `System`; the dict holds them beside the
            parameters, by name.
        seed: of parameters and generators.
        time: of the first axis of what it returns, which are features otherwise.
        labels: names of channels, or of features.
        scheduler: of Dask: "threads", "processes" for functions that compute in Python itself (then
            a script needs `if __name__ == "__main__":`), "synchronous", or a distributed Client.
        folder: where results are kept as they come, every 20 seconds at least; the same call goes
            on from there, and tries again what failed. One sample is called again, to see that the
            function is the same: a change that it does not show goes unseen, so name another
            folder after one.

    Returns:
        As `dataset`, and as `simulate` of a `BlackBox`. A sample whose call raised, or returned
        values that are not finite, has failed: it is NaN, marked False in `valid`, and logged with
        the first error.

    Raises:
        ValueError: all samples failed, arrays have different shapes, or another function's results
            are in the folder.
        RuntimeError: a process ended by itself.

    >>> from numpyro.distributions import Uniform
    >>> import numpy as np, sciml
    >>> def decay(p, rng):
    ...     return np.exp(-p["rate"] * np.arange(5)) + 0.1 * rng.normal(size=5)
    >>> data = sciml.ode.black_box(decay, {"rate": Uniform(0.1, 1.0)}, 20, time=np.arange(5))
    >>> data.observation.shape, int(data.valid.sum())
    ((20, 5), 20)
    """
    box = BlackBox(simulator, prior, conditions or {}, time, labels, scheduler, folder)
    theta = priors.draw(prior, samples, jax.random.key(seed), box.name)
    rows = known.rows(box, theta, jax.random.key(seed))
    return from_calls(box, rows, {"samples": samples, "seed": seed})


def from_calls(box: BlackBox, rows: np.ndarray, settings: dict[str, Any]) -> xr.Dataset:
    """Return what a simulator makes of rows of parameters and, behind them, conditions."""
    from dask.delayed import delayed
    from tqdm.dask import TqdmCallback

    width, names = len(box.parameter_names), known.names_of(box)
    every = (*box.parameter_names, *names)
    whole = [dict(zip(every, map(float, row), strict=True)) for row in rows]
    generators = np.random.SeedSequence(settings["seed"]).spawn(len(rows))
    axis = "feature" if box.time is None else "time"
    cuts = np.array_split(np.arange(len(rows)), min(BLOCKS, len(rows)))
    folder = kept.folder_of(box.folder)
    files = [
        kept.file_of(folder, every, rows[cut], (settings["seed"], int(cut[0]), axis))
        for cut in cuts
    ]

    def task(cut: Any, file: Path | None) -> Any:
        given = [whole[i] for i in cut], [generators[i] for i in cut]
        return delayed(called)((box.simulator, axis, asked()), *given, file)

    for cut, file in zip(cuts, files, strict=True) if folder is not None else ():
        before = kept.read(file)
        if worked := [i for i, one in enumerate(before) if not isinstance(one, str)]:
            ((now,),) = computed([task(cut[worked[:1]], None)], box)
            if not isinstance(now, str):
                now = as_first(now, before[worked[0]], box.name)
            kept.check_again(box.name, str(box.folder), before[worked[0]], now)
            break
    tasks = [task(cut, file) for cut, file in zip(cuts, files, strict=True)]
    with TqdmCallback(desc=box.name, leave=False, delay=1):
        parts = computed(tasks, box)
    arrays = stacked([one for part in parts for one in part], box.name)
    given = dict(zip(names, rows[:, width:].T, strict=True)) or None
    about: Any = {"names": box.parameter_names, "prior": box.prior, "time": box.time}
    data = arranged(rows[:, :width], arrays, given, **about, labels=box.labels)
    return data.assign_attrs(system=box.name, settings=json.dumps(settings))


def computed(tasks: list[Any], box: BlackBox) -> Any:
    """Return what tasks return, wherever the box's scheduler has them done."""
    from dask.base import compute

    try:
        return compute(*tasks, scheduler=box.scheduler)
    except BrokenProcessPool:
        raise RuntimeError(
            f"a process in which {box.name!r} was called ended by itself: a script whose scheduler "
            "is 'processes' needs `if __name__ == '__main__':` before its calls; else memory ran "
            "out, or the function ends its process"
        ) from None


def check_alone(box: BlackBox, given: dict[str, Any]) -> None:
    """Refuse what a function that is no JAX does by itself."""
    if extra := [name for name, each in given.items() if each is not None]:
        raise ValueError(
            f"{extra[0]} is {given[extra[0]]!r:.80} and {box.name!r} is a black box, whose "
            f"simulations are as they are: leave {extra[0]} out, or write it into the function"
        )


def called(
    how: tuple[Callable[..., Any], str, dict[str, Any]],
    rows: list[Any],
    seeds: list[Any],
    file: Path | None,
) -> Rows:
    """Return what a simulator makes of some samples, names along an axis; of one that raises, why.

    What is in the file is not called again, unless it failed, for whatever reason then; what comes
    is written there. A black box itself holds the client, which no worker can be sent. Behind the
    simulator and the axis stands what the user has set of JAX, in which it may compute.
    """
    simulator, axis, session = how
    wants_generator = takes_two(simulator)
    made = kept.read(file)
    left = [i for i in range(len(rows)) if i >= len(made) or isinstance(made[i], str)]
    saved = clock.monotonic()
    for i in left:
        row, seed = rows[i], seeds[i]
        given = (row, np.random.default_rng(seed)) if wants_generator else (row,)
        try:
            with set_to(session):
                found = simulator(*given)
            made[i : i + 1] = [returned(found, axis)]
        except Exception as error:  # not ours: whatever it raises, one sample failed
            made[i : i + 1] = [f"{type(error).__name__}: {error}"]
        late = clock.monotonic() - saved > kept.SAVED_S
        if file is not None and (late or i == left[-1]):
            file = file if kept.keep(file, made) else None
            saved = clock.monotonic()
    return made


def returned(found: Any, axis: str) -> np.ndarray | xr.DataArray:
    """Return a copy of what a simulator returned, which may fill its array anew at each call.

    Names are kept: of a dict or a row of pandas along `axis`, of a table along time and channel.
    """
    if isinstance(found, Mapping):
        found = (pd.DataFrame if any(map(np.ndim, found.values())) else pd.Series)(dict(found))
    if isinstance(found, pd.DataFrame | pd.Series):
        dims = (axis,) if found.ndim == 1 else ("time", "channel")
        named = zip(dims, found.axes, strict=True)
        coords = {dim: list(index) for dim, index in named if not is_counted(index)}
        found = xr.DataArray(found.to_numpy(), coords, dims)
    if not isinstance(found, xr.DataArray):
        return np.array(real(found, "what it returns"))
    if found.ndim == 1 and found.dims[0] not in ("time", "feature"):
        found = found.rename({found.dims[0]: axis})
    return as_real(found, "what it returns").astype(np.float64).reset_coords(drop=True)


def takes_two(simulator: Callable[..., Any]) -> bool:
    """Tell whether a function has a second argument without a default."""
    try:
        parameters = list(inspect.signature(simulator).parameters.values())
    except (TypeError, ValueError):  # of a built-in function nothing is known
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(places) > 1 and places[1].default is places[1].empty


def stacked(made: Rows, owner: str) -> np.ndarray | xr.DataArray:
    """Return all arrays as one, NaN where a call failed; log the first failure."""
    arrays = [one for one in made if not isinstance(one, str)]
    said = [one for one in made if isinstance(one, str)]
    if not arrays:
        raise ValueError(
            f"all {len(made)} calls of {owner} failed, the first with {said[0][:200]}: it is "
            "called with a dict of parameters, and must return an array"
        )
    if said:
        log.warning(
            "%d of %d calls of %s failed, as %s", len(said), len(made), owner, said[0][:200]
        )
    like = arrays[0]
    whole = [one if isinstance(one, str) else as_first(one, like, owner) for one in made]
    shapes = {one.shape for one in whole if not isinstance(one, str)}
    if len(shapes) > 1 or not like.ndim:
        raise ValueError(
            f"{owner} returns arrays of shapes {sorted(shapes)}; all must be of one, (feature,), "
            "(time,) or (time, channel): interpolate, or fill with NaN"
        )
    nothing = np.full(like.shape, np.nan)
    filled = np.stack([nothing if isinstance(one, str) else one for one in whole])
    if isinstance(like, xr.DataArray):
        coords = {dim: like[dim] for dim in like.dims if dim in like.coords}
        return xr.DataArray(filled, coords, ("sample", *like.dims))
    return filled


def as_first(one: Any, first: Any, owner: str) -> np.ndarray:
    """Return what one call returned in the order of the names that the first one had."""
    names = [getattr(each, "coords", {}) for each in (one, first)]
    if {*names[0]} != {*names[1]} or {*getattr(one, "dims", ())} != {*getattr(first, "dims", ())}:
        raise ValueError(
            f"{owner} returns names in one call and not in another; return the same from each"
        )
    if not isinstance(one, xr.DataArray):
        return one
    one = one.transpose(*first.dims)
    for dim in (dim for dim in first.dims if dim in first.coords):
        own, wanted = one.indexes[dim], first.indexes[dim]
        are_numbers = len(own) == len(wanted) and {own.dtype.kind, wanted.dtype.kind} <= {*"iuf"}
        if are_numbers and same_places(own.to_numpy(), wanted.to_numpy()).all():
            continue
        if twice := own[own.duplicated()].tolist():
            raise ValueError(f"{owner} returns the {dim} {twice[0]!r} twice; name each once")
        if {*own} != {*wanted}:
            raise ValueError(
                f"{owner} returns the {dim}s {short(list(own))} in one call and "
                f"{short(list(wanted))} in another: interpolate, or return the same from each"
            )
        one = one.sel({dim: wanted})
    return one.values
