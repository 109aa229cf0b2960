"""Whole numbers, as Python and NumPy have them."""

from numbers import Integral
from typing import Any


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number, and at least so much.

    >>> is_whole(3), is_whole(True), is_whole(2.5), is_whole("3")
    (True, False, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least
