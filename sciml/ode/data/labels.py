"""The labelled data set of a simulation: its schema in one place."""

import json
import logging
from typing import Any

import numpy as np
import xarray as xr

from sciml.ode import conditions, prior
from sciml.ode.methods.accuracy import STIFF
from sciml.ode.methods.solver import Solvable, is_series
from sciml.ode.static import Static
from sciml.ode.system import System
from sciml.provenance import provenance

log = logging.getLogger(__name__)


def labelled(problem: Solvable, rows, clean, measured, settings: dict[str, Any]) -> xr.Dataset:
    """Return the data set of rows (parameters, then conditions), failed samples masked and counted.

    A sample is valid where `clean`, the noise-free observations, are finite. `measured` holds what
    the noise made of them, the levels it drew, and the noise.
    """
    (seen, levels, noise), name = measured, problem.observed
    theta, given = np.split(rows, [len(problem.parameter_names)], axis=1)
    valid = np.isfinite(clean).reshape(len(clean), -1).all(axis=1)
    mask = valid.reshape(-1, *[1] * (seen.ndim - 1))
    variables = {
        "observation": (
            dimensions(problem, seen),
            np.where(mask, seen, np.asarray(np.nan, seen.dtype)),
            {"long_name": name if isinstance(name, str) else ", ".join(name)},
        ),
        "parameters": (("sample", "parameter"), theta),
        "valid": ("sample", valid),
    }
    coordinates: dict[str, Any] = {"parameter": list(problem.parameter_names)}
    if names := list(levels):
        columns = [np.asarray(levels[name]) for name in names]
        estimated = {"estimated": int(noise.estimate)}  # whether a fit has them as targets
        variables["levels"] = (("sample", "level"), np.stack(columns, axis=1), estimated)
        coordinates["level"] = names
    return xr.Dataset(
        variables,
        coords=coordinates | axes(problem, seen) | conditions.coordinates(problem, given),
        attrs=attributes(problem, noise, settings) | {"failures": int((~valid).sum())},
    )


def check_some_valid(problem: Solvable, valid: np.ndarray, settings: dict[str, Any]) -> None:
    """Warn of failed samples; refuse a simulation of which nothing is left."""
    failures = int((~valid).sum())
    steps = f"pass method={STIFF}, with more max_steps if those fail too"
    remedy = steps if isinstance(problem, System) else "mend its solution="
    if failures == len(valid):
        raise ValueError(
            f"all {len(valid)} simulations of {problem.name!r} failed with "
            f"{settings['method']}; at least one must have a finite solution: look at one sample "
            f"with given parameters=, or {remedy}"
        )
    if failures:
        said = "%d of %d simulations of %s failed and are left out; if they have a solution, %s"
        log.warning(said, failures, len(valid), problem.name, remedy)


def attributes(problem: Solvable, noise: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what a file must say, the prior and its support among it; of sampled levels too."""
    levels = noise.prior if noise else {}
    if both := set(levels) & set(problem.parameter_names):
        raise ValueError(
            f"{sorted(both)} name both a parameter of {problem.name!r} and a level of its noise; "
            "names must differ: rename the parameter"
        )
    priors = {**problem.prior, **levels}
    rules = prior.rules(priors)
    return {
        "system": problem.name,
        "reference": problem.reference,
        "settings": json.dumps(settings),
        "support": json.dumps(prior.support(priors)),
        **({"inside": json.dumps(rules)} if rules else {}),
        "prior": json.dumps(prior.described(priors)),
        **provenance(),
    }


def dimensions(problem: Solvable, seen: np.ndarray) -> tuple[str, ...]:
    """Return the names of the axes of observations."""
    if seen.ndim == 3:
        return ("sample", "time", "channel")
    return ("sample", "time" if is_series(problem) else "feature")


def axes(problem: Solvable, seen: np.ndarray) -> dict[str, Any]:
    """Return the coordinates of the axes that have any."""
    names, *_, last = problem.observed, *dimensions(problem, seen)
    found: dict[str, Any] = {}
    if not isinstance(names, str):
        if len(names) != seen.shape[-1] or last == "time":
            raise ValueError(
                f"observed names {len(names)} {names} but {problem.name!r} gives {last}s of "
                f"{seen.shape[-1]}; name each, or write one string"
            )
        found[last] = list(names)
    if isinstance(problem, System) and is_series(problem):
        times = np.asarray(problem.observation.times)
        found["time"] = ("time", times, {"units": problem.time_unit})
    elif isinstance(problem, Static) and problem.times is not None:
        if len(problem.times) != seen.shape[1]:
            raise ValueError(
                f"times of {problem.name!r} are {len(problem.times)}, and its noise makes "
                f"{seen.shape[1]} of each sample; both must be as many"
            )
        unit = {"units": problem.time_unit} if problem.time_unit else {}
        found["time"] = ("time", np.asarray(problem.times, np.float64), unit)
    return found
