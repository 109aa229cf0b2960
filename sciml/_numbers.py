"""Checks of numbers that a user gives."""

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from wse._numbers import is_whole, short

LEAST, MOST = -(2**63), 2**63  # what 64 bits hold


def check_whole(least: int, **values: Any) -> None:
    """Refuse what is no whole number, or less than `least`."""
    for name, value in values.items():
        if not is_whole(value, least):
            raise ValueError(
                f"{name} is {short(value)}; it must be a whole number, at least {least}"
            )


def check_number(**values: Any) -> None:
    """Refuse what is no real number."""
    for name, value in values.items():
        if not isinstance(value, int | float | np.number) or isinstance(value, bool):
            raise ValueError(f"{name} is {short(value)}; it must be a number: pass one, as 0.1")


def check_row(**values: Any) -> None:
    """Refuse what is no row, one entry after another; None is left out."""
    for name, value in values.items():
        single = isinstance(value, str | bytes | Mapping)
        if value is not None and (single or np.ndim(value) != 1):
            raise TypeError(
                f"{name} is {short(value)}; it must be a row: pass a list or an array of one axis"
            )


def whole_seed(seed: Any, least: int = LEAST) -> int:
    """Return a seed as Python's own number, which JSON takes: of 64 bits, at least `least`."""
    if not is_whole(seed, least) or seed >= MOST:
        raise ValueError(
            f"seed is {short(seed)}; it must be a whole number from {least} to {MOST - 1}: "
            "pass seed=0"
        )
    return int(seed)


REAL = "biufV"  # NumPy's kinds of truth values, whole and real numbers, and JAX's short formats
REMEDY = {
    "c": "complex numbers: pass their .real, or .real and .imag as two",
    "M": "dates: pass numbers, as (t - t[0]) / np.timedelta64(1, 'h')",
    "m": "spans of time: pass numbers, as t / np.timedelta64(1, 'h')",
}
TEXT = "text or objects: pass .astype(float), if they stand for numbers"


def real(values: Any, what: str, dtype: Any = np.float64) -> np.ndarray:
    """Return real numbers as an array of NumPy; see `as_real`."""
    return np.asarray(as_real(values, what), dtype)


def as_numbers(values: Any, what: str) -> np.ndarray:
    """Return real numbers as an array of NumPy; a NaN alone where they are none."""
    try:
        return real(values, what)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def as_real(values: Any, what: str) -> Any:
    """Return an array as it is, with labels if it has them; one of objects as numbers, None as NaN.

    What an array of NumPy masks is missing, and becomes NaN.

    Raises:
        TypeError: complex values, dates or text, of which NumPy makes numbers in silence.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(values.mask, np.nan, values.data) if values.mask.any() else values.data
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind and kind in REAL:
        return values  # without reading what is lazy
    array = np.asarray(values)
    odd = [v for v in array.ravel() if not isinstance(v, Real | Decimal | np.bool_ | None)]
    if odd or array.dtype.kind not in f"{REAL}O":
        kind = np.asarray(odd[0]).dtype.kind if odd else array.dtype.kind
        found = f"there is {odd[0]!r:.60}" if odd else f"they are {array.dtype}"
        remedy = REMEDY.get(kind, TEXT)
        raise TypeError(f"{what} must be real numbers, and {found}, of {remedy}")
    return (values if kind else array).astype(float) if array.dtype.kind == "O" else values
