"""A reference posterior as a labelled data set, with what it takes to make it again."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from sciml._labels import variable
from sciml.ode.conditions import names_of
from sciml.ode.data.identity import identity
from sciml.ode.data.kept import folder_of
from sciml.ode.data.labels import dimensions
from sciml.ode.methods.solver import Method, Problem, chosen_method, solvable
from sciml.ode.observe.sentinels import warn_of_sentinels
from sciml.ode.static import Static
from sciml.provenance import provenance
from sciml.reference.observed import conditions_of, observed_of
from sciml.reference.target import target
from sciml.train.checkpoint import Store, digest

DIGITS = 6  # of likelihoods at the first draws, which tell one function from another
SHOWN = 8  # of these draws
Keeps = Callable[..., Store]


def drawn(
    problem: Problem,
    observation: Any,
    noise: Any,
    method: Method | None,
    kept: tuple[int, Any],
    sample: Any,
) -> xr.Dataset:
    """Return `posterior (draw, parameter)` and `observation`, labelled.

    `kept` are the seed and the folder where work is kept. `sample(target, key, keeps)` gives
    unconstrained draws (…, param), attributes and more variables.
    """
    seed, folder = kept
    problem = solvable(problem)
    if isinstance(observation, xr.Dataset):
        known = {n: observation[n] for n in names_of(problem) if n in observation}
        observation = variable(observation, "observation", ()).assign_coords(known)
    noise = noise or problem.noise
    method = precise(problem, method)
    with jax.enable_x64(method.dtype == "float64"):
        posterior = target(problem, observation, noise, method)
        seen = observed_of(problem, observation, noise)
        warn_of_sentinels(seen, "the observation", each=seen.ndim == 2)
        told = {"seed": seed, "noise": noise, "method": method}
        stores = keeps(problem, observation, told, folder)
        z, described, more = sample(posterior, jax.random.key(seed), stores)
        draws = np.asarray(jax.vmap(posterior.physical)(z.reshape(-1, z.shape[-1])))
    given = {n: observation[n] for n in names_of(problem)}
    data = xr.Dataset(
        {
            "posterior": (("draw", "parameter"), draws),
            "observation": (dimensions(problem, seen[None])[1:], seen),
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


def keeps(
    problem: Problem, observation: Any, described: dict[str, Any], folder: Path | str | None
) -> Keeps:
    """Return (name, more) ↦ the file of a run in a folder, which another run's is refused by.

    `described` are seed, noise and method, as they are told; `more` what else numbers depend on.
    """
    place = folder_of(folder)
    if place is None:
        return lambda *_, **__: Store()
    method: Method = described["method"]
    told = {**described, "noise": described["noise"].describe(), "method": method.describe()}
    own = {
        **identity(problem, told, method.dtype),
        "observation": digest(
            np.asarray(observed_of(problem, observation, described["noise"]), float)
        ),
        "known": digest(conditions_of(problem, observation, 1)),
    }
    return partial(store_in, place, own)


def store_in(folder: Path, own: dict[str, Any], name: str, **more: Any) -> Store:
    """Return the file of this name in a folder."""
    return Store(folder / f"{name}.checkpoint", own | more, refuses="name another folder=")


def shown(likelihood: Any) -> list[str]:
    """Return likelihoods as they tell a problem, whose functions cannot be told otherwise."""
    return [f"{value:.{DIGITS}g}" for value in np.asarray(likelihood)[:SHOWN]]
