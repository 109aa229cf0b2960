"""A reference posterior as a labelled data set, with what it takes to make it again."""

import json
from typing import TYPE_CHECKING

import numpy as np

from sciml.ode.data.labels import dimensions
from sciml.ode.static import Static
from sciml.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr


def record(problem, names, draws, observation, noise, method, described: dict) -> "xr.Dataset":
    """Return `posterior (draw, parameter)` and `observation`, labelled.

    Args:
        problem: what was observed.
        names: of the parameters and of the noise's sampled levels.
        draws: (draw, parameter).
        observation: one sample.
        noise: its noise.
        method: the integrator.
        described: what is said of the way the draws were made; becomes attributes.
    """
    import xarray as xr

    observation = np.asarray(observation)
    data = xr.Dataset(
        {
            "posterior": (("draw", "parameter"), np.asarray(draws)),
            "observation": (dimensions(problem, observation[None])[1:], observation),
        },
        coords={"parameter": list(names)},
        attrs={
            "system": problem.name,
            "reference": problem.reference,
            "noise": json.dumps(noise.describe()),
            "integrator": "none" if isinstance(problem, Static) else str(method),
            **described,
            **provenance(),
        },
    )
    if isinstance(problem, Static) or "time" not in data.dims:
        return data
    times = np.asarray(problem.observation.times)
    return data.assign_coords(time=("time", times, {"units": problem.time_unit}))
