"""The tables of a PEtab problem (version 1): read as text, checked, nothing executed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pandas as pd

from sciml.ode.sbml import cells as cells_of
from wse._document import check_keys, mapping, read
from wse._files import as_path

MOST_BYTES = 100_000_000  # assumed: of one table
KEYS = (
    *("format_version", "parameter_file", "problems", "extensions"),
    *("sbml_files", "condition_files", "measurement_files", "observable_files"),
    *("visualization_files", "mapping_files"),
)
NEEDED = {
    "parameter": ("parameterId", "parameterScale", "estimate"),
    "condition": ("conditionId",),
    "measurement": ("observableId", "simulationConditionId", "measurement", "time"),
    "observable": ("observableId", "observableFormula", "noiseFormula"),
}


@dataclass(frozen=True)
class Tables:
    """The name of a problem, its SBML file, and its tables: all cells text, empty where missing."""

    name: str
    model: Path
    parameters: pd.DataFrame
    conditions: pd.DataFrame
    measurements: pd.DataFrame
    observables: pd.DataFrame


def tables(path: Path | str) -> Tables:
    """Read the YAML file of a problem and the tables that it names, in its own folder."""
    path = as_path("path", path, "pass problem.yaml")
    said = read(path)
    check_keys(said, KEYS, str(path))
    if not str(said.get("format_version", "")).startswith("1"):
        raise ValueError(
            f"{path} has format_version {said.get('format_version')!r}; version 1 is read: convert "
            "the problem with the petab library"
        )
    if said.get("extensions"):
        raise ValueError(f"{path} uses extensions of PEtab, which are not supported: remove them")
    problems = said.get("problems") or [{}]
    if len(problems) != 1:
        raise ValueError(f"{path} holds {len(problems)} problems; write one file for each")
    one = mapping(problems[0], f"problems of {path}")
    check_keys(one, KEYS, f"problems of {path}")
    models = _files(path, one.get("sbml_files"), "sbml_files")
    if len(models) != 1:
        raise ValueError(f"{path} names {len(models)} models; one SBML file is read")
    frames = {
        kind: _table(_files(path, names, key), kind)
        for kind, names, key in (
            ("parameter", said.get("parameter_file"), "parameter_file"),
            *((kind, one.get(f"{kind}_files"), f"{kind}_files") for kind in (*NEEDED,)[1:]),
        )
    }
    measured = ", ".join(map(str, _files(path, one["measurement_files"], "measurement_files")))
    cells_of.check_scales(frames, measured)
    cells_of.check_noise(frames, measured)
    cells_of.check_overrides(frames, measured)
    kept = (frames[kind] for kind in NEEDED)
    return Tables(path.stem, models[0], *kept)


def number(text: str, owner: str) -> float:
    """Return a cell as a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{owner} is {text[:60]!r}; it must be a number: correct it") from None


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def cells(text: str) -> list[str]:
    """Return the parts of a cell, which semicolons separate."""
    return [part.strip() for part in text.split(";")] if text.strip() else []


def column(table: pd.DataFrame, name: str) -> list[str]:
    """Return a column of text, empty where the table does not have it."""
    return [str(x) for x in table[name]] if name in table else [""] * len(table)


def _files(path: Path, names: Any, key: str) -> list[Path]:
    found = cast("list[Any]", names if isinstance(names, list) else [names] if names else [])
    if not found or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{path} lacks {key}; it must name files: add a line {key}: ...")
    folder = path.resolve().parent
    files = [(folder / name).resolve() for name in cast("list[str]", found)]
    for name, file in zip(found, files, strict=True):
        if not file.is_relative_to(folder) or "://" in name:
            raise ValueError(f"{key} of {path} names {name!r}, outside its folder: copy it there")
        if not file.is_file():
            raise ValueError(f"{key} of {path} names {name!r}, which is no file: check the name")
        if file.stat().st_size > MOST_BYTES:
            raise ValueError(f"{file} has more than {MOST_BYTES} bytes; no table is so large")
    return files


def _table(files: Iterable[Path], kind: str) -> pd.DataFrame:
    parts: list[Any] = []
    for file in files:
        try:
            first = pd.read_csv(file, sep="\t", dtype=str, header=None, nrows=1)
            cells_of.check_columns([str(x).strip() for x in first.iloc[0]], kind, file)
            part = pd.read_csv(file, sep="\t", dtype=str, keep_default_na=False, comment=None)
        except (ValueError, UnicodeDecodeError) as error:
            if str(file) in str(error):
                raise
            raise ValueError(
                f"{file} is no table with tabs between columns: {str(error)[:100]}"
            ) from None
        if not isinstance(part.index, pd.RangeIndex):
            raise ValueError(f"{file} has rows with more cells than names of columns: correct them")
        part = part.rename(columns=str.strip)
        if lacking := [name for name in NEEDED[kind] if name not in part.columns]:
            raise ValueError(f"{file} has no column {lacking[0]!r}: add it")
        part = part.fillna("").apply(lambda column: column.str.strip())
        cells_of.check_cells(part, kind, file)
        parts.append(part)
        cells_of.check_ids(parts, kind, file)
    table = pd.concat(parts, ignore_index=True).fillna("")
    if not len(table):
        raise ValueError(f"the table of {kind}s is empty; at least one row must be there")
    return table
