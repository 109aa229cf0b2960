"""What was observed: whether it was measured alike, and at all."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from sciml._numbers import finite_places
from sciml._precision import same_places
from sciml._units import as_other, same_unit
from sciml.ode.conditions import names_of
from sciml.ode.data import labels
from sciml.ode.methods.solver import Problem, sight, solution_of, solvable
from sciml.ode.mistakes import solution_shape
from sciml.ode.observe.noise import measure
from sciml.ode.static import Static


def check_seen(seen: Float[np.ndarray, "sample ..."], valid: np.ndarray | None = None) -> None:
    """Refuse infinity, and samples of which nothing was observed, among the valid ones."""
    rows = seen.reshape(len(seen), -1)
    valid = np.full(len(rows), True) if valid is None else valid
    infinite = valid & np.isinf(rows).any(axis=1)
    if infinite.any():
        raise ValueError(
            f"the observation of sample {infinite.argmax()} is infinite; values must be finite, "
            "or NaN where they are missing"
        )
    unseen = valid & np.isnan(rows).all(axis=1)
    if unseen.any():
        raise ValueError(
            f"the observation of sample {unseen.argmax()} is missing altogether ({unseen.sum()} "
            f"of {len(rows)} samples); at least one value must be observed: drop such samples, or "
            "mark them False in `valid`"
        )


def valid_in(data: xr.Dataset) -> np.ndarray:
    """Return which samples a data set says did not fail (sample,): all where it says nothing.

    `valid` may be of 0 and 1, as files and tables have it.
    """
    count = data.sizes["sample"]
    if "valid" not in data:
        return np.full(count, True)
    said = data["valid"]
    wrong = ~np.isin(said.values, (0, 1))  # True and False are 1 and 0
    if said.dims != ("sample",) or wrong.any():
        value = said.values[wrong][0] if wrong.any() else said.dims
        value = value.item() if isinstance(value, np.generic) else value
        raise ValueError(
            f"`valid` has {value!r}; it must be True or False for each sample: say which did "
            "not fail, or drop it"
        )
    return said.values.astype(bool)


def as_seen(problem: Problem, noise: Any = None) -> xr.DataArray:
    """Return what an observation of a problem looks like (sample, …): its axes, no values."""
    problem = solvable(problem)
    if isinstance(problem, Static):
        shape = solved_shape(problem)
    else:
        grid = problem.observation
        states = jax.ShapeDtypeStruct((len(grid.times), len(grid.states)), jnp.float32)
        shape = jax.eval_shape(sight(problem), states).shape
    clean = jax.ShapeDtypeStruct((1, *shape), jnp.float32)
    seen = jax.eval_shape(lambda k, u: measure(noise, k, u)[0], jax.random.key(0), clean)
    empty = np.empty(seen.shape)
    return xr.DataArray(empty, labels.axes(problem, empty), labels.dimensions(problem, empty))


def solved_shape(task: Static) -> tuple[int, ...]:
    """Return the shape of the solution of a task, which is θ where it has none of its own."""
    width = len(task.parameter_names) + len(names_of(task))
    if task.solution is None:
        return (width,)
    dtype = getattr(task.method, "dtype", "float32")
    with jax.enable_x64(dtype == "float64"):
        row = jax.ShapeDtypeStruct((width,), jnp.dtype(dtype))
        return solution_shape(task, solution_of(task), row)


def check_same_grid(data: xr.DataArray, like: xr.DataArray, owner: str) -> None:
    """Refuse observations on another grid than `like`, which is that of its owner.

    Dimensions, sizes, units, times, and names of channels or features are compared; what one of the
    two does not name is not.
    """
    check_same_unit(data, like, "the observations", owner)
    if data.dims != like.dims:
        raise ValueError(
            f"the observations have the dimensions {data.dims}, but {like.dims} in {owner}: "
            "use .rename or .transpose, or observe as many channels"
        )
    for dim in map(str, like.dims[1:]):
        if data.sizes[dim] != like.sizes[dim]:
            raise ValueError(
                f"the observations have {data.sizes[dim]} {dim}s, but there are {like.sizes[dim]} "
                f"in {owner}; both must have one grid: simulate on that of the observations, "
                "interpolate them, or mark what is missing by NaN"
            )
        if dim in data.coords and dim in like.coords:
            check_same_axis(data[dim], like[dim], owner)


def check_same_unit(found: xr.DataArray, like: xr.DataArray, what: str, owner: str) -> None:
    """Refuse another unit, if both say one, however it is written."""
    said, meant = (str(each.attrs.get("units", "")).strip() for each in (found, like))
    if said and meant and not same_unit(said, meant):
        raise ValueError(
            f"the unit of {what} is {said!r}, but {meant!r} in {owner}: {as_other(said, meant)}"
        )


def check_same_axis(found: xr.DataArray, like: xr.DataArray, owner: str) -> None:
    """Refuse other times, dates, another unit of times, or other names, along one axis."""
    if found.dtype.kind in "mM" and like.dtype.kind not in "mM":
        finite_places(found, f"{found.name} of the observations")
    check_same_unit(found, like, str(like.name), owner)
    named, other = (axis.dtype.kind in "UOT" for axis in (like, found))
    if named != other:
        if not named and like.name != "time":
            return  # the owner has no names, only places
        raise ValueError(
            f"{like.name} of the observations is {found.values[:3].tolist()}, but "
            f"{like.values[:3].tolist()} in {owner}: write the same, or leave the coordinate out "
            f"by .drop_vars({str(like.name)!r}) where the order is right"
        )
    differ = found.values != like.values if named else ~same_places(found.values, like.values)
    if differ.any():
        at = int(differ.argmax())
        remedy = (
            f"reorder them by .sel({like.name}={like.values.tolist()}), or rename"
            if named
            else "simulate at those of the data, or interpolate"
        )
        raise ValueError(
            f"{like.name}[{at}] of the observations is {found.values[at]}, but {like.values[at]} "
            f"in {owner}; {like.name}s must be the same: {remedy}"
        )
