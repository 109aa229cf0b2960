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


def of_problem(names: tuple[str, ...], conditions: Any, parts: int) -> Float[np.ndarray, "part n"]:
    """Return what is known of each part of ONE observation, in the order of the training."""
    given = named(conditions)
    if {*given} != {*names}:
        raise ValueError(
            f"the conditions are {', '.join(given) or 'none'}, and the likelihood was learned with "
            f"{', '.join(names) or 'none'}: pass conditions= with a value for each part of these"
        )
    found = {name: by_part(as_rows(given[name], name), name, (1, parts)) for name in names}
    return stacked(found, (1, parts))[0]


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
