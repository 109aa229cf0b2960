"""A fit in one file: arrays and a JSON description in a plain npz, nothing executable."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sciml.estimator.archive import (
    config,
    described_config,
    description,
    matching,
    reading,
    tuples,
    write,
)
from sciml.estimator.grid import Grid
from sciml.estimator.inputs import AsTheyAre, Standard
from sciml.estimator.program import structure
from sciml.estimator.result import Fit
from sciml.estimator.scaling import MinMax, Unconstrained
from sciml.train.recipe import Recipe

FORMAT = "sciml.fit"
SCHEMA = 3


def save(fit: Fit, path: Path | str) -> Path:
    """Write a fit to `path`, aside and then renamed.

    Raises:
        NotADirectoryError, PermissionError: the folder cannot be written.
    """
    described = {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": described_config(fit.model),
        "scaling": {"kind": type(fit.scaling).__name__, **asdict(fit.scaling)},
        "grid": {k: v for k, v in asdict(fit.grid).items() if k != "times"},
        "recipe": asdict(fit.recipe),
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


HISTORY = ("loss", "epoch", "validation_loss", "validated_epoch")


def load(path: Path | str) -> Fit:
    """Read a fit that `Fit.save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        NotAFitError: the file is damaged, foreign, of a newer schema, or its weights do not fit
            its configuration.
    """
    return reading(path, read, "Fit.save")


def read(stored: Any) -> Fit:
    """Return the fit of an open npz file."""
    described = description(stored, FORMAT, SCHEMA)
    grid = Grid(stored["times"], **tuples(described["grid"]))
    model = config(described["model"])
    scaling = tuples(described["scaling"])
    return Fit(
        model=model,
        params=read_params(stored, model, grid),
        inputs=read_inputs(stored),
        reference=stored["reference"],
        scaling=SCALINGS[scaling.pop("kind")](**scaling),
        grid=grid,
        recipe=Recipe(**described["recipe"]),
        history=read_history(stored, described["history"]),
        collapsed=tuple(described["collapsed"]),
        attrs=described["attrs"],
    )


SCALINGS = {"MinMax": MinMax, "Unconstrained": Unconstrained}


def read_inputs(stored: Any) -> AsTheyAre | Standard:
    """Return the scaling of the observations."""
    arrays = [f"inputs/{name}" for name in Standard.__dataclass_fields__]
    if arrays[0] not in stored:
        return AsTheyAre()
    return Standard(*(stored[name] for name in arrays))


def read_params(stored: Any, model, grid: Grid):
    """Return the weights, in the structure that the configuration demands."""
    return matching(stored, structure(model, grid.inputs, len(grid.parameters))[1], model)


def read_history(stored: Any, attrs: dict[str, float]):
    """Return the history as `fit` made it."""
    import xarray as xr

    loss, epoch, validation, validated = (stored[f"history/{name}"] for name in HISTORY)
    return xr.Dataset(
        {"loss": ("epoch", loss), "validation_loss": ("validated_epoch", validation)},
        coords={"epoch": epoch, "validated_epoch": validated},
        attrs=attrs,
    )
