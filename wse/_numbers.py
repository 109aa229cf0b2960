"""What arguments must be: whole numbers, as Python and NumPy have them, or one of some words."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number, and at least so much.

    >>> is_whole(3), is_whole(True), is_whole(2.5), is_whole("3")
    (True, False, False, False)
    """
    if type(value) is int:  # most are, and asking for more takes ten times as long
        return value >= least
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def positive(name: str, value: Any, remedy: str = "") -> int:
    """A positive whole number, as Python's own: JSON takes none of NumPy's.

    Raises:
        ValueError: anything else.

    >>> positive("systems", 0)
    Traceback (most recent call last):
    ...
    ValueError: systems is 0; it must be a positive integer: pass systems=1
    """
    if not is_whole(value):
        remedy = remedy or f"pass {name}=1"
        raise ValueError(f"{name} is {value!r}; it must be a positive integer: {remedy}")
    return int(value)


def one_of(name: str, value: Any, known: Iterable[str], remedy: str = "pass that") -> None:
    """Refuse a word that is none of those known."""
    if value not in (words := [*known]):
        said = ", ".join(map(repr, words))
        raise ValueError(f"{name} is {value!r}; it must be one of {said}: {remedy}")
