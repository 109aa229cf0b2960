"""Skill with its interval, and what is left of the short waves, for nets of wind."""

from typing import Any

import numpy as np
import pandas as pd

from sciml.figure.style import CPU, MUTED, QUIESCENT, WAFER

COLOURS = (CPU, WAFER, QUIESCENT)


def draw_wind_scores(table: pd.DataFrame, axes: Any, source: str) -> Any:
    """Draw skills over conservative bicubic (percent) and short-wave ratios, a line for each net.

    Args:
        table: rows with `net, factor, share, data, skill, skill_low, skill_high,
            short_wave_ratio`, `draw_short_wave_ratio` where a net draws, and `seen_skill` where
            a net was judged also on what it was trained on.
        axes: two of one figure, which gets a title.
        source: of the data, for the title.
    """
    left, right = np.asarray(axes).ravel()
    shared = len({*table["share"]}) > 1
    labels = [
        f"{net}, ×{factor}" + (f", {100 * share:.3g} % of data" if shared else "")
        for net, factor, share in zip(*(table[c] for c in ("net", "factor", "share")), strict=True)
    ]
    lines = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    groups = table.assign(place=[lines[label] for label in labels]).groupby("data", sort=False)
    for number, (name, rows) in enumerate(groups):
        place = rows["place"] + 0.2 * (number - (len(groups) - 1) / 2)
        skill, low, high = (100 * np.asarray(rows[f"skill{end}"]) for end in ("", "_low", "_high"))
        look: Any = {"color": COLOURS[number % len(COLOURS)], "markersize": 5, "linestyle": "none"}
        left.errorbar(
            skill, place, xerr=np.abs([skill - low, high - skill]), marker="o", label=name, **look
        )
        if "seen_skill" in rows:
            seen = f"{name}, fields seen in training"
            left.plot(100 * rows["seen_skill"], place, marker="|", label=seen, **look)
        right.plot(rows["short_wave_ratio"], place, marker="o", label="estimate", **look)
        if "draw_short_wave_ratio" in rows:
            right.plot(rows["draw_short_wave_ratio"], place, marker="x", label="one draw", **look)
    left.axvline(0, color=MUTED, linewidth=1)
    right.axvline(1, color=MUTED, linewidth=1)
    left.set_yticks(list(lines.values()), list(lines))
    right.set_yticks(list(lines.values()), [])
    for ax in (left, right):
        ax.invert_yaxis()
    left.set_xlabel("MSE skill over conservative bicubic (%)")
    right.set_xlabel("energy below two coarse cells / that of the truth")
    columns = 2 if "seen_skill" in table else 3
    above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns}
    left.legend(**above)
    if "draw_short_wave_ratio" in table:
        handles, found = right.get_legend_handles_labels()
        unique = dict(zip(found, handles, strict=True))
        right.legend(unique.values(), unique.keys(), **above)
    left.figure.suptitle(source)
    return axes
