"""Studies that are a list of runs: trained, judged, tabled and drawn alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd
import xarray as xr

from sciml._arguments import check_whole
from sciml.figure import draw_runs, panels
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.inverse.recovery_runs import LABELS, by_parameter, gathered, summary
from sciml.studies.store import results_folder

SEEDS = 3


@dataclass(frozen=True)
class Cases:
    """Which runs a study makes, and how they are tabled and drawn.

    Runs are as `judged` takes them; `labels` tell them apart but for seeds;
    `each_parameter` gives each its own row; `draw(table, ax)` draws. Of
    `seeds` repetitions, the nets of `more` have so many times as many, being cheap.
    """

    name: str
    title: str
    about: str
    published: str
    runs: Callable[[str], tuple[Any, ...]]
    each_parameter: bool = False
    labels: Sequence[str] = LABELS
    draw: Callable[[Any, Any], Any] = draw_runs
    seeds: int = SEEDS
    more: Mapping[str, int] = field(default_factory=dict)

    def repeated(self, scale: str, seeds: int | None) -> list[Any]:
        """Return every run with each of its seeds."""
        count = self.seeds if seeds is None else seeds
        check_whole(1, seeds=count)
        return [
            replace(run, seed=seed)
            for run in self.runs(scale)
            for seed in range(count * self.more.get(getattr(run, "net", ""), 1))
        ]

    def table(self, dataset: xr.Dataset) -> pd.DataFrame:
        """Return means over seeds, with intervals."""
        return summary(dataset, self.each_parameter, self.labels)


def run_cases(
    cases: Cases, scale: Scale = "fast", *, out=None, ax=None, seeds: int | None = None
) -> xr.Dataset:
    """Return the scores of all runs of a study, of `seeds` repetitions each, or its own number.

    Each repetition has its own data, weights and shuffles. Runs are kept in the folder `out`, from
    which an interrupted study goes on, and drawn on `ax`, if there is one.

    >>> from sciml import studies
    >>> found = studies.width(out="results")  # doctest: +SKIP
    """
    check_scale(scale)
    runs = cases.repeated(scale, seeds)
    dataset = gathered(runs, results_folder(out)).assign_attrs(
        title=cases.title, scale=scale, seeds=1 + max(run.seed for run in runs), **provenance()
    )
    if ax is not None:
        cases.draw(cases.table(dataset), ax)
    return dataset


def tables(cases: Cases, dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return means with intervals, and the scores of every run by regime and parameter."""
    return {
        cases.name: cases.table(dataset),
        f"{cases.name}_runs": by_parameter(dataset, cases.labels),
    }


def axes(cases: Cases, scale: Scale):
    """Return a figure as tall as it has rows."""
    rows = len(cases.runs(scale)) * (4 if cases.each_parameter else 1)
    return panels(1, 2, (7.0, 1.2 + 0.28 * rows))


def study_of(cases: Cases) -> Study:
    """Return the study that runs these cases."""
    run = partial(run_cases, cases)
    run.__doc__ = f"{cases.title}.\n\n{run_cases.__doc__}"  # else its help is that of `partial`
    return Study(
        name=cases.name,
        title=cases.title,
        about=cases.about,
        published=cases.published,
        run=run,
        tables=partial(tables, cases),
        axes=partial(axes, cases),
    )
