"""Levels of the noise that are given, in place of draws."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sciml._labels import as_pandas, labelled, labels_of, same_rows, truths, variable
from sciml._numbers import real, short
from sciml.ode import prior
from sciml.ode.observe.noise import Noise


def chosen_levels(
    levels: Any, noise: Noise | None, samples: int, parameters: Any = None
) -> dict[str, Any]:
    """Return given levels as name → (sample,), checked against those that the noise samples.

    They are put in the order of the samples of `parameters`, where both say which these are.
    """
    if levels is None:
        return {}
    named, sampled = by_level(levels), tuple(noise.prior) if noise else ()
    if strange := [name for name in named if name not in sampled]:
        raise ValueError(
            f"levels name {', '.join(strange)}; the noise samples "
            f"{', '.join(sampled) or 'none'}: a level that is a distribution can be given"
        )
    like = None if parameters is None else truths(parameters)
    found = {name: one_each(f"the level {name}", v, samples, like) for name, v in named.items()}
    for name, value in found.items():
        low, high = prior.bounds(noise.prior[name]) if noise else (0.0, 0.0)
        if not prior.within(value, low, high).all():
            raise ValueError(
                f"the level {name} reaches from {value.min()} to {value.max()}; it must lie in "
                f"[{low}, {high}], where its prior is"
            )
    return found


def by_level(levels: Any) -> dict[str, Any]:
    """Return levels by name, from what says the names."""
    levels = as_pandas(levels, "levels")
    if isinstance(levels, xr.Dataset):
        levels = variable(levels, "levels", ("sample", "level"))
    if isinstance(levels, xr.DataArray) and (names := labels_of(levels, "level")):
        return {name: levels[{"level": i}] for i, name in enumerate(names)}
    if isinstance(levels, Mapping | pd.DataFrame):
        return {str(name): values for name, values in levels.items()}
    raise TypeError(
        f"levels is {short(levels)}, which names none: pass a dict, as {{'sd': 0.1}}, a table, or "
        "an array (sample, level) with names along level"
    )


def one_each(what: str, values: Any, samples: int, like: Any) -> np.ndarray:
    """Return a number of each sample, in the order of those of `like`."""
    found = real(same_rows(labelled(values, ("sample",)), like, what), what)
    if found.shape not in ((), (1,), (samples,)):
        raise ValueError(
            f"{what} has shape {found.shape}; it must be one number, or one of each of the "
            f"{samples} samples"
        )
    return np.broadcast_to(found, (samples,))
