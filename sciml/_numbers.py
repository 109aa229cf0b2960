"""Checks of single numbers that a user gives."""

from typing import Any

import numpy as np

from wse._numbers import is_whole

LEAST, MOST = -(2**63), 2**63  # what 64 bits hold


def check_whole(least: int, **values: Any) -> None:
    """Refuse what is no whole number, or less than `least`."""
    for name, value in values.items():
        if not is_whole(value, least):
            raise ValueError(f"{name} is {value!r}; it must be a whole number, at least {least}")


def check_number(**values: Any) -> None:
    """Refuse what is no real number."""
    for name, value in values.items():
        if not isinstance(value, int | float | np.number) or isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}; it must be a number: pass one, as 0.1")


def whole_seed(seed: Any, least: int = LEAST) -> int:
    """Return a seed as Python's own number, which JSON takes: of 64 bits, at least `least`."""
    if not is_whole(seed, least) or seed >= MOST:
        raise ValueError(
            f"seed is {seed!r}; it must be a whole number from {least} to {MOST - 1}: pass seed=0"
        )
    return int(seed)
