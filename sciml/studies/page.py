"""One page with every result of a folder, beside what was published."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sciml._files import write_aside

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).with_name("page.html.j2")
LONG_TABLE = 40  # rows beyond which only the head is shown; the CSV has all


def write_page(folder: Path) -> Path:
    """Write index.html from the results in `folder`, and return its path."""
    from jinja2 import Environment

    sections = [section(study, folder) for study in studies() if stored(study, folder).exists()]
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = folder / "index.html"
    with write_aside(page) as aside:
        aside.write_text(template.render(sections=sections), encoding="utf-8")
    return page


def studies() -> list[Any]:
    """Return all studies; imported late, since this module is one of their rooms."""
    from sciml.studies import STUDIES

    return list(STUDIES.values())


def stored(study, folder: Path) -> Path:
    """Return where a study's data set lies."""
    return folder / f"{study.name}.nc"


def section(study, folder: Path) -> dict[str, Any]:
    """Return what the template shows of one study."""
    import xarray as xr

    with xr.open_dataset(stored(study, folder), engine="h5netcdf") as dataset:
        tables = study.tables(dataset.load())
        attrs = {k: text_of(v) for k, v in dataset.attrs.items()}
    return {
        "name": study.name,
        "title": study.title,
        "about": study.about,
        "published": study.published,
        "figure": f"{study.name}.png" if (folder / f"{study.name}.png").exists() else None,
        "tables": [
            {"name": n, "rows": len(t), "shown": min(len(t), LONG_TABLE), "html": html_of(t)}
            for n, t in tables.items()
        ],
        "attrs": attrs,
    }


def text_of(value: Any) -> str:
    """Return an attribute as text."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def html_of(table: "pd.DataFrame") -> Any:
    """Return the head of a table as safe HTML."""
    from markupsafe import Markup

    shown = table.head(LONG_TABLE).map(number_text)
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
