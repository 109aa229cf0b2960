"""A fit in one file: arrays and a JSON description in a plain npz, nothing executable."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.inverse.axes import Grid
from sciml.inverse.inputs import AsTheyAre, Standard
from sciml.inverse.program import structure
from sciml.inverse.scaling import MinMax, Unconstrained
from sciml.models.archive import (
    config,
    described_config,
    description,
    matching,
    tuples,
    write,
)
from sciml.train.recipe import Recipe

FORMAT = "sciml.fit"
SCHEMA = 3
HISTORY = ("loss", "epoch", "validation_loss", "validated_epoch")
SCALINGS = {"MinMax": MinMax, "Unconstrained": Unconstrained}


def save(fit: Any, path: Path | str) -> Path:
    """Write a `Fit` to `path`, aside and then renamed."""
    recipe = asdict(fit.recipe)
    del recipe["standardise"]  # the scaling of the inputs, which is kept, says it
    scaling = {name: value for name, value in asdict(fit.scaling).items() if value}  # rules, if any
    known = fit.grid.conditions or fit.grid.series
    unused = (*(() if known else ("conditions", "series")), *(() if fit.grid.units else ("units",)))
    described = {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": described_config(fit.model),
        "scaling": {"kind": type(fit.scaling).__name__, **scaling},
        "grid": {k: v for k, v in asdict(fit.grid).items() if k not in ("times", *unused)},
        "recipe": recipe,
        "collapsed": fit.collapsed,
        "attrs": fit.attrs,
        "history": fit.history.attrs,
    }
    arrays = {
        "times": fit.grid.times,
        "reference": fit.reference,
        **{f"inputs/{name}": value for name, value in vars(fit.inputs).items()},
        **{f"history/{name}": fit.history[name].values for name in HISTORY},
    }
    return write(path, described, fit.params, arrays)


def read(stored: Any) -> dict[str, Any]:
    """Return the attributes of the `Fit` in an open npz file."""
    described = description(stored, FORMAT, SCHEMA)
    grid = Grid(stored["times"], **tuples(described["grid"]))
    model = config(described["model"])
    abstract = structure(model, grid.inputs, len(grid.parameters))[1]
    scaling, inputs = tuples(described["scaling"]), read_inputs(stored)
    loss, _, validation, validated = (stored[f"history/{name}"] for name in HISTORY)
    return dict(
        model=model,
        params=matching(stored, abstract, model),
        inputs=inputs,
        reference=stored["reference"],
        scaling=SCALINGS[scaling.pop("kind")](**scaling),
        grid=grid,
        recipe=Recipe(**described["recipe"], standardise=isinstance(inputs, Standard)),
        history=history(loss, validated, validation, described["history"]),
        collapsed=tuple(described["collapsed"]),
        attrs=described["attrs"],
    )


def read_inputs(stored: Any) -> AsTheyAre | Standard:
    """Return the scaling of the observations."""
    arrays = [f"inputs/{name}" for name in Standard.__dataclass_fields__]
    if arrays[0] not in stored:
        return AsTheyAre()
    return Standard(*(stored[name] for name in arrays))


def history(loss: Any, validated: Any, validation: Any, seconds: dict[str, float]) -> xr.Dataset:
    """Return the losses by epoch, counted from 1, and the seconds spent."""
    return xr.Dataset(
        {"loss": ("epoch", loss), "validation_loss": ("validated_epoch", validation)},
        coords={"epoch": np.arange(1, len(loss) + 1), "validated_epoch": validated},
        attrs=seconds,
    )
