"""What a problem is given and is hardly meant: inputs that change nothing, a start far before."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from sciml.ode.conditions import names_of, takes
from sciml.ode.doses import Infusion, times_of
from sciml.ode.static import Static
from sciml.ode.system import System, initial_state

log = logging.getLogger(__name__)

LONG = 20.0  # assumed: times as long as what is observed, beyond which a start is forgotten

Called = tuple[Callable, tuple[Any, ...]]  # a function, and what it takes before the conditions


def warn_of_ignored(problem: System | Static, row: Float[np.ndarray, " param"]) -> None:
    """Say which conditions nothing depends on, as one that is misspelt; what is late, and early.

    `row` holds the parameters of one sample, and its conditions behind them.
    """
    names = names_of(problem)
    doses = problem.doses if isinstance(problem, System) else ()
    if isinstance(problem, System):
        warn_of_early(problem)
    for dose in doses:
        warn_of_late(problem, dose)
    read: set[Any] = {dose.amount for dose in doses}
    for function, before in functions_of(problem, row) if names else ():
        read |= read_by(function, before, names)
    if ignored := [name for name in names if name not in read]:
        log.warning(
            "nothing in %r depends on %s: simulations are the same whatever the condition is; "
            "write c[%r] into the equation, or leave it out",
            problem.name,
            ", ".join(ignored),
            ignored[0],
        )


def warn_of_early(system: System) -> None:
    """Say where solving begins long before the first observation, as at year 0."""
    seen = system.observation
    first, last = seen.times[0], seen.times[-1]
    if first < last and (times := (first - seen.start) / (last - first)) > LONG:
        log.warning(
            "%r is solved from start=%g to its first observation at %g, for %.0f times as long as "
            "it is observed: if the initial state is that of another time, as of the first, pass "
            "Observation(start=%g)",
            *(system.name, seen.start, first, times, first),
        )


def warn_of_late(problem: Any, dose: Any) -> None:
    """Say where all of a dose is given after the last observation, as where time and amount swap.

    What is given at once at the last time is seen there, and what begins to flow then is not.
    """
    first, last = min(times_of(dose)), float(problem.observation.times[-1])
    if first > last or (first == last and isinstance(dose, Infusion)):
        log.warning(
            "%s of %r comes after the last observation, at %g, and changes nothing: check its time "
            "and amount, or observe for longer",
            *(dose, problem.name, last),
        )


def functions_of(problem: System | Static, row: Float[np.ndarray, " param"]) -> Iterator[Called]:
    """Yield the functions of a problem that take conditions."""
    theta = np.asarray(row[: len(problem.parameter_names)], np.float32)
    if isinstance(problem, Static):
        if problem.solution is not None:
            yield problem.solution, (theta,)
        return
    if callable(problem.initial_state) and takes(problem.initial_state, 2):
        yield problem.initial_state, (theta,)
    if takes(problem.vector_field, 4):
        whole = np.asarray(row, np.float32)
        state = jax.eval_shape(lambda given: initial_state(problem, given), whole)
        yield problem.vector_field, (np.float32(0), state, theta)


def read_by(function: Callable, before: tuple[Any, ...], names: tuple[str, ...]) -> set[str]:
    """Return the names of conditions on which what a function gives depends."""
    one = jax.ShapeDtypeStruct((), np.float32)

    def traced(known: dict[str, Any], *args: Any) -> Any:  # anew: JAX remembers what it has traced
        return function(*args, known)

    program = jax.make_jaxpr(traced)(dict.fromkeys(names, one), *before).jaxpr
    live = {id(each) for each in program.outvars}
    for equation in reversed(program.eqns):
        if equation.effects or any(id(each) in live for each in equation.outvars):
            live |= {id(each) for each in equation.invars}
    # Leaves of a dict are in the order of its names.
    return {
        name for name, each in zip(sorted(names), program.invars, strict=False) if id(each) in live
    }
