"""Known inputs of each sample, as doses, covariates and forcing: never estimated, never noisy.

In data sets each is a coordinate of its own, (sample,) or for a series (sample, time), marked by
the attribute `role`. So an observation that is taken out of its data set takes them along. Inside,
they stand in flat columns behind the parameters: numbers first, then series.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float, Key

from sciml._labels import ANSWERS, ROLE, as_pandas, labelled, labels_of, marked, same_rows
from sciml._numbers import as_numbers, finite_places, short
from sciml._precision import check_fine, same_places, told_apart
from sciml.ode.observe.sentinels import warn_of_sentinels
from sciml.ode.prior import check_distribution, describe
from sciml.ode.sampled import sampled

Conditions = Mapping[Any, Any]  # name → distribution or values; or names → those of all of them
Known = Float[np.ndarray, "sample input"]
RESERVED = (
    *("sample", "time", "channel", "feature", "parameter", "level", "draw", "observation"),
    *("parameters", "levels", "valid", *ANSWERS),
)


def check_conditions(problem: Any, times: int) -> None:
    """Refuse conditions that cannot be drawn, or whose names mean something else.

    `times` is how many a series has; 0 where there are none.
    """
    owner, given = problem.name, problem.conditions
    if not isinstance(given, Mapping):
        raise TypeError(
            f"conditions of {owner!r} are {short(given)}; they must be a dict of names and of what "
            "they are drawn from, as {'dose': numpyro.distributions.Uniform(50.0, 200.0)}"
        )
    names = [n for key in given for n in (key if isinstance(key, tuple) else (key,))]
    taken = (*problem.parameter_names, *RESERVED)
    wrong = [n for n in names if not isinstance(n, str) or n in ("", *taken) or names.count(n) > 1]
    if wrong:
        raise ValueError(
            f"conditions of {owner!r} name {wrong[0]!r}; each must be text, come once, and be no "
            f"parameter nor one of {', '.join(RESERVED)}: rename it"
        )
    for key, each in given.items():
        check_source(key, each, f"the condition {key!r} of {owner!r}", times)


def check_source(key: Any, source: Any, said: str, times: int) -> None:
    """Refuse what gives neither a number nor a series, or values that are not finite."""
    if is_distribution(source):
        check_distribution(source, said)
        shape = (*source.batch_shape, *source.event_shape)
    else:
        values = as_numbers(source, said)
        if not values.ndim or not values.size or not np.isfinite(values).all():
            raise ValueError(
                f"{said} is {short(source)}; it must be a numpyro distribution, or a list of finite"
                " values of which each simulation takes one"
            )
        shape = values.shape[1:]
    wanted = [(len(key),)] if isinstance(key, tuple) else [(), *([(times,)] * (times > 0))]
    if shape not in wanted:
        raise ValueError(
            f"{said} has the shape {shape} for a sample; it must be {' or '.join(map(str, wanted))}"
            ": a number, or a series with a value at each time of the observation"
        )


def is_distribution(source: Any) -> bool:
    """Tell a distribution from values."""
    return getattr(source, "log_prob", None) is not None


def varies(source: Any) -> bool:
    """Tell whether a distribution has a spread, as far as it says; else it is a constant."""
    try:
        return bool(np.any(np.asarray(source.variance)))
    except NotImplementedError:
        return False


def split_names(problem: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the conditions that are numbers, and of those that are series."""
    numbers, series = [], []
    for key, each in problem.conditions.items():
        shape = each.event_shape if is_distribution(each) else np.shape(each)[1:]
        if isinstance(key, tuple):
            numbers += key
        else:
            (series if shape else numbers).append(key)
    return tuple(numbers), tuple(series)


def names_of(problem: Any) -> tuple[str, ...]:
    """Return the names of all conditions, numbers first."""
    numbers, series = split_names(problem)
    return (*numbers, *series)


def drawn(problem: Any, samples: int, key: Key[Array, ""]) -> Float[Array, "sample input"]:
    """Return draws of all conditions, flat and traceable; without conditions no columns."""
    keys = jax.random.split(jax.random.fold_in(key, 1), max(len(problem.conditions), 1))
    found: dict[str, Any] = {}
    for (names, source), k in zip(problem.conditions.items(), keys, strict=False):
        if is_distribution(source):
            values = jnp.asarray(sampled(source, k, samples), jnp.result_type(float))
        else:
            pool = jnp.asarray(source, jnp.result_type(float))
            values = pool[jax.random.randint(k, (samples,), 0, len(pool))]
        columns = jnp.moveaxis(values, -1, 0) if isinstance(names, tuple) else [values]
        names = names if isinstance(names, tuple) else (names,)
        found |= dict(zip(names, columns, strict=True))
    ordered = [found[name].reshape(samples, -1) for name in names_of(problem)]
    return jnp.concatenate([jnp.zeros((samples, 0)), *ordered], axis=1)


def rows(problem: Any, theta: np.ndarray, key: Key[Array, ""]) -> np.ndarray:
    """Return parameters with conditions that are drawn for them behind."""
    if not problem.conditions:
        return theta
    columns = np.asarray(drawn(problem, len(theta), key))
    found = columns_of(problem, columns)
    for names, source in problem.conditions.items():
        if not is_distribution(source):
            told_apart(source, f"the condition {names}", each=False)
            continue
        for name in names if isinstance(names, tuple) else (names,):
            places = np.asarray(found[name], np.float32).reshape(len(theta), -1)
            steps = np.ptp(places, axis=0) / np.spacing(np.abs(places).max(axis=0, initial=0.0))
            finest = places[:, steps.argmax()]  # of a series one resolved time is enough
            if steps.max() or varies(source):
                check_fine(finest, f"the condition {name}")
    return np.concatenate([theta, columns], axis=1)


def columns_of(problem: Any, flat: Any) -> dict[str, Any]:
    """Return name → (…,) or (…, time) of flat columns, without the parameters."""
    numbers, series = split_names(problem)
    found = {name: flat[..., i] for i, name in enumerate(numbers)}
    if series:
        each = jnp.split(flat[..., len(numbers) :], len(series), axis=-1)
        found |= dict(zip(series, each, strict=True))
    return found


def inputs_at(problem: Any, flat: Float[Any, " input"]) -> Callable[[Any], dict[str, Any]]:
    """Return time ↦ conditions of one sample, name → number, series interpolated linearly."""
    found, (_, series) = columns_of(problem, flat), split_names(problem)

    def at(time: Any) -> dict[str, Any]:
        if not series:
            return found
        times = jnp.asarray(problem.observation.times, flat.dtype)
        if len(times) == 1:
            return found | {name: found[name][0] for name in series}
        # As jnp.interp has it, whose loop within a loop some compilers for cards do not take.
        after = jnp.searchsorted(times, time, side="right", method="scan_unrolled")
        i = jnp.clip(after, 1, len(times) - 1)
        share = jnp.clip((time - times[i - 1]) / (times[i] - times[i - 1]), 0.0, 1.0)
        between = lambda x: x[i - 1] + share * (x[i] - x[i - 1])  # noqa: E731
        return found | {name: between(found[name]) for name in series}

    return at


def takes(function: Any, count: int) -> bool:
    """Tell whether a function takes so many arguments by place, as far as it says."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # of a built-in function nothing is known
        pass
    return True


def given(problem: Any, source: Any, samples: int, like: Any = None) -> Known:
    """Return conditions from what names them, flat, for so many samples; of one sample for all.

    A source is a data set or an array that has them as coordinates, `(sample, condition)` with
    names, a table, or a dict: name → number, (sample,), or of a series (sample, time). They are put
    in the order of the samples of `like`, where both say which these are.
    """
    numbers, series = split_names(problem)
    times = {name: np.asarray(problem.observation.times) for name in series}
    return flat_columns(problem.name, source, ((*numbers, *series), times), samples, like)


def flat_columns(
    owner: str,
    source: Any,
    names: tuple[tuple[str, ...], Mapping[str, np.ndarray]],
    samples: int,
    like: Any = None,
) -> Known:
    """Return conditions of these names, of which some are series at times; see `given`."""
    wanted, times = names
    found, parts = columns_from(owner, source, wanted, like), []
    for name in wanted:
        shape = (samples, len(times[name])) if name in times else (samples,)
        if name in times:
            check_times(found[name], times[name], name)
        parts.append(flat_column(found[name], name, shape))
    return np.concatenate([np.zeros((samples, 0)), *parts], axis=1)


def check_times(values: Any, times: np.ndarray, name: str) -> None:
    """Refuse a series that says that it is at other times."""
    given = getattr(values, "coords", {}).get("time")
    if given is None:
        return
    own = finite_places(given, f"time of the condition {name}")
    if not (own.shape == times.shape and same_places(own, times).all()):
        first, second = (f"{each[0]:g} to {each[-1]:g} ({len(each)})" for each in (own, times))
        raise ValueError(
            f"the condition {name} is at the times {first}, the observations at {second}; both "
            "must be the same, in order: use .interp(time=…)"
        )


def beside(like: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the conditions that a data set marks, flat, and the same ones of another data set."""
    names = marked(like)
    times = {n: like["time"].values for n in names if "time" in like[n].dims}
    first, second = (
        flat_columns("the first data set", each, (names, times), each.sizes["sample"])
        for each in (like, other)
    )
    return first, second


def flat_column(values: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values of one condition as (sample, 1 or time), one for all samples repeated."""
    known = as_numbers(values, name)
    if known.shape in (shape[1:], (1, *shape[1:])):  # of one sample
        known = np.broadcast_to(known, shape)
    if known.shape != shape:
        raise ValueError(
            f"the condition {name} has the shape {known.shape}; it must be {shape}, or of one "
            "sample, which then serves all"
        )
    if not np.isfinite(known).all():
        row = int(np.argmin(np.isfinite(known.reshape(len(known), -1)).all(axis=1)))
        raise ValueError(
            f"the condition {name} of sample {row} is {np.asarray(values).reshape(-1)[:3]}; "
            "conditions are known: each must be a finite number, so drop that sample, or fill it "
            "in; of kinds pass a column of 0 and 1 for each"
        )
    warn_of_sentinels(known, f"the condition {name}", each=False)
    return known.reshape(len(known), -1)


def names_in(source: Any) -> tuple[str, ...]:
    """Return the names of the conditions that a source has."""
    source = as_pandas(source, "conditions")
    if isinstance(source, xr.DataArray) and "condition" in source.dims:
        return labels_of(source, "condition")
    if isinstance(source, xr.Dataset | xr.DataArray):
        return marked(source)
    if isinstance(source, Mapping | pd.DataFrame):
        names = tuple(map(str, source))
        if numbers := [name for name in names if is_number(name)]:
            raise ValueError(
                f"the conditions name {', '.join(numbers[:3])}, which are numbers; each must have "
                "a name: of a series with a column for each time pass {'forcing': table}, else "
                "rename the columns"
            )
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"the conditions name {twice[0]} twice; each must come once: drop one")
        return names
    raise TypeError(
        f"the conditions are a {type(source).__name__}, which has no names; pass a dict, a table, "
        "or a data set that has them as coordinates"
    )


def is_number(name: str) -> bool:
    """Tell a number written as text, as tables have for the times of a series."""
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


def columns_from(owner: str, source: Any, names: tuple[str, ...], like: Any) -> dict[str, Any]:
    """Return the values by name; refuse names that are not known, or not there."""
    source = as_pandas(source, "conditions")
    said = names_in(source)
    if isinstance(source, xr.DataArray) and "condition" in source.dims:
        source = source.transpose(..., "condition")
        found: dict[str, Any] = {name: source[..., i] for i, name in enumerate(said)}
    elif isinstance(source, xr.Dataset | xr.DataArray):
        variables = source.variables if isinstance(source, xr.Dataset) else source.coords
        found = {n: source[n] for n in names if n in variables}
    else:
        found = {str(n): v for n, v in source.items()}
    if strange := [n for n in said if n not in names]:
        raise ValueError(
            f"the conditions name {', '.join(strange)}; {owner} has {', '.join(names) or 'none'}: "
            f"rename it, or leave it out, as by drop_vars({strange[0]!r})"
        )
    if lacking := [n for n in names if n not in found]:
        raise ValueError(
            f"the conditions {', '.join(lacking)} of {owner} are not given; they are known of each "
            "sample: pass conditions= to simulate, to others a DataArray with "
            f".assign_coords({lacking[0]}=('sample', [1.0])), of a series with ('sample', 'time')"
        )
    return {name: in_order(values, name, like) for name, values in found.items()}


def in_order(values: Any, name: str, like: Any) -> Any:
    """Return the values of one condition, of labelled ones with axes and samples in order."""
    values = labelled(values, ("sample", "time"))
    if not isinstance(values, xr.DataArray):
        return same_rows(values, like, f"the condition {name}")
    if odd := [d for d in values.dims if d not in ("sample", "time")]:
        raise ValueError(
            f"the condition {name} has the axes {', '.join(map(str, values.dims))}; they must be "
            f"sample, and time of a series, not {odd[0]}"
        )
    values = values.transpose("sample", "time", missing_dims="ignore")
    return same_rows(values, like, f"the condition {name}")


def described(problem: Any) -> dict[str, Any]:
    """Return what conditions are drawn from, as JSON wants it."""
    return {
        ", ".join(key) if isinstance(key, tuple) else key: (
            describe(each) if is_distribution(each) else np.asarray(each, float).tolist()
        )
        for key, each in problem.conditions.items()
    }


def coordinates(problem: Any, flat: np.ndarray) -> dict[str, Any]:
    """Return the conditions of a data set as coordinates, marked."""
    found = columns_of(problem, flat)
    return {
        name: (("sample", "time")[: np.ndim(values)], np.asarray(values), {"role": ROLE})
        for name, values in found.items()
    }
