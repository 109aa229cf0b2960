"""Tables of the results and lab pages, made from the CSV files in docs/results.

    python docs/tables.py          # writes each table anew below its comment

A comment above a table says what it shows, in YAML:

    <!-- table
    file: width.csv
    where: {noise: none}
    columns: {net: net, r2: R² | .4f, median_se: median squared error (10⁻⁶) | .1f | 1e6}
    -->

A column is a heading, a format and a factor; `spread` gives one column for each value of another:
`spread: {data: "skill | .1f | 100"}`, here the skill on each data set.
"""

import re
from pathlib import Path

import pandas as pd
import yaml

DOCS = Path(__file__).parent
MARKED = re.compile(r"(<!-- table\n([^>]*)-->\n)(?:\n(?:\|.*\n)+)?")


def shown(value: object, form: str = "", factor: str = "1") -> str:
    """Return one cell; a value that is missing is a dash, one that is infinite never comes."""
    if pd.isna(value):
        return "–"
    if value == float("inf"):
        return "never"
    text = f"{float(value) * float(factor):{form}}" if form else str(value)
    return text.replace("-", "−") if form else text


def table(spec: dict) -> str:
    """Return the Markdown of one table."""
    rows = pd.read_csv(DOCS / "results" / spec["file"], keep_default_na=False, na_values=[""])
    for name, wanted in spec.get("where", {}).items():
        values = wanted if isinstance(wanted, list) else [wanted]
        rows = rows[rows[name].astype(str).isin([str(value) for value in values])]
    columns = {name: str(words).split(" | ") for name, words in spec["columns"].items()}
    cells = {
        heading: [shown(value, *form) for value in rows[name]]
        for name, (heading, *form) in columns.items()
    }
    lines = pd.DataFrame(cells)
    for name, words in spec.get("spread", {}).items():
        value, *form = words.split(" | ")
        lines[name] = rows[name].tolist()
        lines["cell"] = [shown(x, *form) for x in rows[value]]
        kept = [heading for heading, *_ in columns.values()]
        lines = lines.pivot_table("cell", kept, name, "first", sort=False).reset_index()
    head = [str(name) for name in lines.columns]
    body = [head, ["---"] * len(head), *lines.values.tolist()]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def made(page: str) -> str:
    """Return a page with its tables made anew."""
    return MARKED.sub(lambda found: f"{found[1]}\n{table(yaml.safe_load(found[2]))}\n", page)


def pages() -> list[Path]:
    """Return the pages that have such tables."""
    return sorted([*DOCS.glob("lab/*.md"), *DOCS.glob("results/*.md")])


if __name__ == "__main__":
    for path in pages():
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
