"""How far a fixed step is off, on demand."""

from time import perf_counter
from typing import Any

import jax
import xarray as xr

from sciml._session import as_usual
from sciml.ode.data.simulate import chosen_parameters, with_conditions
from sciml.ode.methods.accuracy import adequate, errors_of
from sciml.ode.methods.runge_kutta import RungeKutta4, substeps_per_gap
from sciml.ode.methods.solver import chosen_method, sight
from sciml.ode.system import System


@as_usual
def adequate_step(problem: System, tolerance: float = 0.01) -> RungeKutta4:
    """Return the classical method with as few substeps as meet a tolerance, up to 64.

    Args:
        problem: the system.
        tolerance: in parts of the spread of what is observed, for 98 % of 64 draws from the prior.

    Warns:
        StepWarning: no number of substeps meets it; the best one is taken.

    >>> from sciml.ode import adequate_step, fitzhugh_nagumo
    >>> adequate_step(fitzhugh_nagumo(), 1e-3).substeps
    8
    """
    return adequate(problem, sight(problem), tolerance)


@as_usual
def step_error(
    problem: System,
    parameters: Any = None,
    *,
    samples: int = 1000,
    method: RungeKutta4 | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Return how far a fixed step is off, against half the step, for draws or given parameters.

    Args:
        problem: the system.
        parameters: (sample, param); without them `samples` are drawn from the prior.
        samples: how many to draw.
        method: whose step is judged; default the one that `simulate` takes.
        seed: of the draws.

    Returns:
        `error (sample)`: the largest difference over times and channels, in parts of the standard
        deviation of the channel; by the order of the method it is 16/15 of the error itself where
        that is small. Attributes `substeps` and `seconds`, compilation included.

    Raises:
        TypeError: the method is no `RungeKutta4`, whose step alone is fixed.

    >>> from sciml.ode import fitzhugh_nagumo, step_error
    >>> bool(step_error(fitzhugh_nagumo(), samples=20).error.max() < 0.01)
    True
    """
    begin = perf_counter()
    chosen = chosen_method(problem, method)
    if not isinstance(chosen, RungeKutta4):
        raise TypeError(
            f"the method is {chosen}; only a fixed step is judged, that of RungeKutta4: Diffrax "
            "bounds the error of each step itself"
        )
    count = samples if parameters is None else None
    theta, _ = chosen_parameters(problem, count, (parameters, None), jax.random.key(seed))
    theta = with_conditions(problem, theta, None, parameters, jax.random.key(seed))
    errors = errors_of(problem, sight(problem), chosen, theta)
    attrs = {"substeps": substeps_per_gap(problem, chosen), "seconds": perf_counter() - begin}
    return xr.Dataset({"error": ("sample", errors)}, attrs=attrs)
