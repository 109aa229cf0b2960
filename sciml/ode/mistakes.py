"""The functions of a system, tried before one is solved: first mistakes get one clear line."""

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np
from jaxtyping import Array, Float

from sciml.ode.conditions import names_of
from sciml.ode.static import Static
from sciml.ode.system import System, check_states, initial_state, rate

log = logging.getLogger(__name__)

TIMES, STATES = ("t", "time"), ("u", "x", "y", "state", "states")  # names of arguments
UNTRACEABLE = {  # the first kind that an error is of counts
    jax.errors.TracerBoolConversionError: (
        "decides by a value (if, and, or, max, while): write jnp.where(condition, a, b)"
    ),
    jax.errors.TracerArrayConversionError: (
        "calls NumPy or SciPy: take the function of this name from jax.numpy"
    ),
    jax.errors.ConcretizationTypeError: (
        "makes a Python number of a value (float, int, math): leave it, or use jax.numpy"
    ),
}


@contextmanager
def explained(system: System | Static, what: str) -> Iterator[None]:
    """Say what is wrong with a function of a system that JAX cannot trace, and what to do."""
    try:
        yield
    except tuple(UNTRACEABLE) as error:
        said = next(said for kind, said in UNTRACEABLE.items() if isinstance(error, kind))
        raise TypeError(f"{what} of {system.name!r} {said}") from error
    except (TypeError, KeyError, IndexError) as error:
        if isinstance(error, TypeError) and "missing" in str(error):
            remedy = (
                "it is called with the parameters, with Static(conditions=) and a dict of those"
                if isinstance(system, Static)
                else "it is called with (t, state, parameters), or the parameters alone where it "
                "gives the initial state, System(conditions=) last; equations with delays or noise "
                "of their own are not solved here: see sciml.ode.black_box"
            )
        else:
            names = ", ".join(f"p[{i}] is {name}" for i, name in enumerate(system.parameter_names))
            remedy = f"state and parameters are arrays, read by number from 0: {names}"
            if given := names_of(system):
                remedy += f"; conditions are read by name, c[{given[0]!r}]: {', '.join(given)}"
        first = str(error).partition("\n")[0][:200]
        raise TypeError(f"{what} of {system.name!r} fails ({first}): {remedy}") from error


def check_order(system: System, field: Callable) -> None:
    """Refuse a vector field whose arguments are named in another order than they are passed."""
    try:
        names = [name.lstrip("_") for name in inspect.signature(field).parameters]
    except (TypeError, ValueError):  # of a built-in function nothing is known
        return
    if len(names) > 1 and names[0] in STATES and names[1] in TIMES:
        raise TypeError(
            f"the vector field of {system.name!r} takes ({', '.join(names)}); it is called with "
            "(t, state, parameters): put the time first"
        )


def check_field(system: System, parameters: Float[Array, " param"]) -> None:
    """Refuse a vector field of another shape than the state, or of other parts, uncomputed."""
    check_order(system, system.vector_field)
    with explained(system, "the initial state"):
        state = jax.eval_shape(lambda p: initial_state(system, p), parameters)
    check_states(system, len(state))
    time = jax.ShapeDtypeStruct((), parameters.dtype)
    with explained(system, "the vector field"):
        field = jax.eval_shape(lambda t, u, row: rate(system, row)(t, u), time, state, parameters)
    shapes = [part.shape for part in field] if isinstance(field, tuple | list) else field.shape
    if shapes not in ([()] * len(state), state.shape):
        raise ValueError(
            f"the vector field of {system.name!r} returns {shapes} for a state of shape "
            f"{state.shape}; it must return one number per state: a tuple of {len(state)} scalars"
        )
    check_indices(system, len(state), parameters.shape[0])


def check_indices(system: System, states: int, width: int) -> None:
    """Refuse a vector field that reads a state or parameter which is not there.

    JAX's arrays would give the last one in its place; NumPy's say so.
    """
    names = system.parameter_names
    state, row = np.ones(states, np.float32), np.ones(width, np.float32)

    def read() -> None:
        rate(system, row)(np.float32(0), state)
        initial_state(system, row)

    try:
        with np.errstate(all="ignore"):
            jax.eval_shape(read)
    except IndexError as error:
        raise ValueError(
            f"{system.name!r} reads a state or parameter that is not there ({error}); it has "
            f"{states} states and the parameters {', '.join(names)}: count from 0, and give each "
            "parameter a prior"
        ) from error
    except Exception as error:  # what NumPy's arrays cannot do, JAX's may
        log.debug("the indices of %s are not checked: %s", system.name, error)
