"""A user's YAML file as a mapping: read safely, its keys checked, one error for what is wrong."""

import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

MOST_NAMES = 50  # assumed: of weights there are thousands
MOST_BYTES = 1_000_000  # assumed: nobody writes a longer specification by hand


def read(path: Path | str) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping. Nothing in it is executed.

    Raises:
        ValueError: no such file, one too large, text that is not YAML (tabs that indent, tags
            that would make Python objects), values nested too deeply, aliases that expand to too
            much, a key that is there twice, or a top level that is no mapping.
    """
    import yaml

    from wse._document import plain

    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; it must be a YAML file: name one in it")
    if not path.is_file():
        raise ValueError(f"{path} is no file; it must be a YAML file: check the path")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES} bytes; leave out what is no setting")
    try:
        found = plain.load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        raise ValueError(_fault(path, error)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no YAML text in UTF-8: save it again as such") from error
    except ValueError as error:  # of `plain`, or a date that is none
        raise ValueError(f"{path}: {error}") from error
    except (AttributeError, LookupError) as error:  # PyYAML's, of a tag as in `!!int ""`
        raise ValueError(
            f"{path} has a tag that does not fit its value ({short(str(error))}): remove the tag"
        ) from error
    if not isinstance(found, dict):
        what = "is empty" if found is None else f"holds {type(found).__name__} at its top level"
        raise ValueError(
            f"{path} {what}; it must hold names and values: write lines such as 'name: mine'"
        )
    return mapping(cast("dict[Any, Any]", found), str(path))


def mapping(found: Any, owner: str) -> dict[str, Any]:
    """Return a mapping whose keys are words, as it is.

    Raises:
        ValueError: something else.
    """
    if not isinstance(found, dict):
        raise ValueError(
            f"{owner} is {short(found)}; it must hold names and values: indent them below"
        )
    pairs = cast("dict[Any, Any]", found)
    for key in pairs:
        if not isinstance(key, str):
            raise ValueError(f"{owner} has the key {short(key)}; keys are words: put it in quotes")
    return cast("dict[str, Any]", pairs)


def check_keys(found: Mapping[str, Any], known: Iterable[str], owner: str) -> None:
    """Refuse a key that is not known, with the nearest that is.

    Raises:
        ValueError: the first unknown key.

    >>> check_keys({"sistems": 2}, ["systems", "mode"], "mine.yaml")
    Traceback (most recent call last):
    ...
    ValueError: mine.yaml has the key 'sistems', which is not known: did you mean 'systems'?
    """
    for key in found:
        if key not in (names := [*known]):
            near = nearest(key, names)
            raise ValueError(f"{owner} has the key {short(key)}, which is not known: {near}")


def short(value: Any) -> str:
    """Return a value for a message, what is long in it left out."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python prints no integer of so many digits
        return f"an {type(value).__name__} too long to print"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def nearest(word: str, known: Iterable[str]) -> str:
    """Ask whether the nearest known word was meant; list all, up to 50, where none is near."""
    names = [*known]
    close = get_close_matches(word[:100], names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"known are {', '.join(names[:MOST_NAMES])}{more}"


def number(value: Any, name: str, unit: str) -> int | float:
    """Return a plain number. Text such as 850e6, which YAML does not read as one, is converted.

    Raises:
        ValueError: anything else, such as text with a unit, or an integer beyond all floats.

    >>> number("850e6", "clock_hz", "Hz")
    850000000.0
    """
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            float(value)
            return value
        return float(value if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name} is {short(value)}; it must be a plain number in {unit}: convert it and leave "
            "the unit out"
        ) from None


def _fault(path: Path, error: Any) -> str:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    problem = error.problem or "cannot be read"
    if "\\t" in problem:
        return f"{path}, line {line}: a tab indents; YAML indents by spaces: replace the tab"
    if "could not determine a constructor for the tag" in problem:
        tag = problem.partition("'")[2].rstrip("'").removeprefix("tag:yaml.org,2002:")
        return f"{path}, line {line}: tag {short(tag)}; only plain values are read: remove the tag"
    return f"{path}, line {line}: {problem[:200]}; it is no YAML: correct that line"
