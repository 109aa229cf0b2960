"""One page with every result of a folder, beside what was published."""

from pathlib import Path
from typing import Any

import pandas as pd

from sciml._html import STYLE, html_of, text_of
from sciml.studies.description import Study
from sciml.studies.store import read_dataset
from wse._files import write_aside

TEMPLATE = Path(__file__).with_name("page.html.j2")
LONG_TABLE = 40  # rows beyond which only the head is shown; the CSV has all


def write_page(folder: Path) -> Path:
    """Write index.html from the results in `folder`, and return its path."""
    from jinja2 import Environment

    from sciml.studies import STUDIES  # late, since this module is one of their rooms

    stored = [study for name, study in STUDIES.items() if (folder / f"{name}.nc").exists()]
    sections = [section(study, folder) for study in stored]
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = folder / "index.html"
    with write_aside(page) as aside:
        aside.write_text(template.render(sections=sections, style=STYLE), encoding="utf-8")
    return page


def made_of(attrs: dict[str, Any]) -> str:
    """Return at which scale a result was made, and of which data, as sentences."""
    said = {
        "fast": "Made at fast scale: smaller and shorter than published; see SCALE=full.",
        "full": "Made at full scale, the published sizes.",
    }.get(attrs.get("scale", ""), "")
    if str(attrs.get("synthetic")) == "true":
        said += " SYNTHETIC data stand in for the real files, which were not at hand."
    of = [str(attrs[name]) for name in ("source", "split") if name in attrs]
    return f"{said} Data: {'; '.join(of)}.".strip() if of else said.strip()


def readable(study: Study, name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table that the page shows, under their headings."""
    headings = study.shown.get(name)
    if headings is None:
        return table
    return pd.DataFrame({shown: table[column] for column, shown in headings.items()})


def section(study: Study, folder: Path) -> dict[str, Any]:
    """Return what the template shows of one study."""
    dataset = read_dataset(folder / f"{study.name}.nc")
    figure = f"{study.name}.png"
    return {
        "study": study,
        "made": made_of(dataset.attrs),
        "figure": figure if (folder / figure).exists() else None,
        "tables": [
            {"name": n, "rows": len(t), "shown": len(head), "html": html_of(head)}
            for n, t in study.tables(dataset).items()
            for head in [readable(study, n, t.head(LONG_TABLE))]
        ],
        "attrs": {k: text_of(v) for k, v in dataset.attrs.items()},
    }
