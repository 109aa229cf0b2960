"""What to cite for what was used, as BibTeX."""

import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sciml._html import text_of
from sciml.provenance import installed

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")
ENTRY = re.compile(r"^@\w+\{(\w+),.*?^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"\b(\w+) = \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
ARXIV = re.compile(r"arXiv[:\s]*(\d{4}\.\d{4,5})")
PLACE = re.compile(r"(\d+):(e?\d+)")  # volume:first page
ALWAYS = ("jax", "flax")
OPTIMIZER = ("kingma2015",)


def cite(*things: Any) -> str:
    """Return BibTeX for this software and for what the given things build on.

    A thing is a `Fit` (its net, its optimizer and its data), a data set or a file's Dataset, a
    system, a noise, a configuration of a net, a function or a class of this package, or a key of
    the bibliography. What it builds on is read from the sources that its docstring, or its
    `reference`, names.

    Raises:
        ValueError: a text that is no key.

    >>> from sciml.models import FlowMatching
    >>> cite(FlowMatching).count("@")
    5
    """
    keys = dict.fromkeys(key for thing in things for key in keys_of(thing))
    known = entries()
    chosen = [known[key] for key in (*keys, *ALWAYS) if key in known]
    return "\n".join([software(), *dict.fromkeys(chosen)])


@functools.cache
def entries() -> dict[str, str]:
    """Return the bibliography: key → entry."""
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    return {match[1]: match[0] for match in ENTRY.finditer(text)}


def fields(entry: str) -> dict[str, str]:
    """Return the fields of an entry, as the file has them.

    >>> fields(entries()["kingma2015"])["eprint"]
    '1412.6980'
    """
    return dict(FIELD.findall(entry))


@functools.cache
def places() -> dict[str, str]:
    """Return where works are found, by arXiv number or as volume:page → key."""
    found: dict[str, str] = {}
    for key, entry in entries().items():
        given = fields(entry)
        if "eprint" in given:
            found[given["eprint"]] = key
        if "volume" in given and "pages" in given:
            found[f"{given['volume']}:{given['pages'].partition('-')[0]}"] = key
    return found


def named(text: str) -> Iterator[str]:
    """Yield the keys of the works that a text names, in their order."""
    marks = [(m.start(), m[1]) for m in ARXIV.finditer(text)]
    marks += [(m.start(), f"{m[1]}:{m[2]}") for m in PLACE.finditer(text)]
    return (places()[mark] for _, mark in sorted(marks) if mark in places())


def keys_of(thing: Any) -> Iterator[str]:
    """Yield the keys of what one thing builds on."""
    if isinstance(thing, str):
        if thing not in entries():
            raise ValueError(f"no work {thing!r}; the keys are {', '.join(sorted(entries()))}")
        yield thing
        return
    attrs = getattr(thing, "attrs", None)
    if isinstance(attrs, dict):
        for value in attrs.values():
            yield from named(text_of(value))
    model = getattr(thing, "model", None)
    if model is not None:  # a Fit
        yield from keys_of(model)
        yield from OPTIMIZER
        return
    reference = getattr(thing, "reference", None)
    if isinstance(reference, str):
        yield from named(reference)
    described = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    if (described.__module__ or "").startswith(("sciml", "wse")):
        yield from named(inspect.getdoc(described) or "")
    for part in ("embedding", "member", "noise"):
        if getattr(thing, part, None) is not None and not inspect.isclass(thing):
            yield from keys_of(getattr(thing, part))


def software() -> str:
    """Return the entry of this distribution, in its installed version."""
    return (
        "@software{sciml_wse,\n"
        "  author = {{The sciml-wse developers}},\n"
        "  title = {sciml-wse: inverse maps and subgrid wind, on an emulated "
        "wafer-scale machine},\n"
        f"  version = {{{installed('sciml-wse')}}}\n"
        "}"
    )
