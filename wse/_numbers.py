"""What arguments must be: whole numbers, as Python and NumPy have them, or one of some words."""

# What is checked has no static type.
# pyright: reportUnknownArgumentType=false

import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from math import inf
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

OF_LOSS = ("has_aux", "batch_size")
MOST = 10**18  # assumed: no training counts so far, and products of three such stay finite
MOST_LAYERS = 10_000  # assumed: the deepest published transformer, DeepNet, has 1000
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
    """A positive whole number up to `MOST`, as Python's own: JSON takes none of NumPy's.

    Raises:
        ValueError: anything else.

    >>> positive("systems", 0)
    Traceback (most recent call last):
    ...
    ValueError: systems is 0; it must be a positive integer: pass systems=1
    """
    if is_whole(value) and value <= MOST:
        return int(value)
    rule = "at most 10^18" if is_whole(value) else "a positive integer"
    raise ValueError(f"{name} is {short(value)}; it must be {rule}: {remedy or f'pass {name}=1'}")


def check_depth(name: str, layers: int) -> None:
    """Refuse more layers than can be written down one by one."""
    if layers > MOST_LAYERS:
        raise ValueError(
            f"{name} is {layers:,}; at most {MOST_LAYERS:,} layers are estimated, ten times the "
            "deepest published: correct the shape"
        )


def as_float(value: Any) -> float:
    """A real number as a float; infinite where it is more, or less, than any float.

    >>> as_float(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return inf


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


def check_kinds(made: Any) -> None:
    """Refuse a dataclass that was made with values of other kinds than its annotations say.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Part:
    ...     name: str
    >>> check_kinds(Part(3))
    Traceback (most recent call last):
    ...
    TypeError: name of Part is 3; it must be a text: pass name=...
    """
    for name, is_right, words in _kinds(type(made)):
        value = getattr(made, name)
        if not is_right(value):
            what = f"{name} of {type(made).__name__}"
            raise TypeError(f"{what} is {short(value)}; it must be {words}: pass {name}=...")


@cache
def _kinds(made: type) -> tuple[tuple[str, Callable[[Any], bool], str], ...]:
    hints = get_type_hints(made)
    return tuple((one.name, *_kind(hints[one.name])) for one in fields(made) if one.init)


SIMPLE: dict[Any, tuple[Any, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}


def _kind(hint: Any) -> tuple[Callable[[Any], bool], str]:
    """Whether a value is of an annotation, and what the annotation asks for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        checks = [_kind(part) for part in parts if part is not type(None)]
        empty = type(None) in parts
        words = " or ".join(dict.fromkeys(x for _, x in checks)) + " or None" * empty
        return (lambda value: (empty and value is None) or any(x(value) for x, _ in checks)), words
    if origin is tuple:
        alike = len({*parts} - {...}) == 1
        each, words = _kind(parts[0] if alike else Any)
        count = None if parts[-1] is ... else len(parts)
        many = f"a tuple of {count or 'several'}" + f", each {words}" * alike
        return (
            lambda value: (
                isinstance(value, tuple | list)
                and count in (None, len(value))
                and all(map(each, value))
            )
        ), many
    if hint is bool:  # of NumPy's too, which this module does without
        return (lambda value: type(value).__name__.startswith("bool")), "True or False"
    if hint in SIMPLE:
        kind, words = SIMPLE[hint]
        return (  # the usual kind first: to ask an abstract class takes ten times as long
            lambda value: (
                type(value) is hint or (isinstance(value, kind) and not isinstance(value, bool))
            )
        ), words
    if isinstance(hint, type) and origin is None and hint is not Any:
        return (lambda value: isinstance(value, hint)), f"a {hint.__name__}"
    return (lambda _: True), ""


def one_of(name: str, value: Any, known: Iterable[str], remedy: str = "pass that") -> None:
    """Refuse a word that is none of those known."""
    words = [*known]
    if not isinstance(value, Hashable) or value not in words:
        said = ", ".join(map(repr, words))
        raise ValueError(f"{name} is {short(value)}; it must be one of {said}: {remedy}")


def of_loss(model: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a loss function beside it, which a graph or a workload has of itself.

    Args:
        model: one of these.
        said: arguments of `wse.trace`.

    Raises:
        TypeError: another argument.
        ValueError: something is said beside another model than a loss.
    """
    for name, value in said.items():
        if name not in OF_LOSS:
            raise TypeError(
                f"{name} is no option; of a loss there are {' and '.join(OF_LOSS)}, all others are "
                "in the signature: correct the name"
            )
        if value is not None and not callable(model):
            raise ValueError(
                f"{name} is {short(value)} beside a {type(model).__name__}; it is of a loss "
                f"function: leave it out, or say it to wse.trace(..., {name}=...)"
            )
    return {"has_aux": None, **said}
