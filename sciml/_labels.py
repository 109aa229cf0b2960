"""Labelled arrays are aligned by their labels, or refused; bare arrays are taken in their order."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
import xarray as xr

from sciml._numbers import as_real, columns_of, increasing, real, short, together, unmasked
from sciml._precision import same_places

NOISE = "noise_"  # before the name of a level of the noise, where it is a target among parameters

ROLE = "condition"  # the attribute `role` of a coordinate that is a known input of each sample

# What answers are called, which their samples' coordinates stand beside.
ANSWERS = (
    *("posterior", "estimate", "spread", "flagged", "inside", "log_prob", "c2st", "effective"),
    *("too_wide", "p_value", "statistic", "proposals", "efficiency", "log_evidence", "mean"),
    *("correlation", "median", "member", "outside", "other", "trials", "log_shared"),
)


@runtime_checkable
class Labelled(Protocol):
    """An `xarray.Dataset` or `DataArray`, a table of pandas, or an array of NumPy or JAX."""

    def __array__(self, *args: Any, **options: Any) -> Any:
        """Return the values."""
        ...


# What observations come as: labelled, as a table, an array, or lists of numbers.
Observed: TypeAlias = xr.Dataset | Labelled | Sequence[Any]


def variable(data: Any, name: str, dims: tuple[str, ...]) -> Any:
    """Return one variable of a Dataset with its axes in order, or the array as it is."""
    if isinstance(data, xr.Dataset):
        if name not in data:
            raise ValueError(f"dataset has {', '.join(map(str, data))}; it must have {name!r}")
        data = data[name]
    data = as_pandas(data, name)
    if isinstance(data, Mapping):
        data = table(data, dims)
    if isinstance(data, pd.DataFrame) and len(dims) == 2:
        data = labelled(data, dims)
    if isinstance(data, xr.DataArray):
        if missing := [dim for dim in dims if dim not in data.dims]:
            raise ValueError(
                f"{name} has the axes {', '.join(map(str, data.dims))}; it lacks {missing}: "
                f"rename or expand_dims, until they are {dims}"
            )
        return as_real(data, name).transpose(*dims, ...)
    found = as_real(data, name)
    return found if isinstance(found, np.ndarray) else np.asarray(found)


def table(columns: Mapping[Any, Any], dims: tuple[str, ...]) -> Any:
    """Return named columns as one array, each in the order of the first whose rows have labels."""
    each = {name: as_real(labelled(column, dims), f"{name!r}") for name, column in columns.items()}
    first = next((c for c in each.values() if "sample" in getattr(c, "indexes", {})), None)
    alike = {n: np.atleast_1d(same_rows(c, first, f"{n!r}")) for n, c in each.items()}
    shapes = {name: column.shape for name, column in alike.items()}
    if len({*shapes.values()}) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(
            f"the columns have the shapes {shapes}; each must be a row of as many numbers, one a "
            "sample"
        )
    rows = {} if first is None else {"sample": first["sample"]}
    values = pd.DataFrame(alike)
    return xr.DataArray(values.to_numpy(), {**rows, dims[-1]: list(values)}, ("sample", dims[-1]))


def as_pandas(values: Any, what: str) -> Any:
    """Return a table of Polars, Arrow, Dask, or a list of named rows, as one of pandas."""
    values = together(values, what)
    if isinstance(values, pd.DataFrame) or not (names := columns_of(values)):
        return values
    if compute := getattr(values, "compute", None):  # Dask's, whose index is kept
        return compute()
    try:
        columns = {name: values[name] for name in names}
    except TypeError as error:
        raise TypeError(
            f"{what} is a {type(values).__name__}, whose columns cannot be read ({error}): pass a "
            "pandas.DataFrame"
        ) from None
    return pd.DataFrame({name: np.asarray(as_real(x, f"{name!r}")) for name, x in columns.items()})


def labelled(values: Any, dims: tuple[str, ...]) -> Any:
    """Return a table or column of pandas as an array with its labels; all else as it is.

    The index labels the samples. Columns that pandas has numbered itself are no times.
    """
    values = as_pandas(values, " and ".join(dims))
    if not isinstance(values, pd.DataFrame | pd.Series):
        return values
    names = dims[: values.ndim]
    coords: dict[str, Any] = {}
    if names[0] == "sample":
        coords["sample"] = "sample", flat_index(values.index)
    if len(names) == 2 and not (names[1] == "time" and is_counted(values.columns)):
        coords[names[1]] = list(flat_index(values.columns))
    return xr.DataArray(values.to_numpy(), coords, names)


def flat_index(index: pd.Index) -> pd.Index:
    """Return labels of several levels as text, others as they are."""
    return index.map(str) if isinstance(index, pd.MultiIndex) else index


def is_counted(index: Any) -> bool:
    """Tell the index that pandas makes where none is given, of 0, 1, 2 and so on."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def observations_in(data: Any, dims: tuple[str, ...] = ()) -> xr.DataArray:
    """Return observations (sample, …) as numbers with labels, and the conditions marked there.

    ONE, on no axis of samples, becomes a sample of its own. A table or a bare array has the axes
    `dims`, of one all but the first; where these are not known it is refused.
    """
    found: Any = data
    if isinstance(data, xr.Dataset):
        found = data.set_coords([n for n in marked(data) if n in data.data_vars])
        found = variable(found, "observation", ())
    elif dims and not isinstance(data, xr.DataArray):
        found = from_bare(data, (dims, dims[1:]), "the array of observations")
    if not isinstance(found, xr.DataArray):
        raise TypeError(
            f"the data are a {type(data).__name__}; pass a Dataset as simulate() makes it, or, of "
            'one series, xarray.DataArray(numbers, dims="time")'
        )
    check_free(found)
    found = as_real(found, str(found.name or "the observations"))
    if "sample" not in found.dims:
        known = {name: found[name].expand_dims("sample") for name in marked(found)}
        found = found.expand_dims("sample").assign_coords(known)
    if not found.sizes["sample"]:
        raise ValueError(
            f"the data have the sizes {dict(found.sizes)}; they must hold `observation (sample, …)`"
            " of at least one sample"
        )
    return found


def check_free(data: xr.Dataset | xr.DataArray) -> None:
    """Refuse a coordinate of the samples, as a condition, that is called as an answer is."""
    known = {*marked(data), *(str(n) for n, c in data.coords.items() if "sample" in c.dims)}
    if taken := sorted(known.intersection(ANSWERS)):
        raise ValueError(
            f"the samples have {taken[0]}, which is what an answer is called: rename it, as "
            f".rename({taken[0]}='{taken[0]}_known')"
        )


def from_bare(values: Any, allowed: Sequence[tuple[str, ...]], what: str) -> xr.DataArray:
    """Return a bare array or a table with its axes named, and with what a table says of them."""
    if isinstance(values := as_pandas(values, what), xr.DataArray):
        return values
    axes = values.axes if isinstance(values, pd.DataFrame | pd.Series) else []
    array = real(values.to_numpy() if axes else values, what)
    dims = next((each for each in allowed if len(each) == array.ndim), None)
    if dims is None:
        wanted = " or ".join(f"({', '.join(each)})" for each in allowed)
        raise ValueError(f"{what} has shape {array.shape}; it must be {wanted}")
    seen = xr.DataArray(array, dims=dims)
    for dim, index in zip(dims, map(flat_index, axes), strict=False):
        if dim == "sample":
            seen = seen.assign_coords(sample=("sample", index))
        elif dim != "time":
            seen = seen.assign_coords({dim: [str(name) for name in index]})
        elif (times := times_in(index)) is not None:
            seen = seen.assign_coords(time=times)
    return seen


def times_in(index: pd.Index) -> Any:
    """Return the times that label a table: numbers, also as text, and dates; None of other names.

    Those that pandas counts itself are none, also as a file has them.
    """
    if index.dtype.kind in "mM" or isinstance(index, pd.PeriodIndex):
        return index.to_numpy()
    numbers: Any = pd.to_numeric(index, errors="coerce")
    text = np.array_equal(numbers, np.arange(len(index))) and index.dtype.kind not in "iuf"
    return None if is_counted(index) or text or numbers.hasnans else np.asarray(numbers)


def last(field: Any, *names: str) -> Any:
    """Return a labelled field with the axes of these names as its last ones; a bare one as it is.

    Raises:
        ValueError: it has not all of these axes.
    """
    if not isinstance(field, xr.DataArray):
        if (found := np.ndim(field)) < len(names):
            raise ValueError(f"a field has {found} axes; its last ones must be {', '.join(names)}")
        return unmasked(field)
    if lacking := [name for name in names if name not in field.dims]:
        raise ValueError(
            f"a field has the axes {', '.join(map(str, field.dims))}; {', '.join(lacking)} must be "
            "among them: use .rename, or pass its values"
        )
    return as_real(field, str(field.name or "a field")).transpose(..., *names)


def truths(data: Any) -> Any:
    """Return the parameters (sample, parameter), and of a Dataset the levels of the noise too.

    A level `sd` stands behind the parameters as `noise_sd`, the name that a fit has for it.
    """
    dims = ("sample", "parameter")
    values = variable(data, "parameters", dims)
    if not (isinstance(data, xr.Dataset) and "levels" in data and labels_of(values)):
        return values
    levels = variable(data, "levels", ("sample", "level")).rename(level="parameter")
    named = levels.assign_coords(parameter=[f"{NOISE}{name}" for name in data["level"].values])
    both = np.concatenate([values.values, named.values], axis=1)
    names = [*labels_of(values), *labels_of(named)]
    return xr.DataArray(both, dims=dims, coords={**of_samples(values), "parameter": names})


def marked(source: Any) -> tuple[str, ...]:
    """Return the names that a data set or an observation marks as conditions."""
    variables = getattr(source, "variables", None) or getattr(source, "coords", {})
    return tuple(str(n) for n, v in variables.items() if v.attrs.get("role") == ROLE)


def labels_of(values: Any, dim: str = "parameter") -> tuple[str, ...]:
    """Return the names along an axis; empty where there are none, or only numbers."""
    coords = getattr(values, "coords", {})
    if dim not in coords or coords[dim].dims != (dim,) or coords[dim].dtype.kind not in "UOT":
        return ()
    return each_once(tuple(map(str, coords[dim].values)), f"the {dim}s")


def each_once(names: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return names as they are; refuse one that is there twice."""
    places: dict[Any, int] = {}
    for at, name in enumerate(names):
        if (first := places.setdefault(name, at)) != at:
            raise ValueError(
                f"{what} name {short(name)} twice, at {first} and at {at}; each name must occur "
                "once: rename or drop one"
            )
    return names


def check_axes(observed: xr.DataArray) -> xr.DataArray:
    """Return observations (sample, …) whose times increase, and whose names occur once each."""
    for dim in map(str, observed.dims[1:]):
        if dim in observed.coords and dim == "time":
            increasing(observed[dim], dim)
        elif dim in observed.coords:
            each_once(tuple(observed[dim].values.tolist()), f"the {dim}s")
    return observed


def parameter_names(values: Any, count: int) -> tuple[str, ...]:
    """Return the labels of the axis `parameter`, or theta0, theta1, … where there are none."""
    return labels_of(values) or tuple(f"theta{i}" for i in range(count))


def by_name(values: Any, names: tuple[str, ...], what: str, dim: str = "parameter") -> np.ndarray:
    """Return values with the entries along an axis, the last one, in the order of `names`.

    What has no labels is taken to be in that order; entries of other names are left out.
    """
    own = labels_of(values, dim)
    if own:
        if lacking := [name for name in names if name not in own]:
            raise ValueError(
                f"{what} has the {dim}s {', '.join(own)}; it must have {', '.join(names)}, and "
                f"{', '.join(lacking)} is not there{remedy(lacking)}"
            )
        values = values.sel({dim: list(names)})
    array = np.asarray(values)
    if array.ndim == 0 or array.shape[-1] != len(names):
        raise ValueError(
            f"{what} has shape {array.shape}; its last axis must hold {', '.join(names)}"
        )
    return array


def remedy(lacking: list[str]) -> str:
    """Return what to do where names are not there."""
    if all(name.startswith(NOISE) for name in lacking):
        return (
            ": it is a level of the noise, which a data set simulated with that noise holds beside "
            "its parameters: pass the whole data set"
        )
    return ": rename it, or pass what belongs to these"


def same_rows(values: Any, like: Any, what: str) -> Any:
    """Return values as `same_samples` does; where one alone has labels, these must count up."""
    mine, theirs = rows_of(values), rows_of(like)
    if (mine is None) != (theirs is None) and like is not None and np.size(values) > 1:
        check_order(theirs if mine is None else mine, what)
    return same_samples(values, like, what)


def rows_of(values: Any) -> Any:
    """Return the labels of the samples, None where there are none."""
    return getattr(values, "indexes", {}).get("sample")


def of_samples(values: xr.DataArray) -> dict[Any, xr.DataArray]:
    """Return what is known of each sample: the coordinates along the samples alone."""
    return {name: c for name, c in values.coords.items() if c.dims == ("sample",)}


def check_order(labels: pd.Index, what: str) -> None:
    """Refuse labels in no order: what stands beside them without any may be in another."""
    if not in_order(labels):
        first = ", ".join(map(str, labels[:3]))
        raise ValueError(
            f"of {what} and what they belong to, one has rows labelled {first}, …, the other no "
            "labels: the order of its rows is not known; pass it as pandas.DataFrame(values, "
            "index=table.index), or, where both have one order, the other as "
            "table.reset_index(drop=True), of xarray drop_vars('sample')"
        )


def in_order(labels: pd.Index) -> bool:
    """Tell labels that count up: numbers, dates, or text, of which run 10 comes after run 9."""
    numbers: Any = labels if labels.dtype.kind in "iufM" else pd.to_numeric(labels, errors="coerce")
    if numbers.hasnans:
        parts = [re.split(r"([0-9]+)", str(label)) for label in labels]
        keys = [[int(p) if i % 2 else p for i, p in enumerate(each)] for each in parts]
        return all(one < other for one, other in itertools.pairwise(keys))
    return bool(numbers.is_monotonic_increasing and numbers.is_unique)


def same_samples(values: Any, like: Any, what: str) -> Any:
    """Return values for the samples of `like`, where both say by labels which samples they hold.

    Those that pandas has counted itself say so only where all the others are among them, as of a
    table that was shuffled or filtered; else they are none.
    """
    mine, theirs = rows_of(values), rows_of(like)
    if mine is None or theirs is None or mine.equals(theirs):
        return values
    if not theirs.isin(mine).all() and theirs.map(str).isin(mine.map(str)).all():
        mine, theirs = mine.map(str), theirs.map(str)  # as numbers that a file holds as text
        values = values.assign_coords(sample=mine)
    if not (mine.is_unique and theirs.is_unique and theirs.isin(mine).all()):
        if is_counted(mine) or is_counted(theirs):
            check_order(theirs if is_counted(mine) else mine, what)
            return values
        lacking = [label for label in theirs if label not in mine][:3] or "labels occur twice"
        raise ValueError(
            f"the samples of {what} are labelled otherwise ({lacking}): both must belong to the "
            "same samples; where their order is the same, drop_vars('sample'), or reset_index of a "
            "table"
        )
    return values.sel(sample=theirs)


def measured_alike(values: Any, like: Any, what: str) -> Any:
    """Return observations with axes and labels in the order of `like`; bare ones as they are."""
    if not (isinstance(values, xr.DataArray) and isinstance(like, xr.DataArray)):
        return values
    if set(values.dims) != set(like.dims):
        raise ValueError(
            f"{what} have the axes {', '.join(map(str, values.dims))}, the others "
            f"{', '.join(map(str, like.dims))}; they must be measured alike: use .rename"
        )
    values = values.transpose(*like.dims)
    for dim in map(str, like.dims[1:]):
        names = labels_of(like, dim)
        if names and (own := labels_of(values, dim)):
            if set(own) != set(names):
                raise ValueError(
                    f"the {dim}s of {what} are {', '.join(own)}, of the others "
                    f"{', '.join(names)}; they must be the same: rename or select them"
                )
            values = values.sel({dim: list(names)})
        elif dim in values.coords and dim in like.coords and not names:
            check_places(values[dim], like[dim], what)
    return values


def check_places(found: Any, like: Any, what: str) -> None:
    """Refuse other times, or other numbers along an axis."""
    if found.size != like.size or found.dtype.kind in "UOT":
        return  # shapes are compared by whoever computes with them
    differ = ~same_places(found.values, like.values)
    if differ.any():
        at = int(differ.argmax())
        raise ValueError(
            f"{found.name}[{at}] of {what} is {found.values[at]}, of the others "
            f"{like.values[at]}; they must be measured at the same: interpolate"
        )
