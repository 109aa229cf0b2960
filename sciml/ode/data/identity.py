"""What the numbers of a store depend on: told when it is made, compared when it is gone on with."""

import json
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml.ode import conditions, prior
from sciml.ode.doses import described
from sciml.ode.methods.solver import Problem, chosen_method, solver
from sciml.ode.static import Static
from sciml.ode.system import System, initial_state, rate

POINTS = 32  # at which an equation is compared, evenly over the time that is observed
DIGITS = 6  # of float32, beyond which machines and versions differ
PROBED = ("initial_state", "equation", "transform", "solution")
NOTHING = "nothing"  # in the words of a message: the store was made before this was told


def identity(problem: Problem, settings: dict[str, Any], dtype: str) -> dict[str, Any]:
    """Return all that the numbers of a store depend on, as JSON gives it back.

    Functions cannot be told, so their values at some points are; see `probe`. `settings` are seed,
    noise and method, described.
    """
    found: dict[str, Any] = {
        "system": problem.name,
        **settings,
        "prior": prior.described(problem.prior),
    }
    if problem.conditions:
        found["conditions"] = conditions.described(problem)
    if isinstance(problem, System):
        found |= {"doses": described(problem.doses)} if problem.doses else {}
        seen = problem.observation
        found |= {"start": float(seen.start), "times": seen.times, "states": seen.states}
        found |= {"jumps": problem.jumps} if problem.jumps else {}
        found |= probe(problem, dtype)
    elif isinstance(problem, Static) and problem.solution is not None:
        found["solution"] = solved(problem, dtype)
    return json.loads(json.dumps(found))


def probe(system: System, dtype: str) -> dict[str, list[list[float]]]:
    """Return values of the functions of a system, by which a changed one shows.

    Initial state and vector field are taken at `POINTS` draws of θ, each at a time and a state of
    its own; the transform of one series of states. A row holds the values of one state, channel
    or feature.
    """
    theta = prior.draw(system.prior, POINTS, jax.random.key(0), system.name)
    theta = conditions.rows(system, theta, jax.random.key(0))
    times = np.linspace(system.observation.start, system.observation.times[-1], POINTS)
    with jax.enable_x64(dtype == "float64"):
        found = jax.jit(partial(probed, system))(
            jnp.asarray(times, dtype), jnp.asarray(theta, dtype)
        )
    return {
        name: [[float(f"{value:.{DIGITS}g}") for value in row] for row in np.asarray(values).T]
        for name, values in found.items()
    }


def solved(task: Static, dtype: str) -> list[list[float]]:
    """Return the noise-free features of a static task at `POINTS` draws of θ."""
    theta = prior.draw(task.prior, POINTS, jax.random.key(0), task.name)
    theta = conditions.rows(task, theta, jax.random.key(0))
    with jax.enable_x64(dtype == "float64"):
        found = jax.jit(solver(task, chosen_method(task)))(jnp.asarray(theta, dtype))
    return [[float(f"{value:.{DIGITS}g}") for value in row] for row in np.asarray(found)]


def probed(
    system: System, times: Float[Array, " point"], theta: Float[Array, "point param"]
) -> dict[str, Float[Array, "_ _"]]:
    """Return what `probe` tells, by name."""
    seen = system.observation
    first = jax.vmap(partial(initial_state, system))(theta)
    slope = jax.vmap(lambda t, u, row: jnp.stack(rate(system, row)(t, u)))
    states = beside(jnp.tile(first[0], (len(seen.times), 1)))[:, jnp.asarray(seen.states)]
    shown = states if seen.transform is None else jnp.asarray(seen.transform(states))
    series = shown if shown.ndim == 2 else shown[None]  # a feature has one value
    some = np.unique(np.linspace(0, len(series) - 1, POINTS).astype(int))
    return {
        "initial_state": first if callable(system.initial_state) else first[:1],
        "equation": slope(times, beside(first), theta),
        "transform": series[some],
    }


def beside(states: Float[Array, "point state"]) -> Float[Array, "point state"]:
    """Return states around the given ones, each of its own, no sign turned by the factor."""
    points, count = states.shape
    angles = np.outer(np.arange(points), np.arange(1, count + 1))
    factor, more = 1 + np.cos(angles) / 2, (1 + np.sin(angles)) / 2
    return states * jnp.asarray(factor, states.dtype) + jnp.asarray(more, states.dtype)


def check_same(path: str, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Refuse to mix what was simulated differently, and say what differs."""
    different = [
        f"{name}: stored {shortened(theirs.get(name, NOTHING))}, "
        f"given {shortened(mine.get(name, NOTHING))}"
        for name in mine | theirs
        if not alike(name, mine.get(name, NOTHING), theirs.get(name, NOTHING))
    ]
    if different:
        raise ValueError(
            f"the store {path} holds other simulations ({'; '.join(different)}); "
            "all must be the same to go on: name another folder, or pass what it was made with"
        )


def alike(name: str, one: Any, other: Any) -> bool:
    """Tell equality; of what was probed, up to rounding, which is relative to a row's largest."""
    if name not in PROBED or NOTHING in (one, other):
        return one == other
    try:
        if [len(row) for row in one] != [len(row) for row in other]:
            return False
        return all(close(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True))
    except (TypeError, ValueError):  # these are no rows of numbers: the store was damaged
        return False


def close(row: np.ndarray, other: np.ndarray) -> bool:
    """Tell equality of one row up to rounding; what is not finite must be so in both."""
    size = np.abs(row[np.isfinite(row)])
    return np.allclose(row, other, rtol=1e-4, atol=1e-6 * size.max(initial=0.0), equal_nan=True)


def shortened(value: Any) -> str:
    """Return a value for a message, its middle left out if it is long."""
    text = str(value)
    return text if len(text) <= 120 else f"{text[:80]} … {text[-30:]}"
