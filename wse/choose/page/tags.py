"""Pieces of HTML: tables, bars with intervals, numbers that link to their sources."""

import math
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

BAR_PX = 160
Number: TypeAlias = int | float


class Html(str):
    """Text that is HTML already; all other text is escaped."""


def section(title: str, *inside: str) -> str:
    """A heading and what stands below it."""
    return f"<section><h2>{escape(title)}</h2>{''.join(inside)}</section>"


def text(cell: str) -> str:
    """A cell's text, escaped unless it is HTML."""
    return cell if isinstance(cell, Html) else escape(cell)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> str:
    """A table.

    Args:
        header: names of the columns.
        rows: cells; those of the class `Html` as they are.
        right: which columns hold numbers, as letters of `header`'s places: "bc" for the second and
            third.
    """
    sides = [" class='n'" if chr(ord("a") + i) in right else "" for i in range(len(header))]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(sides, cells, strict=True)
        return "".join(f"<{tag}{side}>{text(cell)}</{tag}>" for side, cell in pairs)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{line('th', header)}</tr></thead>"
    return f"<div class='wide'><table>{head}<tbody>{body}</tbody></table></div>"


def listed(items: Sequence[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{text(x)}</li>' for x in items)}</ul>" if items else ""


def paragraph(words: str) -> str:
    """A paragraph in the softer colour."""
    return f"<p class='soft'>{text(words)}</p>"


def more(summary: str, *inside: str) -> str:
    """What is read on demand."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(inside)}</details>"


def cited(words: str, numbers: Sequence[int]) -> Html:
    """Words with links to their sources."""
    links = " ".join(f"<a href='#s{n}'>[{n}]</a>" for n in dict.fromkeys(numbers))
    return Html(f"{text(words)}{f' <sup>{links}</sup>' if links else ''}")


def interval(mark: str, low: str, high: str) -> Html:
    """A number above its interval, so that columns stay narrow."""
    return Html(f"{text(mark)}<div class='soft'>{text(low)} to {text(high)}</div>")


def span(
    low: int | float, mark: int | float, high: int | float, ends: tuple[int | float, int | float]
) -> Html:
    """An interval and the value in it, on a logarithmic line that all rows share."""
    least, most = (math.log(max(x, 1e-30)) for x in ends)
    scale = (BAR_PX - 8) / max(most - least, 1e-9)

    def at(value: int | float) -> int | float:
        return min(max(4 + scale * (math.log(max(value, 1e-30)) - least), 4), BAR_PX - 4)

    a, b, c = at(low), at(mark), at(high)
    words = escape(f"{low:.3g} to {high:.3g}, {mark:.3g}")
    return Html(
        f"<svg width='{BAR_PX}' height='16' role='img' aria-label='{words}'>"
        f"<rect class='span' x='{a:.1f}' y='5' width='{max(c - a, 1):.1f}' height='6' rx='3'/>"
        f"<circle class='mark' cx='{b:.1f}' cy='8' r='4'/></svg>"
    )


def bar(value: int | float, most: int | float) -> Html:
    """A bar from zero."""
    width = max(1.0, BAR_PX * value / most) if most > 0 else 0.0
    return Html(
        f"<svg width='{BAR_PX}' height='12'><rect class='mark' y='2' height='8' rx='2' "
        f"width='{width:.1f}'/></svg>"
    )
