"""Known inputs of each part of an observation, as its time, its stimulus or its dose."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._labels import marked
from sciml._numbers import as_numbers, short
from sciml.ode.conditions import in_order, names_in
from sciml.ode.observe.sentinels import warn_of_sentinels

Inputs = Float[np.ndarray, "sample part condition"]


def of_data(data: xr.Dataset, conditions: Any, parts: int) -> tuple[tuple[str, ...], Inputs]:
    """Return names and values of what is known of each part of each sample.

    What the data set marks as conditions is of a whole sample, and so of all its parts.
    """
    given = named(conditions)
    samples = data.sizes["sample"]
    if both := {*given} & {*marked(data)}:
        raise ValueError(
            f"the data set has the conditions {', '.join(sorted(both))} too; each must come once: "
            "leave it out of conditions="
        )
    found = {name: of_samples(data[name], name, (samples, parts)) for name in marked(data)}
    for name, values in given.items():
        found[name] = by_part(in_order(as_rows(values, name), name, data), name, (samples, parts))
    for name, values in found.items():
        warn_of_sentinels(values, f"the condition {name}", each=False)
    return tuple(found), stacked(found, (samples, parts))


def of_problem(points: Any, conditions: Any, parts: int) -> Float[np.ndarray, "part n"]:
    """Return what is known of each part of ONE observation, in the order of the training.

    What is not given is as in the training, where all samples had as many parts with the same; of
    what is of whole samples it is NaN: that comes with the observation.
    """
    given = named(conditions)
    names = points.conditions
    if strange := [*({*given} - {*names})]:
        raise ValueError(
            f"the conditions name {strange[0]}, and the likelihood was learned with "
            f"{', '.join(names) or 'none'}: leave it out, or rename it"
        )
    trained = as_trained(points, parts)
    if not len(trained) and (lacking := [n for n in names[points.shared :] if n not in given]):
        kept = points.known[names.index(lacking[0])]
        if len(kept) != parts:
            raise ValueError(
                f"the condition {lacking[0]} is not given, and samples of the training or their "
                f"number of parts differ: pass conditions= with {parts} values of it"
            )
    found = {
        name: by_part(as_rows(given[name], name), name, (1, parts))
        if name in given
        else filled(points, i, parts)[None]
        for i, name in enumerate(names)
    }
    return stacked(found, (1, parts))[0]


def as_trained(points: Any, parts: int) -> Float[np.ndarray, "part n"]:
    """Return what was known of each part; no rows where that differed between samples."""
    every = [filled(points, i, parts) for i in range(len(points.conditions))]
    complete = all(len(each) == parts for each in every)
    return np.stack(every, axis=-1) if every and complete else np.zeros((0, len(every)))


def filled(points: Any, i: int, parts: int) -> np.ndarray:
    """Return a condition by part: as in the training, or NaN if it is of whole samples."""
    return np.full(parts, np.nan) if i < points.shared else np.array(points.known[i])


def named(conditions: Any) -> dict[str, Any]:
    """Return conditions by name."""
    if conditions is None:
        return {}
    names_in(conditions)
    if not isinstance(conditions, Mapping):
        raise TypeError(
            f"conditions are {short(conditions)}; they must be a dict of names and of a value for "
            "each part, as {'time': [0.0, 1.0, 2.0]}"
        )
    return {str(name): values for name, values in conditions.items()}


def as_rows(values: Any, name: str) -> Any:
    """Return a labelled array with its axes called as those of a series: sample and time."""
    if not isinstance(values, xr.DataArray):
        return values
    others = [dim for dim in values.dims if dim != "sample"]
    if len(others) > 1:
        raise ValueError(
            f"the condition {name} has the axes {', '.join(map(str, values.dims))}; they must be "
            "sample, and one of parts"
        )
    return values.rename({dim: "time" for dim in others if dim != "time"})


def of_samples(values: xr.DataArray, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a condition of the samples for all their parts; refuse a series."""
    if values.dims != ("sample",):
        raise ValueError(
            f"the condition {name} has the axes {', '.join(map(str, values.dims))}; of a data set "
            "it must be one number for each sample; pass what differs between parts as conditions="
        )
    return np.broadcast_to(finite(values, name)[:, None], shape)


def by_part(values: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a condition as (sample, part), of one row or one number repeated."""
    known = finite(values, name)
    if known.ndim == 1 and getattr(values, "dims", ()) == ("sample",):
        known = known[:, None]
    if known.ndim > 2 or np.shape(known)[-1:] not in ((), (1,), shape[1:]):
        raise ValueError(
            f"the condition {name} has the shape {known.shape}; it must be ({shape[1]},), a value "
            f"for each part, or {shape} where samples differ"
        )
    if known.ndim == 2 and len(known) not in (1, shape[0]):
        raise ValueError(
            f"the condition {name} has {len(known)} rows; it must have {shape[0]}, one for each "
            "sample"
        )
    return np.broadcast_to(known, shape)


def finite(values: Any, name: str) -> np.ndarray:
    """Return numbers; refuse what lacks."""
    known = as_numbers(values, f"the condition {name}").astype(np.float64)
    if not np.isfinite(known).all():
        raise ValueError(
            f"the condition {name} holds {known[~np.isfinite(known)][0]}; conditions are known: "
            "each must be a finite number, so drop such samples or parts"
        )
    return known


def stacked(found: dict[str, np.ndarray], shape: tuple[int, int]) -> Inputs:
    """Return columns of conditions side by side; none is a table without columns."""
    return np.stack([*found.values()], axis=-1) if found else np.zeros((*shape, 0))


def same_of(values: Inputs) -> tuple[tuple[float, ...], ...]:
    """Return of each condition its values by part where all samples have the same, else nothing."""
    same = (values == values[0]).all(axis=(0, 1))
    first = values[0].T.tolist()
    return tuple(tuple(each) if alike else () for each, alike in zip(first, same, strict=True))
