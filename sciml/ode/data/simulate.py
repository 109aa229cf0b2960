"""From a problem to a labelled data set of observations and parameters."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from sciml.ode import prior
from sciml.ode.data.labels import check_some_valid, labelled
from sciml.ode.methods.blocks import in_blocks
from sciml.ode.methods.solver import Method, Problem, chosen_method, solver
from sciml.ode.observe.noise import Noise, check_noise, measure

if TYPE_CHECKING:
    import xarray as xr


def simulate(
    problem: Problem,
    *,
    samples: int | None = None,
    parameters: Float[np.ndarray, "sample param"] | None = None,
    seed: int = 0,
    noise: Noise | None = None,
    method: Method | None = None,
) -> "xr.Dataset":
    """Solve a problem for parameters drawn from its prior, or for given ones.

    Args:
        problem: the system, or the static task.
        samples: how many parameters to draw from the prior.
        parameters: or the parameters themselves, shape (sample, param).
        seed: of the draws and of the noise; the same seed gives the same numbers.
        noise: of the measurement; None adds nothing, `noise=problem.noise` is the published one.
        method: the integrator, its precision and chunk; default the problem's own, else
            `RungeKutta4()`.

    Returns:
        `observation`, `(sample, time)` of one channel, `(sample, time, channel)` of several,
        `(sample, feature)` of a vector; `parameters (sample, parameter)`; `valid (sample)`, and
        `levels (sample, level)` if the noise draws its levels. Samples whose solution is not
        finite are kept as NaN, marked False, and counted in the attribute `failures`; NaN in a
        valid sample is a missing value. The attributes hold all that it takes to make the data
        set again, and the prior and its support as JSON.

    Raises:
        ValueError: both or neither of samples and parameters, parameters of a wrong shape or
            not finite, a prior that gives impossible parameters, or no sample could be solved.
    """
    check_noise(noise)
    method = chosen_method(problem, method)
    draw, add = jax.random.split(jax.random.key(seed))
    theta = chosen_parameters(problem, samples, parameters, draw)
    with jax.enable_x64(method.dtype == "float64"):
        solve = jax.jit(solver(problem, method))
        clean = in_blocks(solve, (theta,), method)
        seen, levels = measure(noise, add, jnp.asarray(clean))
    settings = {
        "samples": samples,
        "seed": seed,
        "noise": noise.describe() if noise else None,
        "method": method.describe(),
    }
    data = labelled(problem, theta, clean, (np.asarray(seen), levels, noise), settings)
    check_some_valid(problem, data.valid.values, settings)
    return data


def chosen_parameters(problem, samples, parameters, key: Key[Array, ""]) -> np.ndarray:
    """Return given parameters, checked, or draws from the prior; shape (sample, param)."""
    if (samples is None) == (parameters is None):
        raise ValueError(
            f"samples is {samples} and parameters are {'absent' if parameters is None else 'given'}"
            "; give exactly one: samples=1000 draws from the prior"
        )
    if samples is not None:
        if not isinstance(samples, int | np.integer) or samples < 1:
            raise ValueError(f"samples is {samples}; it must be a whole number, at least 1")
        return prior.draw(problem.prior, int(samples), key, problem.name)
    given = np.asarray(parameters, dtype=np.float64)
    names = problem.parameter_names
    if given.ndim != 2 or given.shape[1] != len(names) or not len(given):
        raise ValueError(
            f"parameters have shape {given.shape}; {problem.name} takes (sample, {len(names)}): "
            f"columns {', '.join(names)}"
        )
    if not np.isfinite(given).all():
        row = int(np.argmin(np.isfinite(given).all(axis=1)))
        raise ValueError(f"parameters[{row}] is {given[row]}; all must be finite: drop that row")
    return given
