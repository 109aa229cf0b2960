"""Single arguments: whole numbers, numbers, seeds and rows, else refused."""

from collections.abc import Mapping
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
