"""Plain numbers of what has masks, names, units or gradients, which NumPy drops in silence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr


def bare_rows(values: Any, what: str) -> Any:
    """Return a list of rows with NaN for what they mask; refuse rows with names or units.

    A row alone may be a named tuple; it is refused too.
    """
    if not isinstance(values, list | tuple):
        return values
    kinds = {type(each) for each in (values, *values)} - {list, tuple, float, int}
    for row in (values, *values) if kinds else ():
        check_named(row, what)
        check_plain(row, what)
    if any(isinstance(row, list | tuple | np.ma.MaskedArray) for row in values):
        return [bare_rows(unmasked(row), what) for row in values]
    return values


def unmasked(values: Any) -> Any:
    """Return an array of which some entries are masked with NaN there; all else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return np.where(values.mask, np.nan, values.data) if values.mask.any() else values.data


def check_named(row: Any, what: str) -> None:
    """Refuse a row in a list whose entries have names."""
    if has_names(row):
        remedy = "xarray.concat(…, 'sample')" if isinstance(row, xr.DataArray) else "a DataFrame"
        raise TypeError(
            f"{what} holds a {type(row).__name__}, whose names would be lost here: pass all of "
            f"them as one, by {remedy}"
        )


def has_names(row: Any) -> bool:
    """Tell a row whose entries have names, and not only numbers that count them."""
    if isinstance(row, xr.DataArray):
        return any(dim in row.coords for dim in row.dims)
    if isinstance(row, pd.Series | pd.DataFrame):
        return not all(map(is_counted, row.axes))
    return isinstance(row, Mapping) or bool(getattr(row, "_fields", ()))


def is_counted(index: Any) -> bool:
    """Tell the index that pandas makes where none is given, of 0, 1, 2 and so on."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def together(rows: Any, what: str) -> Any:
    """Return a list of rows that have names as a table or an array; all else as it is."""
    if not isinstance(rows, list | tuple) or not any(map(has_names, rows)):
        return rows
    if all(isinstance(row, xr.DataArray) for row in rows):
        found: Any = xr.concat(rows, "sample", join="outer", coords="different", compat="equals")
        lengths = [{d: row.sizes[d] for d in row.dims if d != "sample"} for row in rows]
        same = all(each == {d: found.sizes[d] for d in each} for each in lengths)
    elif all(isinstance(row, pd.Series | Mapping) or getattr(row, "_fields", ()) for row in rows):
        found = pd.DataFrame(list(rows))
        same = all(len(row) == found.shape[1] for row in rows)
    else:
        return rows
    if not same:
        raise ValueError(
            f"rows of {what} have different names: each must have the same, in whatever order"
        )
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
    if isinstance(values, pd.DataFrame | pd.Series | pd.Index | pd.Timestamp | xr.Dataset):
        return ""  # where it is a name, or the precision of dates
    return str(getattr(values, "units", getattr(values, "unit", None)) or "")
