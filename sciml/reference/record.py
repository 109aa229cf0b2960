"""A reference posterior as a labelled data set, with what it takes to make it again."""

import json
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr

from sciml._labels import variable
from sciml.ode.conditions import names_of
from sciml.ode.data.labels import dimensions
from sciml.ode.methods.solver import Method, Problem, chosen_method, solvable
from sciml.ode.static import Static
from sciml.provenance import provenance
from sciml.reference.observed import observed_of
from sciml.reference.target import target


def drawn(
    problem: Problem, observation: Any, noise: Any, method: Method | None, seed: int, sample: Any
) -> xr.Dataset:
    """Return `posterior (draw, parameter)` and `observation`, labelled.

    `sample(target, key)` gives unconstrained draws (…, param), attributes and more variables.
    """
    problem = solvable(problem)
    if isinstance(observation, xr.Dataset):
        known = {n: observation[n] for n in names_of(problem) if n in observation}
        observation = variable(observation, "observation", ()).assign_coords(known)
    noise = noise or problem.noise
    method = precise(problem, method)
    with jax.enable_x64(method.dtype == "float64"):
        posterior = target(problem, observation, noise, method)
        z, described, more = sample(posterior, jax.random.key(seed))
        draws = np.asarray(jax.vmap(posterior.physical)(z.reshape(-1, z.shape[-1])))
    given = {n: observation[n] for n in names_of(problem)}
    observation = observed_of(problem, observation, noise)
    data = xr.Dataset(
        {
            "posterior": (("draw", "parameter"), draws),
            "observation": (dimensions(problem, observation[None])[1:], observation),
            **more,
        },
        coords={"parameter": list(posterior.names), **given},
        attrs={
            "system": problem.name,
            "reference": problem.reference,
            "noise": json.dumps(noise.describe()),
            "integrator": "none" if isinstance(problem, Static) else str(method),
            "seed": seed,
            **described,
            **provenance(),
        },
    )
    if isinstance(problem, Static) or "time" not in data.dims:
        return data
    times = np.asarray(problem.observation.times)
    return data.assign_coords(time=("time", times, {"units": problem.time_unit}))


def precise(problem: Problem, method: Method | None) -> Method:
    """Return the method, or the problem's own in float64."""
    return double(chosen_method(problem)) if method is None else method


def double(method: Method) -> Method:
    """Return the same method in float64."""
    return replace(method, dtype="float64")
