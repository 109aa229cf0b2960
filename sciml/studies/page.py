"""One page with every result of a folder, beside what was published."""

from pathlib import Path
from typing import Any

from sciml._html import STYLE, html_of, text_of
from wse._files import write_aside

TEMPLATE = Path(__file__).with_name("page.html.j2")
LONG_TABLE = 40  # rows beyond which only the head is shown; the CSV has all


def write_page(folder: Path) -> Path:
    """Write index.html from the results in `folder`, and return its path."""
    from jinja2 import Environment

    sections = [section(study, folder) for study in studies() if stored(study, folder).exists()]
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = folder / "index.html"
    with write_aside(page) as aside:
        aside.write_text(template.render(sections=sections, style=STYLE), encoding="utf-8")
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
            {"name": n, "rows": len(t), "shown": len(head), "html": html_of(head)}
            for n, t in tables.items()
            for head in [t.head(LONG_TABLE)]
        ],
        "attrs": attrs,
    }
