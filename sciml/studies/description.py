"""What every study has: a function, a drawing, tables, and the published figures beside them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd
import xarray as xr

Scale = Literal["fast", "full"]


@dataclass(frozen=True)
class Study:
    """One published table or figure, made again.

    Args:
        name: one word, as on the command line.
        title: one line.
        about: what was run, and how it differs from the published study; plain text.
        published: what the published study reports, with its source; plain text.
        run: `run(scale, out=…, ax=…) → Dataset`.
        tables: Dataset → the rows of the tables, by name.
        shown: table → column → its heading on the page; a table left out is shown whole.
        axes: `axes(scale)` makes a figure and the axes that `run` draws on; None: only tables.

    >>> from sciml.studies import STUDIES
    >>> STUDIES["table4"].title
    'Table 4: set-up and training times'
    """

    name: str
    title: str
    about: str
    published: str
    run: Callable[..., xr.Dataset]
    tables: Callable[[xr.Dataset], dict[str, pd.DataFrame]]
    axes: Callable[[Scale], Any] | None = None
    shown: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def check_scale(scale: str) -> None:
    """Refuse a scale that does not exist."""
    if scale not in ("fast", "full"):
        raise ValueError(f"scale is {scale!r}; it must be 'fast' or 'full'")
