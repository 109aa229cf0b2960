"""Observations and fits, checked against the problem that is to explain them."""

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sciml._labels import as_pandas, from_bare, is_counted, marked, observations_in
from sciml._numbers import as_real, real
from sciml.ode.conditions import Known, given, names_of
from sciml.ode.data.evidence import as_seen, check_same_grid, check_seen
from sciml.ode.methods.solver import Problem, check_problem, solvable
from sciml.ode.observe.counts import check_counts
from sciml.ode.prior import described


def observed_by(proposal: Any, data: Any) -> xr.DataArray:
    """Return observations, of a fit also those that a table or a bare array holds."""
    grid = getattr(proposal, "grid", None)
    return observations_in(data, () if grid is None else grid.dimensions)


def observed_of(problem: Problem, observation: Any, noise: Any) -> np.ndarray:
    """Return the numbers of ONE observation, if names, times and shape are those of the problem."""
    if isinstance(table := as_pandas(observation, "the observation"), pd.DataFrame | pd.Series):
        dims = tuple(map(str, as_seen(problem, noise).dims[1:]))
        observation = from_bare(table, (dims,), "the observation")
        counted = [dim for dim, at in zip(dims, table.axes, strict=True) if is_counted(at)]
        observation = observation.drop_vars(counted, errors="ignore")  # pandas' own numbers
    if not isinstance(observation, xr.DataArray):
        observation = real(observation, "the observation")
        check_observations(problem, observation[None], noise)
        return observation
    if "sample" in observation.dims:
        raise ValueError(
            f"the observation has the dimensions {observation.dims}; it must be of one sample: "
            "choose one, as data.observation[0]"
        )
    observation = as_real(observation, "the observation")
    check_observations(problem, observation.expand_dims("sample"), noise)
    return observation.values


def check_observations(problem: Problem, observed: xr.DataArray | np.ndarray, noise: Any) -> None:
    """Refuse observations (sample, …) that no solution of the problem could be compared with."""
    solvable(problem)
    like = as_seen(problem, noise)
    observed = as_real(observed, "the observations")
    if not isinstance(observed, xr.DataArray):
        dims = like.dims if observed.ndim == like.ndim else AXES[: observed.ndim]
        observed = xr.DataArray(observed, dims=dims)
    if own := getattr(noise, "check_shape", None):  # of a learned likelihood
        own(observed.shape[1:])
    check_same_grid(observed, like, f"the problem {problem.name!r}")
    check_seen(observed.values)
    check_counts(noise, observed.values)
    if own := getattr(noise, "check_observed", None):
        own(observed.values)


def conditions_of(problem: Problem, observed: Any, samples: int) -> Known:
    """Return the conditions that observations carry as coordinates, flat; refuse others."""
    carries = problem.conditions or marked(observed)
    if problem.conditions and not marked(observed) and isinstance(observed, np.ndarray):
        raise TypeError(
            f"the observation is a bare array, and {problem.name!r} has conditions: pass a "
            "DataArray that has them as coordinates, as data.observation[0]"
        )
    found = given(problem, observed if carries else {}, samples)
    if own := getattr(getattr(problem, "noise", None), "check_conditions", None):
        own(found)
    return found


AXES = ("sample", "time", "channel")  # of a bare array that has not those of the problem


def check_problem_of(fit: Any, problem: Any) -> None:
    """Refuse a problem of other parameters, prior or noise than a fit has, where the fit says."""
    check_problem(problem)
    own = fit.grid.parameters
    names = problem.parameter_names
    if own[: len(names)] != names:
        turned = {*own[: len(names)]} == {*names}
        remedy = "both must have one order: write the prior as in the fit's" if turned else ""
        raise ValueError(
            f"the fit estimates {', '.join(own)}, and {problem.name!r} has {', '.join(names)}; "
            f"{remedy or 'pass the problem that the fit was trained on'}"
        )
    trained, known = {*fit.grid.conditions, *fit.grid.series}, {*names_of(problem)}
    if trained != known:
        raise ValueError(
            f"the fit knows the conditions {', '.join(sorted(trained)) or 'none'}, and "
            f"{problem.name!r} has {', '.join(sorted(known)) or 'none'}; pass the problem that the "
            "fit was trained on"
        )
    check_prior_of(fit, problem.prior, repr(problem.name))
    told = json.loads(fit.attrs.get("fit", "{}"))
    noise = getattr(problem, "noise", None)
    if getattr(noise, "learned", False):  # which stands for whatever noise it was learned of
        return
    simulated = json.loads(fit.attrs.get("data") or "null")
    if not told or (not told.get("noise") and simulated is None):
        return
    trained, given = told.get("noise") or simulated.get("noise"), noise and noise.describe()
    if as_told(given) != trained:
        raise ValueError(
            f"the noise of {problem.name!r} is {as_told(given)}, and the fit was trained under "
            f"{trained}; both must be the same: dataclasses.replace(problem, noise=…), or fit again"
        )


def check_prior_of(fit: Any, prior: Any, owner: str) -> None:
    """Refuse another prior than a fit says that it was trained under."""
    told = json.loads(getattr(fit, "attrs", {}).get("fit", "{}"))
    known = json.loads(told.get("prior") or "{}")
    wanted = as_told(described(prior))
    differ = [key for key in wanted if known and known.get(key) != wanted[key]]
    if differ:
        raise ValueError(
            f"the prior of {differ[0]!r} is {wanted[differ[0]]} in {owner}, and the fit "
            f"was trained under {known.get(differ[0])}; both must have one prior: fit again, or "
            "pass the problem of the fit"
        )


def as_told(description: Any) -> Any:
    """Return a description as a file gives it back."""
    return json.loads(json.dumps(description))
