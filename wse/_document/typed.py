"""A user's mapping as a dataclass, each value of its field's type and in its range, by pydantic.

Types are the annotations of the dataclass. A range is pydantic's, with its words beside it:
`Annotated[int, Field(ge=1, description="a positive integer: write one such as 100")]`.
"""

# Types that are made while running have no static ones.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from functools import cache, partial, reduce
from inspect import signature
from operator import or_
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from wse._document import nearest, short

Made = TypeVar("Made")
STRICT = ConfigDict(strict=True, allow_inf_nan=False)
LIMITS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")
RULES = {
    "int_type": "be of type int: write a whole number",
    "float_type": "be a plain number in its unit: convert it and leave the unit out",
    "finite_number": "be finite: write a plain number",
    "bool_type": "be of type bool: write true or false",
    "string_type": "be of type str: put it in quotes",
    **dict.fromkeys(("tuple_type", "list_type"), "be a list: write it in brackets, as [a, b]"),
    **dict.fromkeys(("dict_type", "mapping_type"), "hold names and values: indent them below"),
    "too_long": "be shorter: leave out what is too much",
    **dict.fromkeys(("too_short", "missing"), "be longer: add what is missing"),
}


def made(make: Callable[..., Made], given: Any, name: str = "", place: str = "") -> Made:
    """What a dataclass or function makes of a document's values, which may hold dataclasses.

    Args:
        make: the dataclass or function; its annotations say what each value must be.
        given: names and values. Text such as 1e-3, which YAML does not read as a number, is one.
        name: the path of these values in their document.
        place: the document.

    Raises:
        ValueError: an unknown key (with the nearest that is known), a missing one, a value of
            another type or outside its range, or what `make` itself refuses.
    """
    return _told(_reader(make).validate_python, given, name, place)


def check(made: Any, name: str) -> None:
    """Refuse a dataclass that was made with values of other types, or outside their ranges.

    Raises:
        ValueError: as `made`.
    """
    _told(_model(type(made)).model_validate, {**vars(made)}, name, "")


def _told(run: Callable[[Any], Made], given: Any, name: str, place: str) -> Made:
    try:
        return run(given)
    except ValidationError as error:
        # Of a union each member has errors: the deepest is of the member that was meant.
        errors = error.errors(include_url=False)
        worst = max(errors, key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
        beside = [one for one in errors if one["loc"][:-1] == worst["loc"][:-1]]
        missing = [str(one["loc"][-1]) for one in beside if one["type"] == "missing"]
        raise ValueError(_words(worst, given, name, place, missing)) from error


def _words(error: ErrorDetails, given: Any, name: str, place: str, missing: list[str]) -> str:
    """The line that tells an error: path, value, rule and remedy; of missing keys all."""
    path, kind, said = name, error["type"], error["msg"]
    for key in error["loc"]:  # which has the members of unions in it too
        if isinstance(given, dict) and key in given:
            given, path = given[key], f"{path}.{key}" if path else str(key)
        elif isinstance(given, list | tuple) and isinstance(key, int) and key < len(given):
            given, path = given[key], f"{path}[{key}]"
    if kind == "own":
        return said
    if kind == "missing" and isinstance(key := error["loc"][-1], str):
        one = f"lacks {key}; it must be given: add a line {key}: ..."
        many = (
            f"lacks {', '.join(missing)}; all must be given: add a line such as {key}: ... for each"
        )
        kind, said = "keys", one if len(missing) == 1 else many
    if kind == "keys":
        return f"{' of '.join(part for part in (path, place) if part)} {said}"
    value = short(error["input"])
    if kind == "range":
        return f"{path} is {value}; it must be {said}"
    if kind == "literal_error":
        known = re.findall("'(.*?)'", said)
        said = f"be one of {', '.join(known)}: {nearest(str(error['input']), known)}"
    return f"{path}{place and f' in {place}'} is {value}; it must {RULES.get(kind, said)}"


@cache
def _reader(make: Any) -> Any:
    return TypeAdapter(Annotated[Any, PlainValidator(partial(_read, make))])


@cache
def _model(make: Any) -> type[BaseModel]:
    """A model of pydantic with the arguments of a dataclass or function."""
    hints = get_type_hints(make, include_extras=True)
    arguments: Any = {
        key: (_hint(hints.get(key, Any)), ... if one.default is one.empty else None)
        for key, one in signature(make).parameters.items()
    }
    return create_model(make.__name__, __config__=STRICT, **arguments)


def _read(make: Any, given: Any) -> Any:
    if isinstance(make, type) and isinstance(given, make):
        return given
    if not isinstance(given, dict):
        raise _refused("mapping_type", "")
    model = _model(make)
    for key in given:
        if key not in (known := model.model_fields):
            near = nearest(str(key), known)
            raise _refused("keys", f"has the key {short(key)}, which is not known: {near}")
    found = model.model_validate(given)
    try:
        return make(**{key: getattr(found, key) for key in given})
    except ValueError as error:
        raise _refused("own", str(error)) from error


def _hint(hint: Any) -> Any:
    """An annotation as YAML can satisfy it."""
    parts = tuple(_hint(part) for part in get_args(hint))
    if is_dataclass(hint):
        return Annotated[hint, PlainValidator(partial(_read, hint))]
    if hint is float:
        return Annotated[float, BeforeValidator(_number)]
    if get_origin(hint) is Annotated:
        return Annotated[_hint(hint.__origin__), *_limits(hint.__metadata__)]
    if get_origin(hint) in (Union, UnionType):
        return reduce(or_, parts)
    return Annotated[tuple[parts], Strict(False)] if get_origin(hint) is tuple else hint


def _number(given: Any) -> Any:
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given


def _limits(metadata: Iterable[Any]) -> Iterator[Any]:
    """A field's limits, and after them the words for what lies outside."""
    for one in metadata:
        yield one
        if isinstance(one, FieldInfo) and one.description:
            yield WrapValidator(partial(_ranged, one.description))


def _ranged(words: str, given: Any, handler: Callable[[Any], Any]) -> Any:
    try:
        return handler(given)
    except ValidationError as error:
        if error.errors()[0]["type"] not in LIMITS:
            raise
        raise _refused("range", words) from error


def _refused(kind: str, words: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{words}", {"words": words})  # type: ignore[arg-type]
