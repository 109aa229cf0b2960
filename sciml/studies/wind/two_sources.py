"""A net that learns from a coarse model's own wind: one weather by two models, nothing averaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sciml.diagnose.wind.errors import rmse
from sciml.downscale.fit import fit_downscaling
from sciml.downscale.pool import Patches
from sciml.models import SuperResolution
from sciml.models.archive import described_config
from sciml.provenance import provenance
from sciml.studies.description import Scale, Study, check_scale
from sciml.studies.store import kept, results_folder
from sciml.train.recipe import Recipe

FACTOR = 4
# Points along a side, snapshots of training, validation and test, patches, and seeds.
SIZES: dict[Scale, dict[str, Any]] = {
    "fast": {"n": 64, "counts": (4, 2, 2), "net": (8, 1), "patches": (32, 32), "seeds": 1},
    "full": {"n": 128, "counts": (48, 8, 8), "net": (32, 4), "patches": (64, 960), "seeds": 3},
}
EPOCHS = {"fast": 2, "full": 20}


def two_sources(scale: Scale = "fast", *, out: Any = None, ax: Any = None) -> xr.Dataset:
    """Return the RMSE of interpolations of a coarse model's wind and of nets of pairs, by seed.

    Weather, weights and patches of each seed are its own.

    Args:
        scale: "fast" (seconds, a net that is far too small) or "full" (three seeds).
        out: the folder in which nets are kept.
        ax: not used; there is no drawing.

    Raises:
        ValueError: another scale.
    """
    del ax
    check_scale(scale)
    folder = results_folder(out)
    rows = [row for seed in range(SIZES[scale]["seeds"]) for row in judged(scale, seed, folder)]
    dataset = xr.Dataset.from_dataframe(pd.DataFrame(rows).rename_axis("row"))
    return dataset.assign_attrs(
        title=STUDY.title, scale=scale, synthetic="true", source="SYNTHETIC: two models of one "
        "surface quasi-geostrophic turbulence, nominal units", **provenance(),
    )  # fmt: skip


def judged(scale: Scale, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each scheme of one seed."""
    from sciml import wind

    size = SIZES[scale]
    channels, blocks = size["net"]
    model = SuperResolution(FACTOR, channels, blocks, conservative=False, wind=2)
    identity = {
        "run": f"two-sources-{scale}",
        "model": described_config(model),
        "seed": seed,
        **size,
    }

    def make(_: Path) -> list[dict[str, Any]]:
        made = [wind.generate_two(3 * seed + i, count, size["n"], FACTOR)
                for i, count in enumerate(size["counts"])]  # fmt: skip
        pairs = [wind.matched(two["coarse"], two["fine"], FACTOR) for two in made]
        correction = wind.fit_correction(pairs[0])
        train, held, test = (one.corrected_by(correction) for one in pairs)
        side, count = size["patches"]
        net = fit_downscaling(
            model, [train], [held], recipe=Recipe(16, 2e-3, weight_decay=1e-4),
            epochs=EPOCHS[scale], patches=Patches(side, count), seed=seed,
        )  # fmt: skip
        coarse, truth = test.coarse.values, test.fine.values
        found = {
            "bicubic": wind.bicubic(coarse, FACTOR),
            "bicubic, corrected": wind.bicubic(test.shown(), FACTOR),
            "conservative bicubic": wind.conservative_bicubic(coarse, FACTOR),
            "net of pairs": net.refine(coarse),
            "net of pairs, folded": net.folded().refine(coarse),
        }
        errors = {name: rmse(np.asarray(fields), truth) for name, fields in found.items()}
        return [
            {
                "scheme": name,
                "seed": seed,
                "rmse_m_s": error,
                "below_bicubic": 1 - error / errors["bicubic"],
                "train_s": net.trained.train_s,
            }
            for name, error in errors.items()
        ]

    return kept(folder, identity, ".json", make)


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Return the rows."""
    return {"two_sources": dataset.to_dataframe().assign(synthetic="true")}


STUDY = Study(
    name="two_sources",
    title="A net that learns from a coarse model's own wind",
    about=(
        "One generated weather by a fine model and by a coarse one, which starts from the large "
        "scales of the fine one and forecasts; nothing is averaged. A net learns to make the fine "
        "wind of the coarse model's; bicubic interpolation of that coarse wind is the baseline. "
        "At full scale three seeds, each with a weather of its own, 48 snapshots of 128 x 128."
    ),
    published="A public study of shallow water runs one model at two resolutions likewise.",
    run=two_sources,
    tables=tables,
)
