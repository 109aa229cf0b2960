"""Draw the rooms of the two packages and what they stand on: `python .ci/draw_house.py FILE.svg`.

A tie that follows from two others is left out, and so are files that begin with `_`, on which all
may stand. A test compares the drawing in the docs with this.
"""

import ast
import sys
from html import escape
from pathlib import Path

from house import Graph, graph_of, levels, rooms, sources

WIDE, HIGH, GAP, RISE = 118, 40, 12, 44
NAMES_ALONE = {"support", "workload", "workloads", "zoo", "estimator"}
COLOURS = {"sciml": "#dbe9f6", "wse": "#fde5cf"}


def reduced(ties: Graph) -> Graph:
    """Return the ties that do not follow from others."""

    def below(room: str) -> set[str]:
        return ties[room].union(*(below(other) for other in ties[room]))

    return {
        room: {one for one in used if not any(one in below(other) for other in used - {one})}
        for room, used in ties.items()
    }


def drawn(package: str, texts: dict[str, str], left: int) -> tuple[list[str], int, int]:
    """Return the shapes of one package from x = `left` on, their width and height."""
    everything = rooms(graph_of(texts), package)
    hidden = NAMES_ALONE | {room for room in everything if room.startswith("_")}
    ties = {room: used - hidden for room, used in everything.items() if room not in hidden}
    height = levels(ties)
    floors = [
        [r for r in sorted(ties) if height[r] == n] for n in range(1, max(height.values()) + 1)
    ]
    wide = max(map(len, floors)) * (WIDE + GAP) - GAP
    high = len(floors) * (HIGH + RISE) - RISE
    place = {}
    for n, floor in enumerate(reversed(floors)):
        start = left + (wide - len(floor) * (WIDE + GAP) + GAP) / 2
        place |= {
            room: (start + i * (WIDE + GAP), 40 + n * (HIGH + RISE)) for i, room in enumerate(floor)
        }
    shapes = [f'<text x="{left + wide / 2:.0f}" y="22" class="package">{package}</text>']
    for room, used in reduced(ties).items():
        x, y = place[room]
        for other in sorted(used):
            x2, y2 = place[other]
            ends = f'x1="{x + WIDE / 2:.0f}" y1="{y + HIGH}" x2="{x2 + WIDE / 2:.0f}" y2="{y2}"'
            shapes.append(f"<line {ends}/>")
    for room, (x, y) in place.items():
        words = texts.get(f"{package}.{room}.__init__", texts.get(f"{package}.{room}", ""))
        title = escape((ast.get_docstring(ast.parse(words)) or "").partition("\n")[0])
        shapes.append(
            f'<g><title>{title}</title><rect x="{x:.0f}" y="{y}" width="{WIDE}" height="{HIGH}" '
            f'rx="5" fill="{COLOURS[package]}"/>'
            f'<text x="{x + WIDE / 2:.0f}" y="{y + 25}">{room}</text></g>'
        )
    return shapes, wide, high


def picture(texts: dict[str, str]) -> str:
    """Return the drawing as SVG."""
    left, lines, most = 20, [], 0
    for package in ("sciml", "wse"):
        shapes, wide, high = drawn(package, texts, left)
        lines, left, most = lines + shapes, left + wide + 50, max(most, high)
    style = (
        "text{font:14px sans-serif;text-anchor:middle} .package{font-size:18px;font-weight:bold} "
        "rect{stroke:#555} line{stroke:#999}"
    )
    size = f'viewBox="0 0 {left - 30} {most + 60}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
    back = f'<rect width="{left - 30}" height="{most + 60}" fill="white" style="stroke:none"/>'
    return "\n".join([head, back, *lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(sources()), encoding="utf-8")
