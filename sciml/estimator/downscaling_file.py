"""A trained net for wind in one file: arrays and a JSON description in a plain npz."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from sciml._files import write_aside
from sciml.estimator.downscaled import Downscaling
from sciml.estimator.storage import (
    config,
    described_config,
    description,
    matching,
    named,
    reading,
    tuples,
)
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
        NotADirectoryError, PermissionError: the folder cannot be written.
    """
    path = Path(path)
    described = {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": described_config(net.model),
        "normaliser": asdict(net.normaliser),
        "seconds": {name: getattr(net.trained, name) for name in SECONDS},
        "folds": net.folds,
        "attrs": net.attrs,
    }
    arrays = {
        "description": np.array(json.dumps(described)),
        **{f"history/{name}": getattr(net.trained, name) for name in HISTORY},
        **{f"params/{name}": np.asarray(leaf) for name, leaf in named(net.trained.params)},
    }
    with write_aside(path) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path


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
