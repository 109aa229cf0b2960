"""Cells of the tables of PEtab, checked where file, column and row are known."""

import math
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
IDS = ("parameterId", "conditionId", "observableId", "simulationConditionId")
NEEDED = ("measurement", "time", "estimate")
OPTIONAL = ("nominalValue", "lowerBound", "upperBound")
LOGS = ("log", "log10")
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
                if str(text).lower().lstrip("+-") in ("inf", "infinity"):
                    refuse(file, row, name, text, "must be finite: correct it")
    if kind == "parameter":
        for row, cells in enumerate(table.to_dict("records")):
            scale = cells["parameterScale"] if float(cells["estimate"]) else ""
            for name in OPTIONAL:
                text = str(cells.get(name, ""))
                if scale in LOGS and text and float(text) <= 0:
                    why = f"must be above 0 on the scale {scale}: correct it"
                    refuse(file, row, name, text, why)


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


def refuse(file: Any, row: int, name: str, text: Any, why: str) -> None:
    """Raise that a cell is wrong; rows count from 1, below the names of columns."""
    raise ValueError(f"{file}, row {row + 1}: {name} is {str(text)[:60]!r}; it {why}")
