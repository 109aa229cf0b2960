"""Functions of labelled winds say so, where something else is passed."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import xarray as xr

from sciml._numbers import as_declared

P = ParamSpec("P")
R = TypeVar("R")
OF_STATIONS = (
    "stations and towers are no field; take a prediction at their places, as .interp(y=…, x=…), or "
    "score it there, as sciml wind score fine.nc stations.csv --coarse coarse.nc"
)
REMEDY = {  # by the name of a class, where an annotation is one
    "Dataset": "pass what sciml.wind.open(path) returned, or an xarray.Dataset in that schema",
    "DataArray": "pass sciml.wind.channels(winds, names)",
    "Matched": "pass sciml.wind.matched(coarse, fine, factor)",
}


def of_labelled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses what is none of these classes, where it asks for one.

    What is labelled comes to it as `declared`.
    """
    signature = inspect.signature(function)
    kinds = {p.name: p.annotation for p in signature.parameters.values()}
    wanted = {name: k for name, k in kinds.items() if getattr(k, "__name__", "") in REMEDY}

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        bound = signature.bind(*args, **options)
        given = bound.arguments
        for name, kind in wanted.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            for value in given.get(name, ()) if several else [given[name]]:
                if not isinstance(value, kind):
                    raise TypeError(
                        f"{name} is a {type(value).__name__}; {function.__name__} takes a "
                        f"{kind.__name__}: {REMEDY[kind.__name__]}"
                    )
        for name, value in given.items():
            given[name] = tuple(map(declared, value)) if type(value) is tuple else declared(value)
        return function(*bound.args, **bound.kwargs)

    return checked


def declared(value: Any) -> Any:
    """Return labelled winds with NaN for what they declare missing; all else as it is.

    xarray leaves `valid_range` to its user, and the marks and the packing of a file that was opened
    without `mask_and_scale`: -999 would be a wind.

    Raises:
        ValueError: values are packed, or what is declared makes no sense.
    """
    if isinstance(value, xr.DataArray):
        return as_declared(value, str(value.name or "the fields"))
    if not isinstance(value, xr.Dataset):
        return value
    numbers = {str(n): v for n, v in value.data_vars.items() if v.dtype.kind in "iuf"}
    known = {name: as_declared(field, name) for name, field in numbers.items()}
    return value.assign({n: field for n, field in known.items() if field is not numbers[n]})


def of_fields(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function `of_labelled` winds that refuses those of stations, but for statics."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for name, value in signature.bind(*args, **options).arguments.items():
            if name != "statics" and isinstance(value, xr.Dataset | xr.DataArray):
                refuse_stations(value, name)
        return function(*args, **options)

    return of_labelled(checked)


def refuse_timeless(winds: xr.Dataset | xr.DataArray, name: str) -> None:
    """Refuse one field that has no axis of time, as .isel(time=0) leaves it."""
    if "time" not in winds.dims:
        lies = ", ".join(map(str, winds.dims))
        raise ValueError(f"{name} is on {lies}, without time: use .expand_dims('time')")


def refuse_stations(winds: xr.Dataset | xr.DataArray, name: str) -> None:
    """Refuse what has no rows and columns, as stations and towers."""
    if winds.dims and not {"y", "x"} <= {*winds.dims}:
        lies = ", ".join(map(str, winds.dims))
        raise ValueError(f"{name} is on {lies}, without y and x: {OF_STATIONS}")
