"""Known inputs of each part of an observation, as its time, its stimulus or its dose."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from sciml._labels import labelled, marked
from sciml._numbers import short
from sciml.ode.conditions import flat_column, in_order, names_in

Inputs = Float[np.ndarray, "sample part condition"]


def of_data(data: xr.Dataset, conditions: Any, parts: int) -> tuple[tuple[str, ...], Inputs]:
    """Return names and values of what is known of each part of each sample.

    What the data set marks as conditions is of a whole sample, and so of all its parts.
    """
    given = named(conditions)
    if both := {*given} & {*marked(data)}:
        raise ValueError(
            f"the data set has the conditions {', '.join(sorted(both))} too; each must come once: "
            "leave it out of conditions="
        )
    every = {name: data[name] for name in marked(data)}
    every |= {name: in_order(values, name, data) for name, values in rows_of(given).items()}
    shape = (data.sizes["sample"], parts)
    found = {name: by_part(values, name, shape) for name, values in every.items()}
    return tuple(found), stacked(found, shape)


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
    flat = {n: x.to_numpy() if isinstance(x, pd.Series) else x for n, x in given.items()}
    rows = rows_of(flat)  # a column of ONE observation is of its parts
    found = {
        name: by_part(rows[name], name, (1, parts))
        if name in rows
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


def rows_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return conditions with their axes called sample and time; refuse parts in other orders.

    What has labels along its parts must have those of the others along an axis of one name, and
    along time the times themselves, where these are a condition too.
    """
    found = {name: labelled(values, ("sample", "time")) for name, values in given.items()}
    seen: dict[Any, tuple[str, Any]] = {}
    times: Any = found.get("time")
    if np.ndim(times) == 1:
        seen["time"] = "time", pd.Index(np.asarray(times))
    for name, values in found.items():
        if not isinstance(values, xr.DataArray):
            continue
        others = [dim for dim in values.dims if dim != "sample"]
        if len(others) > 1:
            raise ValueError(
                f"the condition {name} has the axes {', '.join(map(str, values.dims))}; they must "
                "be sample, and one of parts"
            )
        for dim in others:
            if (labels := values.indexes.get(dim)) is not None:
                first, own = seen.setdefault(dim, (name, labels))
                if not own.equals(labels):
                    raise ValueError(
                        f"the conditions {first} and {name} have {dim} {short(own.tolist())} and "
                        f"{short(labels.tolist())}; both must be the same, in order: use .sel, or "
                        "pass values without labels"
                    )
        found[name] = values.drop_vars(others, errors="ignore").rename(
            dict.fromkeys(others, "time")
        )
    return found


def by_part(values: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Return a condition as (sample, part), of one row, one number, or one of each sample."""
    if getattr(values, "dims", None) == ("sample",):
        return np.broadcast_to(flat_column(values, name, shape[:1]), shape)
    if np.ndim(values) == 0:
        values = np.full(shape[1:], np.asarray(values))
    return flat_column(values, name, shape)


def stacked(found: dict[str, np.ndarray], shape: tuple[int, int]) -> Inputs:
    """Return columns of conditions side by side; none is a table without columns."""
    return np.stack([*found.values()], axis=-1) if found else np.zeros((*shape, 0))


def same_of(values: Inputs) -> tuple[tuple[float, ...], ...]:
    """Return of each condition its values by part where all samples have the same, else nothing."""
    same = (values == values[0]).all(axis=(0, 1))
    first = values[0].T.tolist()
    return tuple(tuple(each) if alike else () for each, alike in zip(first, same, strict=True))
