"""A trained net for wind in one file: arrays and a JSON description in a plain npz."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from flax import nnx

from sciml.estimator.archive import (
    config,
    described_config,
    description,
    matching,
    reading,
    tuples,
    write,
)
from sciml.estimator.downscaled import Downscaling
from sciml.models import REFINEMENTS
from sciml.train.loop import Trained
from sciml.wind.channels import Normaliser

FORMAT = "sciml.downscaling"
SCHEMA = 1
HISTORY = ("loss", "validated", "validation")
SECONDS = ("compile_s", "train_s", "overhead_s")


def save(net: Downscaling, path: Path | str) -> Path:
    """Write a net to `path`, aside and then renamed.

    Raises:
        ValueError: it is an average of several nets.
        NotADirectoryError, PermissionError: the folder cannot be written.
    """
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
    arrays = {f"history/{name}": getattr(net.trained, name) for name in HISTORY}
    return write(path, described, net.trained.params, arrays)


def load_downscaling(path: Path | str) -> Downscaling:
    """Read a net that `Downscaling.save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        NotAFitError: the file is damaged, foreign, of another schema, or its weights do not fit
            its configuration.
    """
    return reading(path, read, "Downscaling.save")


def read(stored: Any) -> Downscaling:
    """Return the net of an open npz file."""
    described = description(stored, FORMAT, SCHEMA)
    model = config(described["model"], REFINEMENTS)
    abstract = nnx.state(nnx.eval_shape(lambda: model.build(nnx.Rngs(0))), nnx.Param)
    trained = Trained(
        params=matching(stored, abstract, model),
        **{name: stored[f"history/{name}"] for name in HISTORY},
        **described["seconds"],
    )
    normaliser = Normaliser(**tuples(described["normaliser"]))
    jax.block_until_ready(trained.params)
    return Downscaling(model, normaliser, trained, described["attrs"], described["folds"])
