"""Studies of wind nets: skill by data set and factor, size, samples, and draws."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import xarray as xr

from sciml.figure import panels
from sciml.figure.wind.wind_scores import draw_wind_scores
from sciml.models import Density, Generative, LocallyScaled, SuperResolution
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.store import results_folder
from sciml.studies.wind.fields import Parts, parts, synthetic
from sciml.studies.wind.runs import WindRun, judged_rows

Runs = Callable[[Scale, Parts], list[WindRun]]
FAST: dict[str, Any] = {"updates": 100, "size": 32, "batch": 8}
NOT_PUBLISHED = (
    "Getter, Bessac, Rudi and Feng (2024), arXiv 2211.16708, refine wind speed by 8 to 32 on "
    "another data set; their tables are not known here."
)


def local(factor: int, channels: int = 32, blocks: int = 4, wind: int = 2) -> LocallyScaled:
    """Return the default net, which sees vectors in units of their local variation."""
    return LocallyScaled(SuperResolution(factor, channels, blocks, wind=wind))


def skill_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return the pooled net at both factors, what it lacks without its parts, and overfitting."""
    if scale == "fast":
        small = local(4, 8, 1)
        return [
            WindRun("vectors", small, **FAST),
            WindRun("vectors, folded", small, folds=True, **FAST),
            WindRun("components", local(4, 8, 1, wind=1), **FAST),
        ]
    updates = {4: 2500, 8: 6000}  # as long as validation fell
    runs = [
        WindRun(name, local(factor), count, folds=folds)
        for factor, count in updates.items()
        for name, folds in (("vectors", False), ("vectors, folded", True))
    ]
    for factor, count in updates.items():
        name = "vectors, folded, mean of four seeds"
        runs.append(WindRun(name, local(factor), count, folds=True, seeds=4))
    for factor, count in updates.items():
        density = LocallyScaled(Density(factor, wind=2))
        runs.append(WindRun("vectors by density, folded", density, count, folds=True))
    for factor in () if of.synthetic else updates:
        alone = SuperResolution(factor, 48, 4)
        runs.append(WindRun("HRRR alone, plain net", alone, 1000, data=("HRRR",)))
    for factor in updates:
        one = local(factor, wind=1)
        runs.append(WindRun("components, folded", one, 1500, folds=True))
    return runs


def size_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return nets of growing width and depth, in equal numbers of updates."""
    del of
    if scale == "fast":
        return [sized(c, b, **FAST) for c, b in ((4, 1), (8, 1), (8, 2))]
    sizes = ((10, 2), (16, 4), (32, 4), (64, 4), (64, 12), (128, 8), (256, 8))
    return [sized(c, b, updates=1000, size=64) for c, b in sizes]


def sized(channels: int, blocks: int, addition: str = "", **more: Any) -> WindRun:
    """Return the training of one size, wide nets by smaller steps.

    calibrated: 128 channels had reached a validation error of 0.0062 after 100 updates of at most
    5e-4, and 0.0072 with 1e-3 or 2e-3.
    """
    rate = 2e-3 * min(1, 32 / channels)
    name = f"{channels} channels, {blocks} block{'s' * (blocks > 1)}{addition}"
    return WindRun(name, local(4, channels, blocks), learning_rate=rate, **more)


def generated(scale: Scale) -> Parts:
    """Return fields of the generator alone, many at full scale."""
    return synthetic(128, times=96) if scale == "full" else synthetic()


def limit_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return nets of three sizes: of real wind trained for longer, of generated wind on less."""
    more: dict[str, Any] = {"size": 64}
    sizes, counts, shares = ((10, 2), (32, 4), (64, 4)), (1000, 4000), (1 / 96, 1 / 12, 1.0)
    if scale == "fast":
        more, sizes, counts, shares = FAST, ((4, 1), (8, 1)), (50, 100), (1 / 12, 1.0)
    if of.synthetic:
        counts = counts[:1]
    else:
        shares = (1.0,)
    return [
        sized(c, b, f", {count} updates", **more | {"updates": count}, share=share, seen=True)
        for share in shares
        for count in counts
        for c, b in sizes
    ]


def sample_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return nets of growing shares of the training data, fresh and pretrained."""
    shares = (0.25, 1.0) if scale == "fast" else (0.1, 0.2, 0.5, 1.0)
    more: dict[str, Any] = FAST if scale == "fast" else {"updates": 2500}
    net = local(4, 8, 1) if scale == "fast" else local(4)
    starts = (False,) if of.synthetic else (False, True)
    return [
        WindRun("pretrained" if start else "fresh", net, share=share, pretrained=start, **more)
        for start in starts
        for share in shares
    ]


def draw_runs(scale: Scale, of: Parts) -> list[WindRun]:
    """Return an estimate, a density and a generative net of one size."""
    del of
    more: dict[str, Any] = FAST if scale == "fast" else {"updates": 2500}
    sizes = (4, 8, 1) if scale == "fast" else (4, 32, 4)
    kinds: dict[str, Any] = {
        "estimate": SuperResolution,
        "density": Density,
        "generative": Generative,
    }
    return [
        WindRun(name, LocallyScaled(kind(*sizes, wind=2)), **more) for name, kind in kinds.items()
    ]


def pooled(scale: Scale) -> Parts:
    """Return the real fields at full scale, a few of the generator at fast scale."""
    return parts() if scale == "full" else synthetic()


def made(
    name: str, title: str, about: str, runs: Runs, fields: Callable[[Scale], Parts] = pooled
) -> Study:
    """Return one study."""

    def run(scale: Scale = "fast", *, out: Any = None, ax: Any = None) -> xr.Dataset:
        check_scale(scale)
        folder = results_folder(out)
        of = fields(scale)
        rows = pd.DataFrame(judged_rows(runs(scale, of), of, folder)).rename_axis("row")
        dataset = xr.Dataset.from_dataframe(rows).assign_attrs(
            title=title,
            scale=scale,
            source=of.source,
            synthetic=str(of.synthetic).lower(),
            **provenance(),
        )
        if ax is not None:
            draw_wind_scores(rows, ax, of.source)
        return dataset

    def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
        return {name: dataset.to_dataframe().assign(synthetic=dataset.attrs["synthetic"])}

    return Study(
        name=name,
        title=title,
        about=about,
        published=NOT_PUBLISHED,
        run=run,
        tables=tables,
        axes=lambda _: panels(1, 2, (11.0, 4.6)),
    )


HONEST = (
    "Components of 10 m wind, averaged over blocks and refined again. Trained on stripes of one "
    "HRRR snapshot, the western columns of one AROME-France analysis and 49 hours of "
    "AROME-MetCoOp in February 2016; judged on other stripes, the eastern columns, and 67 hours of "
    "November 2015. Skill is 1 - MSE / MSE of conservative bicubic interpolation, over all points "
    "and components; 95 % intervals by a bootstrap of blocks of nine hours, or of squares of 64 "
    "points where there is one time. "
)
SIZES = (
    "Fourfold; at full scale from 6,742 to 9,519,904 weights, each in 1000 updates of 16 patches "
    "of 64 × 64 points. The learning rate falls with width. "
)
WIND_SKILL = made(
    "wind_skill",
    "Skill of wind nets on dates and regions that they never saw",
    HONEST + "Folded: averaged over the eight symmetries and both signs.",
    skill_runs,
)
WIND_SIZE = made(
    "wind_size",
    "Skill of wind nets by their size",
    HONEST + SIZES,
    size_runs,
)
WIND_SIZE_GENERATED = made(
    "wind_size_generated",
    "Skill of wind nets by their size, on generated wind",
    "Components of turbulence of the generator, of which there can be as much as is wanted: at "
    "full scale 96 fields train; others, of runs of their own, test. " + SIZES,
    size_runs,
    generated,
)
LIMITS = (
    "Fourfold; nets of 6,742 to 315,104 weights, each judged also on the fields that it learned "
    "from (`seen_skill`): where that is far above the skill on others, more data would help. "
)
WIND_LIMITS = made(
    "wind_limits",
    "What limits larger wind nets",
    HONEST + LIMITS + "Trained for 1000 and for 4000 updates.",
    limit_runs,
)
WIND_LIMITS_GENERATED = made(
    "wind_limits_generated",
    "What limits larger wind nets, on generated wind",
    "Components of turbulence of the generator; at full scale 1, 8 and 96 fields train. " + LIMITS,
    limit_runs,
    generated,
)
WIND_SAMPLES = made(
    "wind_samples",
    "Skill of wind nets by the data they learn from",
    HONEST + "With a growing share of the training data, fresh and after learning from turbulence.",
    sample_runs,
)
WIND_DRAWS = made(
    "wind_draws",
    "Wind nets that estimate, and wind nets that draw",
    HONEST
    + "The estimate has the least error and too little short waves; draws have more of both.",
    draw_runs,
)
