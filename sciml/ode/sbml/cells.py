"""Cells of the tables of PEtab, checked where file, column and row are known."""

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

KNOWN = {  # columns of PEtab 1; tables may have others beside them
    "parameter": (
        *("parameterId", "parameterName", "parameterScale", "lowerBound", "upperBound"),
        *("nominalValue", "estimate", "initializationPriorType", "initializationPriorParameters"),
        *("objectivePriorType", "objectivePriorParameters"),
    ),
    "condition": ("conditionId", "conditionName"),
    "measurement": (
        *("observableId", "preequilibrationConditionId", "simulationConditionId", "measurement"),
        *("time", "observableParameters", "noiseParameters", "datasetId", "replicateId"),
    ),
    "observable": (
        *("observableId", "observableName", "observableFormula", "observableTransformation"),
        *("noiseFormula", "noiseDistribution"),
    ),
}
IDS_OF = {"parameter": "parameterId", "condition": "conditionId", "observable": "observableId"}
IDS = ("parameterId", "conditionId", "observableId", "simulationConditionId")
NEEDED = ("measurement", "time", "estimate")
OPTIONAL = ("nominalValue", "lowerBound", "upperBound")
LOGS = ("log", "log10")
INFINITE = ("inf", "infinity")
NEAR = 1e-9  # of a bound: what rounding may leave
ALIKE = 0.8  # assumed: of two names of columns


def check_columns(names: list[str], kind: str, file: Path) -> None:
    """Refuse columns that are there twice, and such as look like known ones misspelt.

    Else an optional column that was renamed would silently be taken for one that is not there.
    """
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"{file} has the column {twice[0]!r} twice; leave one")
    absent = {name.lower(): name for name in KNOWN[kind] if name not in names}
    for name in names:
        if kind == "condition" or name in KNOWN[kind]:
            continue
        low = name.lower()
        part = [k for k in absent if len(low) > 4 and k.endswith(low)]
        if like := [*get_close_matches(low, absent, 1, ALIKE), *part]:
            raise ValueError(
                f"{file} has a column {name!r} and none {absent[like[0]]!r}, which it looks like: "
                "rename it, or give it another name"
            )


def check_cells(table: Any, kind: str, file: Path) -> None:
    """Refuse empty ids, and cells that are no number where one must be, or one of wrong sign."""
    for name in table.columns:
        if name in IDS or name in NEEDED or (name in OPTIONAL and kind == "parameter"):
            for row, text in enumerate(table[name]):
                if why := fault(name, str(text)):
                    refuse(file, row, name, text, why)
    if kind == "condition":
        for name in table.columns:
            for row, text in enumerate(table[name]):
                if str(text).lower().lstrip("+-") in INFINITE:
                    refuse(file, row, name, text, "must be finite: correct it")
    if kind == "parameter":
        for row, cells in enumerate(table.to_dict("records")):
            if float(cells["estimate"]):
                check_estimated(row, cells, file)


def check_ids(parts: list[Any], kind: str, file: Path) -> None:
    """Refuse an id of the last table that is there before, in it or in another file."""
    key, seen = IDS_OF.get(kind, ""), set[str]()
    for table in parts:
        for row, name in enumerate(table[key] if key else ()):
            if name in seen:
                refuse(file, row, key, name, "is there more than once: leave one")
            seen.add(name)


def check_estimated(row: int, cells: dict[str, Any], file: Path) -> None:
    """Refuse bounds and a nominal value that its scale has not, or that contradict each other.

    Of what is not estimated nothing reads the bounds.
    """
    scale, texts = cells["parameterScale"], {n: str(cells.get(n, "")) for n in OPTIONAL}
    for name, text in texts.items():
        if scale in LOGS and text and float(text) <= 0:
            refuse(file, row, name, text, f"must be above 0 on the scale {scale}: correct it")
    nominal, low, high = (float(texts[name] or "nan") for name in OPTIONAL)
    if low >= high:
        refuse(file, row, "lowerBound", texts["lowerBound"], f"must be below upperBound, {high:g}")
    if nominal < low - NEAR * abs(low) or nominal > high + NEAR * abs(high):
        why = f"must be within its bounds, {low:g} to {high:g}: correct one of them"
        refuse(file, row, "nominalValue", texts["nominalValue"], why)


def check_overrides(tables: dict[str, Any], files: str) -> None:
    """Refuse measurements that give an observable more, or fewer, values than its formulas have."""
    rows, observables = tables["measurement"], tables["observable"].set_index("observableId")
    for key, kind, columns in (
        ("observableParameters", "observable", ("observableFormula", "noiseFormula")),
        ("noiseParameters", "noise", ("noiseFormula",)),
    ):
        texts = rows[key] if key in rows else [""] * len(rows)
        for row, (name, text) in enumerate(zip(rows["observableId"], texts, strict=True)):
            if name not in observables.index:
                continue  # refused where conditions are
            said = " ".join(observables.loc[name, [*columns]])
            holes = {*re.findall(rf"\b{kind}Parameter(\d+)_{re.escape(name)}\b", said)}
            given = [part.strip() for part in text.split(";")] if text.strip() else []
            if holes != {str(1 + i) for i in range(len(given))}:
                word = f"{kind}Parameter{{n}}_{name}"
                why = f"has {len(given)} values, the formulas of {name} read {len(holes)}"
                refuse(files, row, key, text, f"{why} as {word}, from 1 on: correct one of them")
            if odd := [part for part in given if part.lower().lstrip("+-") in INFINITE]:
                refuse(files, row, key, odd[0], "must be finite: correct it")


def check_scales(tables: dict[str, Any], files: str) -> None:
    """Refuse measurements that have no logarithm where an observable is on such a scale."""
    observables = tables["observable"].set_index("observableId")
    if "observableTransformation" not in observables:
        return
    rows = tables["measurement"]
    for row, (name, text) in enumerate(zip(rows["observableId"], rows["measurement"], strict=True)):
        scale = observables["observableTransformation"].get(name, "")
        if scale in LOGS and float(text) <= 0:
            what = f"must be above 0, since {name} is measured on the scale {scale}: leave it out"
            refuse(files, row, "measurement", text, what)


def check_noise(tables: dict[str, Any], files: str) -> None:
    """Refuse standard deviations that are numbers, and not above 0."""
    observables = tables["observable"]
    formulas = dict(zip(observables["observableId"], observables["noiseFormula"], strict=True))
    for row, text in enumerate(formulas.values()):
        if is_below(text):
            refuse("observables", row, "noiseFormula", text, "must be above 0: correct it")
    rows = tables["measurement"]
    if "noiseParameters" not in rows:
        return
    cells = zip(rows["observableId"], rows["noiseParameters"], strict=True)
    for row, (name, text) in enumerate(cells):
        if formulas.get(name) == f"noiseParameter1_{name}" and is_below(text):
            refuse(files, row, "noiseParameters", text, "must be above 0: correct it")


def is_below(text: str) -> bool:
    """Whether a cell is a number that is not above 0."""
    try:
        return not float(text) > 0
    except ValueError:
        return False


def fault(name: str, text: str) -> str:
    """Return what is wrong with a cell; nothing where it is right."""
    if name in IDS:
        return "" if text else "must name something: fill it"
    if name in OPTIONAL and not text:
        return ""
    try:
        value = float(text)
    except ValueError:
        return "must be a number: correct it"
    if name == "time" and not 0 <= value < math.inf:
        return (
            "must be finite and from 0 on, not negative or infinite: give the time by which the "
            "system rests"
        )
    if name == "estimate" and value not in (0, 1):
        return "must be 0 or 1: correct it"
    # NaN says that there is none.
    if name in ("measurement", "nominalValue") and math.isinf(value):
        return "must be finite: correct it, or leave it out"
    return ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that looks most like one, or nothing."""
    low = {one.lower(): one for one in known}
    return next((low[one] for one in get_close_matches(name.lower(), low, 1, ALIKE)), "")


def refuse(file: Any, row: int, name: str, text: Any, why: str) -> None:
    """Raise that a cell is wrong; rows count from 1, below the names of columns."""
    raise ValueError(f"{file}, row {row + 1}: {name} is {str(text)[:60]!r}; it {why}")
