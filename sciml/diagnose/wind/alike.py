"""Labelled fields are aligned by their labels, or refused; bare ones are taken as they lie."""

import logging
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Shaped

from sciml._grid import SPACING, TAKEN_FOR_EVEN, UNEVEN, uneven, uneven_line
from sciml._numbers import real
from sciml._units import as_other, same_unit

log = logging.getLogger(__name__)

Field = Shaped[np.ndarray, "..."] | xr.DataArray


def alike(*fields: Any, drawn: bool = False) -> list[np.ndarray]:
    """Return fields as arrays in double precision, with the axes and places of the last of them.

    Args:
        *fields: where all are labelled, they get y and x as their last axes, and rows, columns and
            times of one go where the last one has those of the same label. Beside a bare one, all
            are taken as they lie.
        drawn: whether all but the last have an axis more, of members, which becomes the first.

    Raises:
        ValueError: axes, labels or units of two fields differ, or one has no values.
        TypeError: values are no real numbers, or a field is a Dataset.
    """
    if all(isinstance(field, xr.DataArray) for field in fields):
        *others, like = (
            field.transpose(..., "y", "x") if {"y", "x"} <= {*field.dims} else field
            for field in fields
        )
        fields = (*(placed(field, like, drawn) for field in others), like)
    found = [real(field, "the fields") for field in fields]
    if not all(field.size for field in found):
        raise ValueError(f"fields have the shapes {[f.shape for f in found]}; they hold no values")
    return found


def warn_of_uneven(*fields: Any) -> None:
    """Warn of labelled fields whose points are not evenly spaced, where that is taken for granted.

    Those that say of themselves that it was told, as opened ones do, are passed over.
    """
    for field in fields:
        if not isinstance(field, xr.DataArray) or field.ndim < 2:
            continue
        if any(line.attrs.get(SPACING) == UNEVEN for line in field.coords.values()):
            continue
        axes = ("y", "x") if {"y", "x"} <= {*field.dims} else field.dims[-2:]
        for name, line in field.coords.items():
            if line.ndim != 1 or line.dims[0] not in axes or line.dtype.kind not in "iuf":
                continue
            steps = np.diff(line.values.astype(np.float64))
            steps = (steps + 180) % 360 - 180 if str(name).startswith("lon") else steps
            if found := uneven_line(steps):
                told(field, str(name), *found)
        for pair in (("latitude", "longitude"), ("lat", "lon")):
            planes = [field[n].transpose(*axes).values for n in pair if is_plane(field, n, axes)]
            for axis, (at, step, usual) in (uneven(*planes) if len(planes) == 2 else {}).items():
                told(field, f"{axis}, by {' and '.join(pair)},", at, step, usual)


def told(field: xr.DataArray, what: str, at: int, step: float, usual: float) -> None:
    """Say where the points of a field are farther apart than elsewhere, or nearer."""
    said = "%s: %s is not evenly spaced: %.4g after index %d, %.4g %s"
    log.warning(said, field.name or "the field", what, step, at, usual, TAKEN_FOR_EVEN)


def is_plane(field: xr.DataArray, name: str, axes: tuple[Hashable, ...]) -> bool:
    """Tell a coordinate that lies on both axes."""
    return name in field.coords and {*field[name].dims} == {*axes}


def check_gapless(fields: Iterable[np.ndarray], what: str) -> None:
    """Refuse missing values, where a number would come out in spite of them."""
    if lost := sum(int((~np.isfinite(field)).sum()) for field in fields):
        raise ValueError(
            f"a value is missing, or {lost}; {what} needs all: select a part without gaps"
        )


def first(field: Any, *names: str) -> Any:
    """Return a labelled field with the axes of these names, if it has them, as its first ones."""
    if not isinstance(field, xr.DataArray):
        return field
    return field.transpose(*names, ..., missing_dims="ignore")


def placed(field: xr.DataArray, like: xr.DataArray, drawn: bool) -> xr.DataArray:
    """Return a field with axes and places of another one."""
    more = [dim for dim in field.dims if dim not in like.dims]
    units = [each.attrs.get("units") for each in (field, like)]
    if all(units) and not same_unit(*units):
        raise ValueError(
            f"a field is in {units[0]!r} and the other in {units[1]!r}: "
            f"{as_other(str(units[0]), str(units[1]))}"
        )
    if len(more) != int(drawn) or len(more) + like.ndim != field.ndim:
        raise ValueError(
            f"a field has the axes {field.dims}, the other {like.dims}; they must be the same"
            f"{', but for the axis of members' if drawn else ''}: use .rename or .isel"
        )
    field = field.transpose(*more, *like.dims)
    for dim in like.dims:
        if dim in field.coords and dim in like.coords:
            field = field.isel({dim: order(field[dim].values, like[dim].values, str(dim))})
    for name in {*field.coords} & {*like.coords}:
        where, wanted = field[name], like[name]
        if where.ndim == 2 and where.dtype.kind == "f" and where.dims == wanted.dims:
            check_near(where.values, wanted.values, str(name))
    return field


def order(found: np.ndarray, wanted: np.ndarray, dim: str) -> np.ndarray:
    """Return which entry along an axis belongs where another field has it."""
    if len(found) != len(wanted):
        raise ValueError(
            f"{dim} has {len(found)} places in one field and {len(wanted)} in the other; both must "
            "have the same: select those"
        )
    at = np.empty(len(found), int)
    at[np.argsort(wanted, kind="stable")] = np.argsort(found, kind="stable")
    if found.dtype.kind in "iuf":
        check_near(found[at], wanted, dim)
    elif (found[at] != wanted).any():
        raise ValueError(
            f"{dim} is {found[at][found[at] != wanted][0]} in one field and not in the other; both "
            "must have the same: select those"
        )
    return at


def check_near(found: np.ndarray, wanted: np.ndarray, name: str) -> None:
    """Refuse places that are a hundredth of the spacing apart, or more: files round them."""
    found, wanted = (each.astype(np.float64) for each in (found, wanted))
    steps = np.abs(np.diff(np.unique(wanted)) if wanted.ndim == 1 else np.diff(wanted, axis=0))
    apart = np.abs(found - wanted)
    if (apart > 0.01 * (np.median(steps) if steps.size else 1.0)).any():
        worst = np.unravel_index(np.nanargmax(apart), apart.shape)
        raise ValueError(
            f"{name} is {found[worst]} in one field where the other has {wanted[worst]}; both must "
            "lie on one grid: select the same part, or interpolate"
        )
