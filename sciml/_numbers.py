"""Checks of numbers that a user gives."""

import logging
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from wse._numbers import short

log = logging.getLogger(__name__)

REAL = "biufV"  # NumPy's kinds of truth values, whole and real numbers, and JAX's short formats
ONCE = "values that are read once: pass a list of them, list(…)"
REMEDY = {
    "c": "complex numbers: pass their .real, or .real and .imag as two",
    "M": "dates: pass numbers, as (t - t[0]) / np.timedelta64(1, 'h')",
    "m": "spans of time: pass numbers, as t / np.timedelta64(1, 'h')",
}
TEXT = (
    "text or objects: pass .astype(float), if they stand for numbers; of kinds pass a column of 0 "
    "and 1 for each, as pandas.get_dummies gives"
)


def real(values: Any, what: str, dtype: Any = np.float64) -> np.ndarray:
    """Return real numbers as an array of NumPy; see `as_real`."""
    return np.asarray(as_real(values, what), dtype)


def as_numbers(values: Any, what: str) -> np.ndarray:
    """Return real numbers as an array of NumPy; a NaN alone where they are none."""
    check_plain(values, what)
    try:
        return real(values, what)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def as_real(values: Any, what: str) -> Any:
    """Return an array as it is, with labels if it has them; one of objects as numbers, None as NaN.

    What an array of NumPy masks is missing, and becomes NaN; so is what an array of xarray says
    of its own values, by `valid_range` and its like.

    Raises:
        TypeError: complex values, dates or text, of which NumPy makes numbers in silence, as it
            does of a table's columns and of a quantity, without their names and its unit.
        ValueError: values that are packed, or a range that makes no sense.
    """
    check_plain(values, what)
    values = bare_rows(unmasked(without_gradient(values, what)), what)
    if isinstance(values, xr.Dataset):
        known = ", ".join(map(str, values.data_vars))
        raise TypeError(f"{what} must be numbers, and there is a Dataset of {known}: pass one")
    if names := columns_of(values):
        raise TypeError(
            f"{what} is a {type(values).__name__} with the columns {short(names)}, whose names "
            "would be lost here: pass an xarray.DataArray"
        )
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if getattr(getattr(values, "dtype", None), "names", None):
        raise TypeError(
            f"{what} has the fields {', '.join(values.dtype.names)}; it must be real numbers: pass "
            "pandas.DataFrame(it), whose columns have names"
        )
    if kind and kind in REAL:
        if values.dtype == np.float16:  # whose largest number is 65,504
            values = values.astype(np.float32)
        if isinstance(values, xr.DataArray):
            return as_declared(values, what)
        if getattr(values, "__array__", None) is None:
            raise TypeError(
                f"{what} is a {type(values).__name__}, which NumPy takes for one object: make an "
                "array of it, as .toarray() does of a sparse one"
            )
        return values  # without reading what is lazy
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{what} has rows of different lengths; each must hold as many numbers: fill up with "
            "NaN what is missing"
        ) from None
    odd = [v for v in array.ravel() if not isinstance(v, Real | Decimal | np.bool_ | None)]
    if odd or array.dtype.kind not in f"{REAL}O":
        kind = np.asarray(odd[0]).dtype.kind if odd else array.dtype.kind
        found = f"there is {odd[0]!r:.60}" if odd else f"they are {array.dtype}"
        remedy = ONCE if odd and isinstance(odd[0], Iterator) else REMEDY.get(kind, TEXT)
        raise TypeError(f"{what} must be real numbers, and {found}, of {remedy}")
    return (values if kind else array).astype(float) if array.dtype.kind == "O" else values


def bare_rows(values: Any, what: str) -> Any:
    """Return a list of rows with NaN for what they mask; refuse rows with names or units."""
    if not isinstance(values, list | tuple):
        return values
    kinds = {type(each) for each in (values, *values)} - {list, tuple, float, int}
    for row in (values, *values) if kinds else ():
        check_plain(row, what)
        if has_names(row):
            raise TypeError(
                f"{what} holds a {type(row).__name__}, whose names would be lost here: pass all of "
                "them as one, by pandas.DataFrame, or of xarray by xarray.concat(…, 'sample')"
            )
    if any(isinstance(row, list | tuple | np.ma.MaskedArray) for row in values):
        return [bare_rows(unmasked(row), what) for row in values]
    return values


def unmasked(values: Any) -> Any:
    """Return an array of which some entries are masked with NaN there; all else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return np.where(values.mask, np.nan, values.data) if values.mask.any() else values.data


def has_names(row: Any) -> bool:
    """Tell a row whose entries have names, and not only numbers that count them."""
    if isinstance(row, xr.DataArray):
        return any(dim in row.coords for dim in row.dims)
    if isinstance(row, pd.Series | pd.DataFrame):
        return not all(isinstance(axis, pd.RangeIndex) for axis in row.axes)
    return isinstance(row, Mapping) or bool(getattr(row, "_fields", ()))


def together(rows: Any, what: str) -> Any:
    """Return a list of rows that have names as one table or array; all else as it is."""
    named = isinstance(rows, list | tuple) and any(map(has_names, rows))
    arrays = named and all(isinstance(row, xr.DataArray) for row in rows)
    if not (
        arrays or (named and all(isinstance(row, pd.Series | Mapping | tuple) for row in rows))
    ):
        return rows
    how: Any = {"join": "outer", "coords": "different", "compat": "equals"}
    found = xr.concat(rows, "sample", **how) if arrays else pd.DataFrame(list(rows))
    if sum(row.size if arrays else len(row) for row in rows) != found.size:
        raise ValueError(f"rows of {what} have different names; each must have all of them")
    return found


def without_gradient(values: Any, what: str) -> Any:
    """Return a tensor of PyTorch as an array of NumPy; all else as it is."""
    if getattr(values, "requires_grad", None) is None:
        return values
    try:
        bare = values.detach().cpu()
        is_short = bare.is_floating_point() and bare.element_size() < 4  # NumPy lacks bfloat16
        return np.asarray(bare.float() if is_short else bare)
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"{what} is a {type(values).__name__} that NumPy does not take "
            f"({str(error).split('. ')[0]}): pass its plain numbers, as .to_dense() gives them"
        ) from None


def check_plain(values: Any, what: str) -> None:
    """Refuse a quantity, whose unit NumPy drops in silence."""
    bare = values.data if isinstance(values, xr.DataArray) else values
    if unit := unit_of(bare):
        raise TypeError(
            f"{what} is a {type(bare).__name__} in {unit}; units are not converted: pass the plain "
            "numbers, .magnitude or .value, in the unit of the others"
        )


def unit_of(values: Any) -> str:
    """Return the unit of a quantity, as those of pint, unyt or Astropy; "" of what has none."""
    tables = pd.DataFrame | pd.Series | pd.Index | xr.Dataset
    if isinstance(values, tables | pd.Timestamp | pd.Timedelta):
        return ""  # where it is a name, or the precision of dates
    return str(getattr(values, "units", getattr(values, "unit", None)) or "")


def columns_of(values: Any) -> list[str]:
    """Return the names of the columns of a table of any library."""
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    arrays = np.ndarray | xr.DataArray | xr.Dataset | Mapping
    return [] if isinstance(values, arrays) or callable(names) else [str(name) for name in names]


def finite_places(values: Any, name: str) -> np.ndarray:
    """Return times, or what else stands along an axis, as numbers, all of which must be there.

    Raises:
        TypeError: what `as_real` refuses, as dates.
        ValueError: one is NaN, infinite, or missing by what the array declares of itself.
    """
    labelled = isinstance(values, xr.DataArray)
    found = real(values.drop_attrs().drop_encoding() if labelled else values, name)
    there = np.asarray(where_known(values, name)[0]) if labelled else True
    if (wrong := ~(np.isfinite(found) & there)).any():
        at = int(wrong.argmax())
        why = ", which is missing by its attributes" if np.isfinite(found[at]) else ""
        raise ValueError(
            f"{name} is {found[at]:g} at index {at}{why}; each must be a finite number: correct it"
        )
    return found


def increasing(values: Any, name: str) -> np.ndarray:
    """Return times as `finite_places` does; refuse one that is not later than the one before it."""
    found = finite_places(values, name)
    if (wrong := np.diff(found) <= 0).any():
        at = int(wrong.argmax()) + 1
        raise ValueError(
            f"{name}[{at}] is {found[at]:g}, after {found[at - 1]:g}; each must be later than the "
            "one before: sort values and times, as .sortby('time') does; values of one time are "
            "channels, or features without times"
        )
    return found


def as_declared(values: xr.DataArray, what: str) -> xr.DataArray:
    """Return a labelled array with NaN for what it declares missing, which is said if it is read.

    What is lazy stays so.
    """
    keep, said = where_known(values, what)
    if keep is True:
        return values
    if keep.chunks is None:
        if not (lost := int((~keep).sum())):
            return values
        why = f", {' and '.join(said)}" if said else ""
        log.warning("%d values of %s are missing by its attributes%s", lost, what, why)
    return masked(values, keep)


# What an array declares of its values by CF.
PACKING = ("scale_factor", "add_offset")
UNLIKE_CF = {"scale", "scalefactor", "scaling_factor", "slope", "offset", "intercept"}
RANGE, LOW, HIGH = RANGES = ("valid_range", "valid_min", "valid_max")
MARKS = ("missing_value", "_FillValue")
NEAR = 0.25  # of a step of packing: what rounding may leave


def where_known(field: xr.DataArray, owner: str) -> tuple[Any, list[str]]:
    """Return where an array holds a value, True if everywhere, and in words what it declares.

    By `valid_range`, or `valid_min` and `valid_max`, and by those marks, `missing_value` and
    `_FillValue`, that decoding leaves: as text, in another precision, or in the unit of unpacked
    values. Nothing lazy is computed.

    Raises:
        ValueError: what is declared makes no sense, or leaves open whether it is of packed values,
            or values are still packed.
    """
    known = {*PACKING, *(UNLIKE_CF if field.dtype.kind in "iu" else ())}
    if packed := [name for name in field.attrs if str(name).lower() in known]:
        raise ValueError(
            f"{owner} has {packed[0]} {field.attrs[packed[0]]!r:.60}, so that its values are packed"
            ": open it without mask_and_scale=False, or pass it through xarray.decode_cf"
        )
    near = NEAR * abs(packing(field)[0]) if is_packed(field) else 0.0
    keep: Any = True
    said = []
    for attribute, low, high in ranges(field, owner):
        seen, more, packed = as_packed(field, attribute)
        keep = keep & (seen.isnull() | ((seen >= low - more) & (seen <= high + more)))
        said.append(f"outside {low:g} to {high:g}{packed}")
    for mark in marks(field, owner):
        keep = keep & ~(abs(field - mark) <= near if near else field == mark)
    return keep, said


def masked(field: xr.DataArray, keep: Any) -> xr.DataArray:
    """Return an array with NaN where it holds no value, and without the range that it had."""
    kept = {k: v for k, v in field.attrs.items() if k not in RANGES}
    return field.where(keep).drop_attrs().assign_attrs(kept)


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
        found.append((name, -np.inf if name == HIGH else low, np.inf if name == LOW else high))
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
        if name in field.encoding and values.dtype == field.encoding.get("dtype"):
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
