"""A fit in one file: arrays and a JSON description in a plain npz, nothing executable."""

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from sciml._files import write_aside
from sciml.estimator.result import Fit, Grid, structure
from sciml.estimator.scaling import MinMax
from sciml.models import INVERSE_MAPS
from sciml.train.recipe import Recipe

FORMAT = "sciml.fit"
SCHEMA = 1


class NotAFitError(ValueError):
    """A file that `load` cannot use."""


def save(fit: Fit, path: Path | str) -> Path:
    """Write a fit to `path`, aside and then renamed.

    Raises:
        NotADirectoryError, PermissionError: the folder cannot be written.
    """
    path = Path(path)
    described = {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": {"kind": type(fit.model).__name__, **asdict(fit.model)},
        "scaling": asdict(fit.scaling),
        "time_unit": fit.grid.time_unit,
        "parameters": fit.grid.parameters,
        "recipe": asdict(fit.recipe),
        "collapsed": fit.collapsed,
        "attrs": fit.attrs,
        "history": fit.history.attrs,
    }
    arrays = {
        "description": np.array(json.dumps(described)),
        "times": fit.grid.times,
        **{f"history/{name}": fit.history[name].values for name in HISTORY},
        **{f"params/{name}": np.asarray(leaf) for name, leaf in named(fit.params)},
    }
    with write_aside(path) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path


HISTORY = ("loss", "epoch", "validation_loss", "validated_epoch")


def load(path: Path | str) -> Fit:
    """Read a fit that `Fit.save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        NotAFitError: the file is damaged, foreign, of a newer schema, or its weights do not fit
            its configuration.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; pass the path that Fit.save returned")
    if not zipfile.is_zipfile(path):
        raise NotAFitError(f"{path} is damaged or foreign; it must be a file that Fit.save wrote")
    try:
        with np.load(path, allow_pickle=False) as stored:
            return read(stored)
    except NotAFitError as error:
        raise NotAFitError(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise NotAFitError(
            f"{path} cannot be read as a fit ({type(error).__name__}: {error}); "
            "it must be a file that Fit.save wrote, whole"
        ) from error


def read(stored: Any) -> Fit:
    """Return the fit of an open npz file."""
    described = description(stored)
    grid = Grid(stored["times"], described["time_unit"], tuple(described["parameters"]))
    kind = described["model"].pop("kind")
    if kind not in INVERSE_MAPS:
        raise NotAFitError(f"its model is {kind!r}; known are {sorted(INVERSE_MAPS)}")
    model = INVERSE_MAPS[kind](**described["model"])
    return Fit(
        model=model,
        params=read_params(stored, model, grid),
        scaling=MinMax(*(tuple(described["scaling"][end]) for end in ("low", "high"))),
        grid=grid,
        recipe=Recipe(**described["recipe"]),
        history=read_history(stored, described["history"]),
        collapsed=tuple(described["collapsed"]),
        attrs=described["attrs"],
    )


def description(stored: Any) -> dict[str, Any]:
    """Return the JSON description, if it is one of ours."""
    if "description" not in stored:
        raise NotAFitError("it holds no description; it must be a file that Fit.save wrote")
    described = json.loads(str(stored["description"]))
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise NotAFitError("its description is not that of a fit")
    if described["schema"] > SCHEMA:
        raise NotAFitError(
            f"its schema is {described['schema']}; this version reads up to {SCHEMA}: "
            "update sciml-wse"
        )
    return described


def read_params(stored: Any, model, grid: Grid):
    """Return the weights, in the structure that the configuration demands."""
    _, abstract = structure(model, len(grid.times), len(grid.parameters))
    leaves = []
    for name, expected in named(abstract):
        found = stored[f"params/{name}"]
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise NotAFitError(
                f"{name} is {found.dtype}{list(found.shape)}; {model} needs "
                f"{expected.dtype}{list(expected.shape)}"
            )
        leaves.append(jax.numpy.asarray(found))
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def read_history(stored: Any, attrs: dict[str, float]):
    """Return the history as `fit` made it."""
    import xarray as xr

    loss, epoch, validation, validated = (stored[f"history/{name}"] for name in HISTORY)
    return xr.Dataset(
        {"loss": ("epoch", loss), "validation_loss": ("validated_epoch", validation)},
        coords={"epoch": epoch, "validated_epoch": validated},
        attrs=attrs,
    )


def named(params: nnx.State) -> list[tuple[str, Any]]:
    """Return the leaves of a state with their paths, as in 'layers.0.kernel'."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(params)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in pairs]
