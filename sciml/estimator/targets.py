"""What a net is to learn of a data set: its parameters, and the levels of its noise if so told."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import xarray as xr

Targets = tuple[Float[np.ndarray, "sample target"], tuple[str, ...]]


def targets_of(data: "xr.Dataset", *, levels: bool) -> Targets:
    """Return the targets of the samples, and their names.

    Args:
        data: with `parameters`, checked.
        levels: whether those of a noise with `estimate=True`, with which the set was simulated,
            follow the parameters, as `noise_sd`.
    """
    values = np.asarray(data["parameters"].values, np.float32)
    names = tuple(map(str, data["parameter"].values))
    if not (levels and "levels" in data and data["levels"].attrs.get("estimated", 0)):
        return values, names
    drawn = np.asarray(data["levels"].values, np.float32)
    added = (f"noise_{name}" for name in data["level"].values)
    return np.concatenate([values, drawn], axis=1), (*names, *added)
