"""Simulations of others: arrays as a data set."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from scipy.stats import ks_2samp

from sciml._arguments import check_row
from sciml._labels import (
    as_pandas,
    check_axes,
    from_bare,
    is_counted,
    labels_of,
    parameter_names,
    same_rows,
    variable,
)
from sciml._labels import (
    table as columns,
)
from sciml._numbers import as_real, increasing
from sciml._precision import same_places, told_apart
from sciml.ode import conditions as known
from sciml.ode import prior as priors
from sciml.ode.observe.sentinels import warn_of_sentinels
from sciml.ode.rule import holds
from sciml.provenance import provenance

FEW = 0.1  # assumed: share of different values below which a parameter looks like a choice
UNLIKE = 1e-6  # assumed: p-value below which parameters were not drawn from their prior
LOOKED = 4096  # assumed: draws of the prior that say so
log = logging.getLogger(__name__)


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
            outside its bounds, a condition is not known everywhere, all samples failed, or one of
            two that belong together has labels that do not count up, and the other none.

    >>> import numpy as np, sciml
    >>> theta = np.random.default_rng(0).uniform(size=(100, 2))
    >>> data = sciml.dataset(theta, theta @ np.ones((2, 5)), names=("a", "b"), bounds=[(0, 1)] * 2)
    >>> data.observation.dims, data.attrs["support"]
    (('sample', 'feature'), '{"a": [0.0, 1.0], "b": [0.0, 1.0]}')
    """
    about: Any = {"names": names, "bounds": bounds, "prior": prior, "time": time, "labels": labels}
    data = arranged(theta, x, conditions, **about)
    numbers, chosen = data.parameters.values, tuple(data.parameter.values)
    warn_of_few(numbers, chosen)
    warn_of_others(numbers, chosen, prior or {})
    return data


def arranged(
    theta: Any,
    x: Any,
    conditions: Any,
    *,
    names: Any,
    bounds: Any = None,
    prior: priors.Prior | None,
    time: Any,
    labels: Any,
) -> xr.Dataset:
    """Return what `dataset` does, without asking where the parameters are from."""
    values = variable(theta, "parameters", ("sample", "parameter"))
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 2:
        raise ValueError(f"theta has shape {numbers.shape}; it must be (sample, parameter)")
    if not len(numbers):
        raise ValueError("theta has no rows; there must be one for each sample")
    chosen = names_of_columns(values, names)
    given = observations(x, time, labels)
    seen = same_rows(given, values, "the observations")
    if more := len(given) - len(seen):
        log.warning("%d of %d observations have no parameters: left out", more, len(given))
    alike, seen = (seen if "sample" in seen.indexes else values), uncounted(seen)
    if len(seen) != len(numbers):
        raise ValueError(f"there are {len(numbers)} parameters and {len(seen)} observations")
    support = checked_support(numbers, chosen, bounds, prior)
    told_apart(numbers, "theta")
    rounded, valid = without_failures(seen)
    rules = checked_rules(numbers, chosen, prior)
    data = xr.Dataset(
        {
            "observation": seen.copy(data=rounded),
            "parameters": (("sample", "parameter"), numbers),
            "valid": ("sample", valid),
        },
        coords={"parameter": list(chosen)},
        attrs={
            "system": "own",
            **({"support": json.dumps(support)} if bounds is not None or prior else {}),
            **({"inside": json.dumps(rules)} if rules else {}),
            **({"prior": json.dumps(priors.described(prior))} if prior else {}),
            "failures": int((~valid).sum()),
            **provenance(),
        },
    )
    return (
        data if conditions is None else data.assign_coords(own_conditions(conditions, data, alike))
    )


def warn_of_few(theta: np.ndarray, names: tuple[str, ...]) -> None:
    """Warn of a parameter that takes so few values that it looks like a choice among them."""
    for name, row in zip(names, theta.T, strict=True):
        if (few := len({*row})) < FEW * len(row):
            log.warning(
                "%s takes %d values in %d samples, and is taken for a real number between them: "
                "where it has no others, round the draws, or fit one net for each value",
                *(name, few, len(row)),
            )


def warn_of_others(theta: np.ndarray, names: tuple[str, ...], prior: priors.Prior) -> None:
    """Warn of parameters that were not drawn from their prior, by Kolmogorov and Smirnov."""
    for name, drawn in priors.draws(prior, LOOKED, jax.random.key(0)).items():
        column, drawn = theta[:, names.index(name)], np.asarray(drawn)
        compared: Any = ks_2samp(column, drawn)
        if compared.pvalue < UNLIKE:
            log.warning(
                "%s has the median %.3g, and %.3g by its prior, from which it was not drawn: a fit "
                "answers under the distribution that it has; draw it anew, or pass bounds= alone",
                *(name, np.median(column), np.median(drawn)),
            )


def uncounted(seen: Any) -> Any:
    """Return observations without labels that say no more than their order."""
    return seen.drop_vars("sample") if is_counted(seen.indexes.get("sample")) else seen


def without_failures(seen: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Return observations as nets take them, NaN where a run failed, and which did not."""
    flat: Any = seen.values.reshape(len(seen), -1)
    valid = np.isfinite(flat).any(axis=1) & ~np.isinf(flat).any(axis=1)
    if not valid.any():
        raise ValueError(
            f"all {len(valid)} observations are missing or infinite; one must be there"
        )
    if failures := int((~valid).sum()):
        log.warning("%d of %d samples failed", failures, len(valid))
    there = np.where(valid[:, None], flat, np.nan).reshape(seen.shape)
    each = seen.dims[-1] != "time"
    warn_of_sentinels(there, "the values of x", each=each)
    return told_apart(there, "x", each=each), valid


def own_conditions(source: Any, data: xr.Dataset, alike: Any) -> dict[str, Any]:
    """Return conditions of your own samples as coordinates, in the order of others, checked."""
    names, seen = known.names_in(source), data.observation
    if not names and isinstance(source, xr.Dataset | xr.DataArray):
        raise ValueError(
            f"the conditions are a {type(source).__name__} that names none: pass them by "
            "name, as {'dose': values}, or a table"
        )
    taken = (*known.RESERVED, *seen.dims, *data["parameter"].values)
    if wrong := [name for name in names if name in taken]:
        raise ValueError(
            f"a condition is named {wrong[0]!r}, which means something else: rename it"
        )
    found, times = known.columns_from("the data", source, names, alike), seen.sizes.get("time", 0)
    coordinates: dict[str, Any] = {}
    for name, values in found.items():
        is_series = np.ndim(values) == 2
        if is_series and "time" in seen.coords:
            known.check_times(values, seen["time"].values, name)
        shape = (len(seen), times) if is_series else (len(seen),)
        column = known.flat_column(values, name, shape)
        told_apart(column, f"the condition {name}", each=False)
        dims = ("sample", "time")[: len(shape)]
        attrs = {"role": known.ROLE} | unit_of(values)
        coordinates[name] = dims, column.reshape(shape), attrs
    return coordinates


def unit_of(values: Any) -> dict[str, Any]:
    """Return the attribute by which a labelled array says its unit, if it does."""
    said = getattr(values, "attrs", {})
    return {"units": said["units"]} if said.get("units") else {}


def names_of_columns(values: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of parameters: those given, or those of the table, which must agree."""
    width, own = values.shape[1], labels_of(values)
    if isinstance(names, str | set | frozenset):  # of which one has no order
        check_row(names=names)
    chosen = tuple(names or own or parameter_names(values, width))
    if len(chosen) != width or len({*chosen}) < len(chosen) or (own and own != chosen):
        raise ValueError(
            f"names are {', '.join(chosen)} and theta has {', '.join(own) or width}; "
            "there must be one for each column, each once"
        )
    return chosen


def observations(x: Any, time: Any, labels: Sequence[str] | None) -> xr.DataArray:
    """Return observations with their axes named, (sample, time or feature[, channel])."""
    check_row(time=time, labels=labels)
    second = "feature" if time is None else "time"
    if isinstance(x, xr.Dataset):
        x = variable(x, "observation", ("sample",))
    elif isinstance(x, Mapping):
        x = columns(x, ("sample", second))
    x = as_pandas(x, "x")
    bare = ("sample", second), ("sample", "time", "channel")
    seen = in_axes(x) if isinstance(x, xr.DataArray) else from_bare(x, bare, "x")
    if labels is not None and not isinstance(x, xr.DataArray):
        seen = seen.drop_vars("feature", errors="ignore")
    if time is not None and "time" not in seen.dims:
        raise ValueError(
            f"x has the axes {', '.join(map(str, seen.dims))}, and times are given; the second "
            "axis must be time: use .rename(feature='time'), or leave time= out"
        )
    if time is not None:
        if not isinstance(x, xr.DataArray) and seen["time"].dtype.kind in "mM":
            dates = seen.indexes["time"]
            increasing((dates - dates[0]) / np.timedelta64(1, "s"), "time of x, in seconds,")
            seen = seen.drop_vars("time")
        places = xr.Variable("time", increasing(time, "time"), unit_of(time))
        seen = with_axis(seen, "time", places)
    if labels is not None:
        seen = with_axis(seen, str(seen.dims[-1]), list(labels))
    return check_axes(seen)


def in_axes(x: xr.DataArray) -> xr.DataArray:
    """Return labelled observations with their axes in order."""
    series = ("sample", "time", "channel")[: x.ndim]
    wanted = series if "time" in x.dims else ("sample", "feature")
    if set(x.dims) != set(wanted):
        raise ValueError(
            f"x has the axes {', '.join(map(str, x.dims))}; they must be (sample, feature), "
            "(sample, time) or (sample, time, channel): use .rename"
        )
    return as_real(x, "x").transpose(*wanted)


def with_axis(seen: xr.DataArray, name: str, places: Any) -> xr.DataArray:
    """Return observations with times or names along an axis; refuse others than they have."""
    if len(places) != seen.sizes[name]:
        raise ValueError(
            f"x has shape {seen.shape}, its axes are {', '.join(map(str, seen.dims))}, and there "
            f"are {len(places)} values for {name}; there must be one for each entry"
        )
    own = seen[name].values if name in seen.coords else np.asarray(places)
    differ = own != np.asarray(places) if name != "time" else ~same_places(places, own)
    if differ.any():
        at = int(differ.argmax())
        raise ValueError(
            f"{name}[{at}] of x is {own[at]}, and {np.asarray(places)[at]} is given for it: leave "
            f"one of the two out, as by .drop_vars({name!r})"
        )
    return seen.assign_coords({name: places})


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
