"""From a system to a labelled data set of observations and parameters."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from tqdm.auto import tqdm

from sciml.ode.noise import AR1
from sciml.ode.runge_kutta import RungeKutta4, solver
from sciml.ode.system import System
from sciml.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger(__name__)


def simulate(
    system: System,
    *,
    samples: int | None = None,
    parameters: Float[np.ndarray, "sample param"] | None = None,
    seed: int = 0,
    noise: AR1 | None = None,
    method: RungeKutta4 | None = None,
) -> "xr.Dataset":
    """Solve a system for parameters drawn from its prior, or for given ones.

    Args:
        system: the problem.
        samples: how many parameters to draw from the prior.
        parameters: or the parameters themselves, shape (sample, param).
        seed: of the draws and of the noise; the same seed gives the same numbers.
        noise: added to the observations; None adds nothing.
        method: the integrator, its precision and chunk; default `RungeKutta4()`.

    Returns:
        `observation (sample, time)`, `parameters (sample, parameter)`, `valid (sample)`: samples
        whose solution is not finite are kept as NaN, marked False, and counted in the attribute
        `failures`. The attributes hold all that it takes to make the data set again.

    Raises:
        ValueError: both or neither of samples and parameters, or parameters of a wrong shape or
            not finite.
    """
    method = method or RungeKutta4()
    draw, add = jax.random.split(jax.random.key(seed))
    theta = chosen_parameters(system, samples, parameters, draw)
    with jax.enable_x64(method.dtype == "float64"):
        solved = np.concatenate(list(solve_chunks(solver(system, method), theta, method)))
    if noise is not None:
        solved = solved + np.asarray(noise.sample(add, solved.shape))
    settings = {
        "samples": samples,
        "seed": seed,
        "noise": noise.describe() if noise else None,
        "method": {"name": "RungeKutta4", "substeps": method.substeps, "dtype": method.dtype},
    }
    return labelled(system, theta, solved, settings)


def chosen_parameters(system, samples, parameters, key: Key[Array, ""]) -> np.ndarray:
    """Return given parameters, checked, or draws from the prior; shape (sample, param)."""
    if (samples is None) == (parameters is None):
        raise ValueError(
            f"samples is {samples} and parameters are {'absent' if parameters is None else 'given'}"
            "; give exactly one: samples=1000 draws from the prior"
        )
    if samples is not None:
        if samples < 1:
            raise ValueError(f"samples is {samples}; it must be at least 1")
        return draw_parameters(system, samples, key)
    given = np.asarray(parameters, dtype=np.float64)
    names = system.parameter_names
    if given.ndim != 2 or given.shape[1] != len(names) or not len(given):
        raise ValueError(
            f"parameters have shape {given.shape}; {system.name} takes (sample, {len(names)}): "
            f"columns {', '.join(names)}"
        )
    if not np.isfinite(given).all():
        row = int(np.argmin(np.isfinite(given).all(axis=1)))
        raise ValueError(f"parameters[{row}] is {given[row]}; all must be finite: drop that row")
    return given


def draw_parameters(system: System, samples: int, key: Key[Array, ""]) -> np.ndarray:
    """Return independent draws from the prior, shape (sample, param)."""
    keys = jax.random.split(key, len(system.prior))
    columns = [p.sample(k, (samples,)) for p, k in zip(system.prior.values(), keys, strict=True)]
    return np.stack([np.asarray(column) for column in columns], axis=1)


def solve_chunks(solve: Callable, theta: np.ndarray, method: RungeKutta4) -> Iterator[np.ndarray]:
    """Yield observations chunk by chunk; the last chunk is padded, so that one program serves."""
    starts = range(0, len(theta), min(method.chunk, len(theta)))
    size = min(method.chunk, len(theta))
    for start in tqdm(starts, unit="chunk", leave=False, disable=len(starts) < 2):
        part = theta[start : start + size]
        padded = np.pad(part, [(0, size - len(part)), (0, 0)], mode="edge")
        yield np.asarray(solve(jnp.asarray(padded, dtype=method.dtype)))[: len(part)]


def labelled(system: System, theta, solved, settings) -> "xr.Dataset":
    """Return the data set, with failed samples masked and counted."""
    import xarray as xr

    valid = np.isfinite(solved).all(axis=1)
    failures = int((~valid).sum())
    if failures:
        log.warning("%d of %d simulations of %s failed", failures, len(valid), system.name)
    return xr.Dataset(
        {
            "observation": (
                ("sample", "time"),
                np.where(valid[:, None], solved, np.nan),
                {"long_name": system.observed},
            ),
            "parameters": (("sample", "parameter"), theta),
            "valid": ("sample", valid),
        },
        coords={
            "time": ("time", system.observation.times, {"units": system.time_unit}),
            "parameter": list(system.parameter_names),
        },
        attrs={
            "system": system.name,
            "reference": system.reference,
            "failures": failures,
            "settings": json.dumps(settings),
            **provenance(),
        },
    )
