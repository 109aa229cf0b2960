"""An alarm for a test on the simulations of the training, as one seed for both makes them."""

import json
from typing import Any

import numpy as np
import xarray as xr

from sciml.inverse.alarms.unlike import tell_once

FIRST = 3  # assumed: simulations of the training that are looked for


def first_of(theta: np.ndarray) -> list[list[float]]:
    """Return the parameters of the first simulations, unless they are whole numbers, as of counts.

    A smaller set of the same seed begins with the same simulations.
    """
    first = np.asarray(theta[:FIRST], np.float32)
    return [] if (first == np.round(first)).all() else first.tolist()


def tell_seen(fit: Any, data: Any) -> None:
    """Say that simulations have the parameters of those that the net was trained on."""
    first = np.array(json.loads(fit.attrs.get("first", "[]")), np.float32)
    if not isinstance(data, xr.Dataset) or "parameters" not in data or not first.size:
        return
    theta, names = data["parameters"], fit.grid.parameters[: first.shape[1]]
    if theta.dims != ("sample", "parameter") or not {*names} <= {*theta["parameter"].values}:
        return
    given = np.asarray(theta.sel(parameter=[*names]), np.float32)
    if (given == first[:, None]).all(axis=2).any(axis=1).all():
        tell_once(
            fit,
            "among these are simulations that the net was trained on, as one seed for both makes "
            "them: what is measured here says nothing of others; pass another to sciml.simulate",
        )
