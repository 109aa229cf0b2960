"""A reference posterior as a labelled data set, with what it takes to make it again."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

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
    axes = ("feature",) if is_vector(problem, observation) else ("time", "channel")
    data = xr.Dataset(
        {
            "posterior": (("draw", "parameter"), np.asarray(draws)),
            "observation": (axes[: observation.ndim], observation),
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


def is_vector(problem: Any, observation: np.ndarray) -> bool:
    """Tell whether one observation is a vector of features, not a series."""
    return isinstance(problem, Static) or len(observation) != len(problem.observation.times)
