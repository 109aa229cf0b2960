"""What a file declares of its values by CF: those outside a valid range, and marks, are missing."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from sciml.wind.cf.changes import changed

FLAGS = ("flag_values", "flag_masks", "flag_meanings")
PACKING = ("scale_factor", "add_offset")
RANGE, LEAST, MOST = RANGES = ("valid_range", "valid_min", "valid_max")
MARKS = ("missing_value", "_FillValue")
MISSING = "made missing"  # in the words of `changes`
NEAR = 0.25  # of a step of packing: what rounding may leave


def with_declared(content: xr.Dataset, names: Iterable[str], origin: str) -> xr.Dataset:
    """Return a dataset whose variables of these names hold NaN where it declares no value.

    By `valid_range`, or `valid_min` and `valid_max`, and by those marks, `missing_value` and
    `_FillValue`, that decoding leaves: as text, in another precision, or in the unit of unpacked
    values. Nothing lazy is computed.

    Raises:
        ValueError: what is declared makes no sense, or leaves open whether it is of packed values.
    """
    said = []
    for name in names:
        field, owner = content[name], f"{name} of {origin}"
        near = NEAR * abs(packing(field)[0]) if is_packed(field) else 0.0
        keep: Any = True
        for attribute, low, high in ranges(field, owner):
            seen, more, packed = as_packed(field, attribute)
            keep = keep & (seen.isnull() | ((seen >= low - more) & (seen <= high + more)))
            said.append(f"values of {name} outside {low:g} to {high:g}{packed} {MISSING}")
        for mark in marks(field, owner):
            keep = keep & ~(abs(field - mark) <= near if near else field == mark)
        if keep is not True:
            kept = {k: v for k, v in field.attrs.items() if k not in RANGES}
            content = content.assign({name: field.where(keep).drop_attrs().assign_attrs(kept)})
    return changed(content, *said)


def refuse_flags(field: xr.DataArray, origin: str) -> None:
    """Refuse a wind whose values stand for something else."""
    if flags := [name for name in FLAGS if name in field.attrs]:
        raise ValueError(
            f"{field.name} of {origin} has {flags[0]} {field.attrs[flags[0]]!r:.60}, so its "
            "numbers are categories, no wind: drop it, or name another by variable="
        )


def ranges(field: xr.DataArray, owner: str) -> list[tuple[str, Any, Any]]:
    """Return what a variable must lie between, with the attribute that says so, if any does."""
    given = {n: numbers(field.attrs[n], n, owner) for n in RANGES if n in field.attrs}
    found = []
    for name, ends in given.items():
        if ends.size != (2 if name == RANGE else 1) or {*given} > {RANGE}:
            raise ValueError(
                f"{owner} has {' and '.join(given)}, {name} being {field.attrs[name]!r:.60}; "
                "it must have two numbers in valid_range, or one each in the others: correct it"
            )
        low, high = np.broadcast_to(in_type(ends, name, field, owner), 2)
        if not low <= high:
            raise ValueError(
                f"{name} of {owner} is {low:g} to {high:g}; the first must be the lower: correct it"
            )
        found.append((name, -np.inf if name == MOST else low, np.inf if name == LEAST else high))
    return found


def in_type(ends: np.ndarray, name: str, field: xr.DataArray, owner: str) -> np.ndarray:
    """Return ends of a range in the type of the values that they are compared with.

    Of integers that are packed: integers are packed too, numbers of the type of `scale_factor` or
    `add_offset` are unpacked (NetCDF Users Guide, appendix A), and others may be either.
    """
    if not is_packed(field):
        return ends.astype(field.dtype if field.dtype.kind == "f" else np.float64)
    if ends.dtype.kind in "iu":
        bits = 8 * np.dtype(field.encoding["dtype"]).itemsize
        unsigned = str(field.encoding.get("_Unsigned", "")).lower() == "true"
        return ends.astype(np.int64) % 2**bits if unsigned else ends.astype(np.int64)
    types = {np.asarray(field.encoding[n]).dtype for n in PACKING if n in field.encoding}
    if ends.dtype not in types:
        raise ValueError(
            f"{name} of {owner} is {ends.dtype}, its values are packed as "
            f"{field.encoding['dtype']}, and it may be meant packed or not: give it the type and "
            "the unit of the packed values"
        )
    return ends


def as_packed(field: xr.DataArray, attribute: str) -> tuple[xr.DataArray, float, str]:
    """Return values as a range is of them, what rounding may leave, and a word for it."""
    if not is_packed(field):
        return field, 0.0, ""
    scale, offset = packing(field)
    if np.asarray(field.attrs[attribute]).dtype.kind in "iu":
        return (field - offset) / scale, NEAR, " as packed"
    return field, NEAR * abs(scale), ""


def is_packed(field: xr.DataArray) -> bool:
    """Tell a variable that decoding made of integers."""
    there = any(name in field.encoding for name in (*PACKING, "_Unsigned"))
    return there and np.dtype(field.encoding.get("dtype", "f8")).kind in "iu"


def packing(field: xr.DataArray) -> tuple[float, float]:
    """Return by what packed values are multiplied, and what is added to them."""
    scale, offset = (np.ravel(field.encoding.get(n, i == 0)) for i, n in enumerate(PACKING))
    return float(scale[0]), float(offset[0])


def marks(field: xr.DataArray, owner: str) -> list[Any]:
    """Return the marks of missing values that decoding has not seen, unpacked."""
    found = []
    for name in MARKS:
        given = field.encoding.get(name, field.attrs.get(name))
        if given is None:
            continue
        values = numbers(given, name, owner)
        if values.dtype == field.encoding.get("dtype"):
            continue  # decoded
        values = values[np.isfinite(values)]
        if is_packed(field):
            found += [] if values.dtype.kind in "iu" else unpacked(values, name, field, owner)
            continue
        with np.errstate(over="ignore"):  # what the values cannot hold is none of them
            found += [*values.astype(field.dtype if field.dtype.kind == "f" else np.float64)]
    return [mark for mark in found if np.isfinite(mark)]


def unpacked(values: np.ndarray, name: str, field: xr.DataArray, owner: str) -> list[float]:
    """Return marks of packed integers that are no integers themselves, unpacked.

    By CF they are of the packed values, section 2.5.1, where these can be that at all.
    """
    scale, offset = packing(field)
    kind = np.dtype(field.encoding["dtype"])
    if str(field.encoding.get("_Unsigned", "")).lower() == "true":
        kind = np.dtype(f"u{kind.itemsize}")
    held, found = np.iinfo(kind), []
    for value in map(float, values):
        as_it_is, as_stored = (
            held.min <= x <= held.max and abs(x - round(x)) <= near
            for x, near in ((value, 0.0), ((value - offset) / scale, NEAR))
        )
        if as_it_is and as_stored:
            raise ValueError(
                f"{name} of {owner} is {value:g}, its values are packed as {kind}, and it may be "
                "meant packed or not: give it the type of the packed values"
            )
        found += [value * scale + offset] if as_it_is else [value] if as_stored else []
    return found


def numbers(value: Any, name: str, owner: str) -> np.ndarray:
    """Return an attribute as numbers, which some tools write as text."""
    try:
        if isinstance(value, str):
            found = np.asarray(value.replace(",", " ").split(), np.float64)
        else:
            found = np.atleast_1d(np.asarray(value))
        if (
            not found.size
            or found.dtype.kind not in "iuf"
            or (name in RANGES and np.isnan(found).any())
        ):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{name} of {owner} is {value!r:.60}; it must be a number: correct the file's attribute"
        ) from None
    return found
