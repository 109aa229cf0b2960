"""Rows of text as a table for a terminal or a notebook."""

from collections.abc import Sequence
from html import escape

Rows = Sequence[Sequence[str]]


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
    """The same table in HTML, with a caption above and notes below; every text is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    below = f"<ul>{items}</ul>" if items else ""
    caption = f"<caption>{escape(caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"
