"""Run studies one after the other, and leave tables, figures and one page."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from sciml.figure import styled
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.page import write_page
from sciml.studies.store import results_folder, write_dataset
from wse._files import write_aside

log = logging.getLogger(__name__)


def reproduce(studies: Sequence[Study], scale: Scale = "fast", *, out: Path | str) -> Path:
    """Run `studies`; write NAME.nc, TABLE.csv, NAME.png and NAME.svg each, and index.html.

    The page, whose path is returned, is written anew after every study from what the folder holds.
    """
    check_scale(scale)
    folder = results_folder(out)
    page = folder / "index.html"
    for study in studies:
        log.info("%s, scale %s", study.title, scale)
        began = time.monotonic()
        figure, axes = study.axes(scale) if study.axes else (None, None)
        with styled():
            dataset = study.run(scale, out=folder, ax=axes)
        dataset = dataset.assign_attrs(wall_s=round(time.monotonic() - began, 1))
        write_study(study, dataset, folder)
        if figure is not None:
            write_figure(figure, folder / study.name)
        page = write_page(folder)
    return page


def write_study(study: Study, dataset: xr.Dataset, folder: Path) -> None:
    """Write the data set and its tables."""
    write_dataset(dataset, folder / f"{study.name}.nc")
    for name, table in study.tables(dataset).items():
        with write_aside(folder / f"{name}.csv") as aside:
            table.to_csv(aside, index=False, float_format="%.6g")


def write_figure(figure, path: Path) -> None:
    """Write a figure as PNG, for looking at, and SVG, for printing."""
    for suffix, metadata in ((".png", None), (".svg", {"Date": None})):
        with styled(), write_aside(path.with_suffix(suffix)) as aside:
            figure.savefig(aside, metadata=metadata)
