"""What arguments must be: whole numbers, as Python and NumPy have them, or one of some words."""

import reprlib
from collections.abc import Hashable, Iterable
from numbers import Integral, Real
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def short(value: Any) -> str:
    """Return a value for a message: in one line, what is long in it left out.

    >>> short("a" * 1000)[:10], len(short("a" * 1000)), short([1] * 100)
    ("'aaaaaaaaa", 100, '[1, 1, 1, 1, 1, 1, ...]')
    """
    try:
        return " ".join(_SHORT.repr(value).splitlines())
    except ValueError:  # Python prints no integer of so many digits
        return f"an {type(value).__name__} too long to print"


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
        raise ValueError(f"{name} is {short(value)}; it must be a positive integer: {remedy}")
    return int(value)


def of_kind(name: str, value: Any, kind: Any, remedy: str) -> None:
    """Refuse what is no instance of a class, or of one of several; the remedy says which.

    >>> of_kind("wafer", 3, str, "pass wse.layout.Wafer.of()")
    Traceback (most recent call last):
    ...
    TypeError: wafer is 3 of type int; pass wse.layout.Wafer.of()
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {short(value)} of type {type(value).__name__}; {remedy}")


def each_of_kind(name: str, values: Any, kind: Any, remedy: str) -> None:
    """Refuse what is no row of instances, or holds none."""
    of_kind(name, values, list | tuple, remedy)
    if not values:
        raise ValueError(f"{name} is {values!r}, empty; {remedy}")
    for i, value in enumerate(values):
        of_kind(f"{name}[{i}]", value, kind, remedy)


def numbers(name: str, values: Any, remedy: str) -> list[Any]:
    """Real numbers of a row, or of a single one; all others are refused."""
    try:
        found: list[Any] = [values] if isinstance(values, str | bytes | Real) else [*values]
    except TypeError:
        found = [values]
    for value in found:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} is {short(values)}; it must hold numbers: {remedy}")
    return found


def one_of(name: str, value: Any, known: Iterable[str], remedy: str = "pass that") -> None:
    """Refuse a word that is none of those known."""
    words = [*known]
    if not isinstance(value, Hashable) or value not in words:
        said = ", ".join(map(repr, words))
        raise ValueError(f"{name} is {short(value)}; it must be one of {said}: {remedy}")
