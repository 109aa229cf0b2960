"""Observations, checked against the problem whose likelihood is to explain them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sciml.ode.data.evidence import as_seen, check_same_grid, check_seen
from sciml.ode.methods.solver import Problem

if TYPE_CHECKING:
    import xarray as xr


def observed_of(problem: Problem, observation: Any, noise: Any) -> np.ndarray:
    """Return the numbers of ONE observation, if they are such as the problem gives.

    It is (time,), (time, channel) or (feature,); of a DataArray the names and times count too.
    """
    import xarray as xr

    if not isinstance(observation, xr.DataArray):
        observation = np.asarray(observation)
        check_observations(problem, observation[None], noise)
        return observation
    if "sample" in observation.dims:
        raise ValueError(
            f"the observation has the dimensions {observation.dims}; it must be of one sample: "
            "choose one, as data.observation[0]"
        )
    check_observations(problem, observation.expand_dims("sample"), noise)
    return observation.values


def check_observations(problem: Problem, observed: "xr.DataArray | np.ndarray", noise: Any) -> None:
    """Refuse observations (sample, …) that no solution of the problem could be compared with."""
    import xarray as xr

    like = as_seen(problem, noise)
    if not isinstance(observed, xr.DataArray):
        dims = like.dims if observed.ndim == like.ndim else AXES[: observed.ndim]
        observed = xr.DataArray(observed, dims=dims)
    check_same_grid(observed, like, f"the problem {problem.name!r}")
    check_seen(observed.values)


AXES = ("sample", "time", "channel")  # of a bare array that has not those of the problem
