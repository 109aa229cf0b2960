"""A trained net for wind in one file: arrays and a JSON description in a plain npz."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax

from sciml.downscale.objective import skeleton
from sciml.models import REFINEMENTS
from sciml.models.archive import (
    config,
    described_config,
    description,
    matching,
    tuples,
    write,
)
from sciml.train.loop import Trained
from sciml.wind.prepare.channels import Normaliser
from sciml.wind.prepare.matching import Correction

FORMAT = "sciml.downscaling"
SCHEMA = 1
HISTORY = ("loss", "validated", "validation")
SECONDS = ("compile_s", "train_s", "overhead_s")


def save(net: Any, path: Path | str) -> Path:
    """Write a `Downscaling` to `path`, aside and then renamed."""
    if net.others:
        raise ValueError(
            f"{path} would hold one of {len(net.members)} averaged nets; save each of them, and "
            "average what load_downscaling reads"
        )
    described = {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": described_config(net.model),
        "normaliser": asdict(net.normaliser),
        "seconds": {name: getattr(net.trained, name) for name in SECONDS},
        "folds": net.folds,
        "attrs": net.attrs,
    }
    if net.correction is not None:
        described["correction"] = asdict(net.correction)
    arrays = {f"history/{name}": getattr(net.trained, name) for name in HISTORY}
    return write(path, described, net.trained.params, arrays)


def read(stored: Any) -> tuple[Any, ...]:
    """Return the attributes of the `Downscaling` in an open npz file, in their order."""
    described = description(stored, FORMAT, SCHEMA)
    model = config(described["model"], REFINEMENTS)
    trained = Trained(
        params=matching(stored, skeleton(model)[1], model),
        **{name: stored[f"history/{name}"] for name in HISTORY},
        **described["seconds"],
    )
    normaliser = Normaliser(**tuples(described["normaliser"]))
    jax.block_until_ready(trained.params)
    correction = described.get("correction")
    correction = None if correction is None else Correction(**tuples(correction))
    return model, normaliser, trained, described["attrs"], described["folds"], (), correction
