"""What pages and notebooks show: numbers, tables, one look."""

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def captioned(caption: str, rows: "pd.DataFrame", notes: tuple[str, ...] = ()) -> str:
    """Return a table under a caption, with notes below: what an object shows in a notebook."""
    below = "".join(f"<div>{escape(note)}</div>" for note in notes)
    table = str(html_of(rows))
    for tag in ("th", "td"):  # words, which notebooks would set to the right
        table = table.replace(f"<{tag}>", f'<{tag} style="text-align:left">')
    return f"<div><strong>{escape(caption)}</strong></div>{table}{below}"


def text_of(value: Any) -> str:
    """Return an attribute as text."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def html_of(table: "pd.DataFrame") -> Any:
    """Return a table as safe HTML, without its index."""
    from markupsafe import Markup

    shown = table.map(number_text)
    return Markup(shown.to_html(index=False, border=0, escape=True))


def number_text(value: Any) -> str:
    """Return a cell as people read it: four digits, no NaN.

    >>> [number_text(v) for v in (47577.9, 0.00012345, 3, float("nan"), float("inf"), "CPU")]
    ['47,580', '0.0001234', '3', '', 'never', 'CPU']
    """
    if isinstance(value, str):
        return value
    if value != value:
        return ""
    if value in (float("inf"), float("-inf")):
        return "never"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    if abs(value) >= 1e4:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"
