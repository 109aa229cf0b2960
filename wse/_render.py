"""Rows of text as a table for a terminal or a notebook; numbers for JSON."""

# What a document holds has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from html import escape
from math import isfinite
from typing import Any

Rows = Sequence[Sequence[str]]
SHOWN = 12  # rows of a long table


def few(rows: Rows) -> Rows:
    """The first and the last of many rows."""
    if len(rows) <= SHOWN:
        return rows
    return [*rows[: SHOWN // 2], ("…",) * len(rows[0]), *rows[-SHOWN // 2 :]]


def text(header: Sequence[str], rows: Rows) -> str:
    """A table with aligned columns: numbers to the right, words to the left.

    >>> print(text(("phase", "time"), [("input", "4.6 s"), ("units", "10.1 s")]))
    phase    time
    input   4.6 s
    units  10.1 s
    """
    columns = [
        [cell.rjust(n) if right else cell.ljust(n) for cell in column]
        for column in zip(header, *rows, strict=True)
        for n in [max(map(len, column))]
        for right in [any(cell[:1].isdigit() for cell in column)]
    ]
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def html(caption: str, header: Sequence[str], rows: Rows, notes: Sequence[str] = ()) -> str:
    """The same table in HTML, with a caption above and notes below; every text is escaped.

    It names no colours, so that it is legible on a light and on a dark page.
    """
    right = [any(row[i][:1].isdigit() for row in rows) for i in range(len(header))]
    sides = [f' style="text-align:{"right" if x else "left"}"' for x in right]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(sides, cells, strict=True)
        return "".join(f"<{tag}{side}>{escape(cell)}</{tag}>" for side, cell in pairs)

    head = f"<thead><tr>{line('th', header)}</tr></thead>"
    body = "".join(f"<tr>{line('td', cells)}</tr>" for cells in rows)
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    below = f"<ul>{items}</ul>" if items else ""
    table = f"<table>{head}<tbody>{body}</tbody></table>" if rows else ""
    # Not a <caption>, which would be as narrow as the table.
    return f"<div><strong>{escape(caption)}</strong></div>{table}{below}"


def finite(value: Any) -> Any:
    """The same for JSON, which has no other numbers: None in place of what is not finite.

    >>> finite({"time_s": (1.0, float("nan"))})
    {'time_s': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
