"""Simulations of others: arrays as a data set, and simulators, not of JAX, called in parallel."""

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr

from sciml._labels import labels_of, parameter_names, same_samples, variable
from sciml.ode import conditions as known
from sciml.ode import prior as priors
from sciml.ode.rule import holds
from sciml.provenance import provenance

log = logging.getLogger(__name__)

BLOCKS = 64  # assumed: tasks of a run; each has some samples, and the bar moves with each
Rows = list[np.ndarray | str]  # what a simulator returned, or why it failed


def dataset(
    theta: Any,
    x: Any,
    conditions: Any = None,
    *,
    names: Sequence[str] | None = None,
    bounds: Any = None,
    prior: priors.Prior | None = None,
    time: Any = None,
    labels: Sequence[str] | None = None,
) -> xr.Dataset:
    """Return your own parameters and observations as the data set that `sciml.fit` takes.

    Args:
        theta: (sample, parameter): an array, a table or dict of columns, or a DataArray.
        x: what was observed of each: (sample, feature), (sample, time) or (sample, time, channel);
            an array, a table, or a DataArray with these axes. A sample without any finite value, or
            with an infinite one, has failed: it is kept as NaN and marked False in `valid`. NaN in
            other samples is a missing value.
        conditions: known inputs of each sample, which a fit does not estimate: a table or dict,
            name → (sample,), or of a series (sample, time). Else what `x` carries as coordinates.
        names: of the parameters, where `theta` has none; default theta0, theta1, …
        bounds: ends of the parameters, beyond which a posterior puts nothing: name → (low, high),
            or such pairs in order; None for an end that is not there.
        prior: as of a `System`, in place of bounds, which are then its support.
        time: of the second axis of a bare array or table, which are features otherwise.
        labels: names of channels, or of features.

    Returns:
        `observation`, `parameters (sample, parameter)` and `valid (sample)`; conditions are
        coordinates, prior and support attributes.

    Raises:
        ValueError: numbers of samples differ, names do not fit, a parameter is not finite or lies
            outside its bounds, a condition is not known everywhere, or all samples failed.

    >>> import numpy as np, sciml
    >>> theta = np.random.default_rng(0).uniform(size=(100, 2))
    >>> data = sciml.dataset(theta, theta @ np.ones((2, 5)), names=("a", "b"), bounds=[(0, 1)] * 2)
    >>> data.observation.dims, data.attrs["support"]
    (('sample', 'feature'), '{"a": [0.0, 1.0], "b": [0.0, 1.0]}')
    """
    values = variable(theta, "parameters", ("sample", "parameter"))
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 2:
        raise ValueError(f"theta has shape {numbers.shape}; it must be (sample, parameter)")
    chosen = names_of_columns(values, names)
    seen = same_samples(observations(x, time, labels), values, "the observations")
    if len(seen) != len(numbers):
        raise ValueError(f"there are {len(numbers)} parameters and {len(seen)} observations")
    support = checked_support(numbers, chosen, bounds, prior)
    flat = seen.values.reshape(len(seen), -1)
    valid = np.isfinite(flat).any(axis=1) & ~np.isinf(flat).any(axis=1)
    if not valid.any():
        raise ValueError(
            f"all {len(valid)} observations are missing or infinite; one must be there"
        )
    if failures := int((~valid).sum()):
        log.warning("%d of %d samples failed", failures, len(valid))
    rules, mask = checked_rules(numbers, chosen, prior), xr.DataArray(valid, dims="sample")
    data = xr.Dataset(
        {
            "observation": seen.where(mask).astype(np.float32),
            "parameters": (("sample", "parameter"), numbers),
            "valid": ("sample", valid),
        },
        coords={"parameter": list(chosen)},
        attrs={
            "system": "own",
            **({"support": json.dumps(support)} if bounds is not None or prior else {}),
            **({"inside": json.dumps(rules)} if rules else {}),
            **({"prior": json.dumps(priors.described(prior))} if prior else {}),
            "failures": failures,
            **provenance(),
        },
    )
    return data if conditions is None else data.assign_coords(own_conditions(conditions, seen))


def own_conditions(source: Any, seen: xr.DataArray) -> dict[str, Any]:
    """Return conditions of your own samples as coordinates, checked."""
    names = known.names_in(source)
    if taken := [name for name in names if name in (*known.RESERVED, *seen.dims)]:
        raise ValueError(
            f"a condition is named {taken[0]!r}, which means something else: rename it"
        )
    found, times = known.columns_from("the data", source, names, seen), seen.sizes.get("time", 0)
    coordinates: dict[str, Any] = {}
    for name, values in found.items():
        is_series = np.ndim(values) == 2
        shape = (len(seen), times) if is_series else (len(seen),)
        column = known.flat_column(values, name, shape)
        dims = ("sample", "time")[: len(shape)]
        coordinates[name] = (dims, column.reshape(shape), {"role": known.ROLE})
    return coordinates


def names_of_columns(values: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of parameters: those given, or those of the table, which must agree."""
    width, own = values.shape[1], labels_of(values)
    chosen = tuple(names or own or parameter_names(values, width))
    if len(chosen) != width or len({*chosen}) < len(chosen) or (own and own != chosen):
        raise ValueError(
            f"names are {', '.join(chosen)} and theta has {', '.join(own) or width}; "
            "there must be one for each column, each once"
        )
    return chosen


def observations(x: Any, time: Any, labels: Sequence[str] | None) -> xr.DataArray:
    """Return observations with their axes named, (sample, time or feature[, channel])."""
    if isinstance(x, xr.Dataset):
        x = variable(x, "observation", ("sample",))
    if isinstance(x, xr.DataArray):
        series = ("sample", "time", "channel")[: x.ndim]
        wanted = series if "time" in x.dims else ("sample", "feature")
        if set(x.dims) != set(wanted):
            raise ValueError(
                f"x has the axes {', '.join(map(str, x.dims))}; they must be (sample, feature), "
                "(sample, time) or (sample, time, channel): use .rename"
            )
        x = x.transpose(*wanted)
        return x if labels is None else x.assign_coords({wanted[-1]: list(labels)})
    if isinstance(x, pd.DataFrame):
        labels = labels if labels or time is not None else [str(column) for column in x.columns]
    array = np.asarray(x, np.float64)
    second = "feature" if time is None and array.ndim == 2 else "time"
    dims = ("sample", second, "channel")[: array.ndim]
    if array.ndim not in (2, 3):
        raise ValueError(
            f"x has shape {array.shape}; it must be (sample, feature), (sample, time) or "
            "(sample, time, channel)"
        )
    coords: dict[str, Any] = {}
    if time is not None:
        coords["time"] = np.asarray(time, np.float64)
    if labels is not None:
        coords[dims[-1]] = list(labels)
    wrong = [name for name, c in coords.items() if len(c) != array.shape[dims.index(name)]]
    if wrong:
        raise ValueError(
            f"x has shape {array.shape}, its axes are {', '.join(dims)}, and there are "
            f"{len(coords[wrong[0]])} values for {wrong[0]}; there must be one for each entry"
        )
    return xr.DataArray(array, coords, dims)


def checked_support(
    theta: np.ndarray, names: tuple[str, ...], bounds: Any, prior: Any
) -> dict[str, list[float | None]]:
    """Return the support of each parameter, None for an end that is not there; check all values."""
    if bounds is not None and prior is not None:
        raise ValueError(
            f"bounds and prior are both given, {bounds!r} and {prior!r}; pass one, since a prior "
            "has its own"
        )
    if prior is not None:
        priors.check_entries(prior)
        ends = priors.support(prior)
    else:
        ends = named_pairs([(None, None)] * len(names) if bounds is None else bounds, names)
    if set(ends) != set(names):
        raise ValueError(
            f"{'the prior has' if prior else 'bounds are of'} {', '.join(map(str, ends))}; the "
            f"parameters are {', '.join(names)}: name each of them"
        )
    found: dict[str, list[float | None]] = {}
    for name, column in zip(names, theta.T, strict=True):
        low, high = (
            infinite if end is None else float(end)
            for end, infinite in zip(ends[name], (-np.inf, np.inf), strict=True)
        )
        if not low < high:
            raise ValueError(f"bounds of {name} are [{low}, {high}]; the first must be the lower")
        inside = np.isfinite(column) & priors.within(column, low, high)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(
                f"{name} of sample {row} is {column[row]}; it must be finite and lie in "
                f"[{low}, {high}]: drop that sample, or widen the bounds"
            )
        found[name] = [None if np.isinf(end) else end for end in (low, high)]
    return found


def named_pairs(bounds: Any, names: tuple[str, ...]) -> dict[str, tuple[Any, Any]]:
    """Return bounds by name; refuse what is no pair, and too few or too many without names."""
    try:
        pairs = bounds if isinstance(bounds, Mapping) else dict(zip(names, bounds, strict=True))
        return {name: (low, high) for name, (low, high) in pairs.items()}
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds are {bounds!r}; they must be a pair (low, high) for each of "
            f"{', '.join(names)}, None where there is no end: as {{{names[0]!r}: (0.0, 1.0), …}}"
        ) from None


def checked_rules(theta: np.ndarray, names: tuple[str, ...], prior: Any) -> list[str]:
    """Return what holds of all parameters by their prior, checked of each sample."""
    rules = priors.rules(prior or {})
    for rule in rules:
        with jax.enable_x64(True):
            outside = ~np.asarray(holds(rule, dict(zip(names, theta.T, strict=True))))
        if outside.any():
            row = int(outside.argmax())
            raise ValueError(
                f"the parameters of sample {row} are {theta[row]}; by their prior {rule}: drop "
                f"such samples, of which there are {outside.sum()}, or take another prior"
            )
    return rules


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
) -> xr.Dataset:
    """Return simulations of a function that is no JAX, called in parallel through Dask.

    Args:
        simulator: of one sample: a dict of parameters, name → number, ↦ an array (feature,),
            (time,) or (time, channel). If it takes a second argument, that is a
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

    Returns:
        As `dataset`. A sample whose call raised, or returned values that are not finite, has
        failed: it is NaN, marked False in `valid`, and logged with the first error.

    Raises:
        ValueError: all samples failed, or arrays have different shapes.

    >>> from numpyro.distributions import Uniform
    >>> import numpy as np, sciml
    >>> def decay(p, rng):
    ...     return np.exp(-p["rate"] * np.arange(5)) + 0.1 * rng.normal(size=5)
    >>> data = sciml.ode.black_box(decay, {"rate": Uniform(0.1, 1.0)}, 20, time=np.arange(5))
    >>> data.observation.shape, int(data.valid.sum())
    ((20, 5), 20)
    """
    from dask.base import compute
    from dask.delayed import delayed
    from tqdm.dask import TqdmCallback

    priors.check_entries(prior)
    owner = getattr(simulator, "__name__", "simulator")
    theta = priors.draw(prior, samples, jax.random.key(seed), owner)
    names = priors.names_of(prior)
    about = SimpleNamespace(name=owner, parameter_names=names, conditions=conditions or {})
    known.check_conditions(about, 0)
    whole = known.rows(about, theta, jax.random.key(seed))
    all_names = (*names, *known.names_of(about))
    rows = [dict(zip(all_names, map(float, row), strict=True)) for row in whole]
    generators = np.random.SeedSequence(seed).spawn(samples)
    cuts = np.array_split(np.arange(samples), min(BLOCKS, samples))
    tasks = [
        delayed(called)(simulator, [rows[i] for i in cut], [generators[i] for i in cut])
        for cut in cuts
    ]
    with TqdmCallback(desc=owner, leave=False, delay=1):
        parts = compute(*tasks, scheduler=scheduler)
    made = [one for part in parts for one in part]
    arrays = stacked(made, owner)
    given = dict(zip(all_names, whole.T, strict=True)) if conditions else {}
    given = {name: given[name] for name in known.names_of(about)} or None
    data = dataset(theta, arrays, given, names=names, prior=prior, time=time, labels=labels)
    return data.assign_attrs(system=owner, settings=json.dumps({"samples": samples, "seed": seed}))


def called(simulator: Callable[..., Any], rows: list[Any], seeds: list[Any]) -> Rows:
    """Return what a simulator makes of some samples; of one that raises, what it said."""
    wants_generator = takes_two(simulator)
    made: Rows = []
    for row, seed in zip(rows, seeds, strict=True):
        given = (row, np.random.default_rng(seed)) if wants_generator else (row,)
        try:
            made.append(np.asarray(simulator(*given), np.float64))
        except (
            Exception
        ) as error:  # the simulator is not ours: whatever it raises, one sample failed
            made.append(f"{type(error).__name__}: {error}")
    return made


def takes_two(simulator: Callable[..., Any]) -> bool:
    """Tell whether a function has a second argument without a default."""
    try:
        parameters = list(inspect.signature(simulator).parameters.values())
    except (TypeError, ValueError):  # of a built-in function nothing is known
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(places) > 1 and places[1].default is places[1].empty


def stacked(made: Rows, owner: str) -> np.ndarray:
    """Return all arrays as one, NaN where a call failed; log the first failure."""
    arrays = [one for one in made if isinstance(one, np.ndarray)]
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
    if len(shapes := {one.shape for one in arrays}) > 1 or not arrays[0].ndim:
        raise ValueError(
            f"{owner} returns arrays of shapes {sorted(shapes)}; all must be of one, (feature,), "
            "(time,) or (time, channel): interpolate, or fill with NaN"
        )
    nothing = np.full(arrays[0].shape, np.nan)
    return np.stack([one if isinstance(one, np.ndarray) else nothing for one in made])
