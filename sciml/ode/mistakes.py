"""The functions of a system, tried before one is solved: first mistakes get one clear line."""

import inspect
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml.ode.conditions import names_of
from sciml.ode.static import Static
from sciml.ode.system import System, check_states, initial_state, rate
from wse._tracing import UNTRACEABLE, untraceable

log = logging.getLogger(__name__)

Problem = System | Static

DRAWS = re.compile(r"=\s+(random_\w+|threefry2x32)")  # operations of a jaxpr, not names in it
TIMES, STATES = ("t", "time"), ("u", "x", "y", "state", "states")  # names of arguments


@dataclass(frozen=True, eq=False)
class Vouched:
    """A solution that this package wrote, of formulas that were checked: it is not tried first.

    That would take seconds. A user's own is tried anew for each program: what JAX has made of an
    array of NumPy in it meanwhile may differ.
    """

    solution: Callable
    shapes: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def __call__(self, theta: Any) -> Any:
        """Return the features of one θ."""
        return self.solution(theta)


@contextmanager
def explained(problem: Problem, what: str) -> Iterator[None]:
    """Say what is wrong with a function of a problem that JAX cannot trace, and what to do."""
    try:
        yield
    except tuple(UNTRACEABLE) as error:
        raise TypeError(f"{what} of {problem.name!r} {untraceable(error)}") from error
    except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, TypeError) and "missing" in str(error):
            remedy = (
                "it is called with the parameters, with Static(conditions=) and a dict of those"
                if isinstance(problem, Static)
                else "it is called with (t, state, parameters), or the parameters alone where it "
                "gives the initial state, System(conditions=) last; equations with delays or noise "
                "of their own are not solved here: see sciml.ode.black_box"
            )
        elif "verifier errors" in str(error) or "same dtypes" in str(error):
            remedy = (
                "JAX keeps an array of NumPy in the precision in which it met it first, and "
                "samplers take double: write jnp.asarray(array) inside the function"
            )
        elif "setting an array element" in str(error):
            remedy = "an array of NumPy cannot be filled here: return a tuple, or jnp.stack of one"
        elif isinstance(error, ValueError) and "unpack" not in str(error):
            raise  # the user's own, or one that says what to do
        else:
            names = ", ".join(f"p[{i}] is {name}" for i, name in enumerate(problem.parameter_names))
            remedy = f"state and parameters are arrays, read by number from 0: {names}"
            if given := names_of(problem):
                remedy += f"; conditions are read by name, c[{given[0]!r}]: {', '.join(given)}"
        first = str(error).partition("\n")[0].rstrip(":")[:200]
        raise TypeError(f"{what} of {problem.name!r} fails ({first}): {remedy}") from error


def shape_of(
    problem: Problem, what: str, function: Callable, *args: Any, whole: bool = True
) -> Any:
    """Return the shape of what a function gives, one array or, if not `whole`, of each part.

    A random one is refused: it is traced once and then called no more, so that a number of
    np.random would be the same for all samples and times, and one of jax.random for all samples.
    """
    told, found = [], None
    for _ in range(2):

        def traced(*inputs: Any) -> Any:  # anew each time: JAX remembers what it has traced
            made = function(*inputs)
            return jnp.asarray(made) if whole and made is not None else made

        with explained(problem, what):
            program, found = jax.make_jaxpr(traced, return_shape=True)(*args)
            if program.consts:  # arrays of NumPy, which JAX may hold in another precision
                given = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in args]
                jax.jit(traced).lower(*given)
        if drawn := DRAWS.search(str(program.jaxpr)):
            raise TypeError(
                f"{what} of {problem.name!r} draws with jax.random ({drawn[1]}): all samples would "
                "get the same numbers; draw constants outside of it; noise of a measurement is "
                "noise=, an equation with noise of its own is a sciml.ode.black_box"
            )
        numbers = [np.asarray(each).tolist() for each in program.consts]
        told.append(re.sub("0x[0-9a-f]+", "", f"{program.jaxpr} {numbers}"))
    if told[0] != told[1]:
        raise TypeError(
            f"{what} of {problem.name!r} gives other numbers each time it is called, as by "
            "np.random; it must depend on its arguments alone: noise of a measurement is noise=, "
            "an equation with noise of its own is a sciml.ode.black_box"
        )
    refuse_complex(problem, what, found)
    if isinstance(found, tuple | list):
        return [getattr(part, "shape", part) for part in found]
    return getattr(found, "shape", found)


def refuse_complex(problem: Problem, what: str, found: Any) -> None:
    """Refuse complex numbers, of which nets and likelihoods would see the real part alone."""
    kinds = [getattr(each, "dtype", np.dtype(float)).kind for each in jax.tree.leaves(found)]
    if "c" in kinds:
        raise TypeError(
            f"{what} of {problem.name!r} gives complex numbers; they must be real: return .real "
            "and .imag as two, as by jnp.concatenate, or jnp.abs of them"
        )


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
    shape = shape_of(system, "the initial state", lambda p: initial_state(system, p), parameters)
    states = shape[0]
    check_states(system, states)
    time, state = (jax.ShapeDtypeStruct(each, parameters.dtype) for each in ((), shape))
    slope: Callable = lambda t, u, p: rate(system, p)(t, u)  # noqa: E731
    args = time, state, parameters
    field = shape_of(system, "the vector field", slope, *args, whole=False)
    if field not in ([()] * states, shape):
        raise ValueError(
            f"the vector field of {system.name!r} returns {field} for a state of shape {shape}; it "
            f"must return one number per state: a tuple of {states} scalars"
        )

    def read(row: np.ndarray) -> None:
        rate(system, row)(np.float32(0), np.ones(shape, np.float32))
        initial_state(system, row)

    check_indices(system, read, parameters.shape[0], f"{states} states and ")


def check_solution(task: Static, solve: Callable, row: Float[Array, " param"]) -> None:
    """Refuse the solution of a task that gives no vector of features, uncomputed."""
    if isinstance(task.solution, Vouched):
        return
    shape = shape_of(task, "the solution", solve, row)
    if not isinstance(shape, tuple) or len(shape) != 1 or measured(task, shape) != task.features:
        raise ValueError(
            f"the solution of {task.name!r} returns {shape} for one θ; it must be ({task.features},"
            "), as many as features= says: jnp.stack makes it of numbers"
        )
    check_indices(task, solve, row.shape[0])


def solution_shape(task: Static, solve: Callable, row: jax.ShapeDtypeStruct) -> Any:
    """Return the shape of what a solution gives for one θ; one of ours is traced once."""
    if not isinstance(task.solution, Vouched):
        return shape_of(task, "the solution", solve, row)
    known = task.solution.shapes
    if row.dtype not in known:
        known[row.dtype] = jax.eval_shape(solve, row).shape
    return known[row.dtype]


def measured(task: Static, shape: tuple[int, ...]) -> int:
    """Return how many features the noise makes of a solution; most leave their number."""
    if shape == (task.features,) or task.noise is None:
        return shape[0]
    one = {name: jax.ShapeDtypeStruct((1,), np.float32) for name in task.noise.prior}
    clean = jax.ShapeDtypeStruct((1, *shape), np.float32)
    return jax.eval_shape(task.noise.apply, jax.random.key(0), clean, one).shape[-1]


def check_indices(problem: Problem, read: Callable, width: int, also: str = "") -> None:
    """Refuse a function that reads a state or parameter which is not there.

    JAX's arrays would give the last one in its place; NumPy's say so.
    """
    row = np.ones(width, np.float32)
    try:
        with np.errstate(all="ignore"):
            jax.eval_shape(lambda: read(row))
    except IndexError as error:
        raise ValueError(
            f"{problem.name!r} reads a state or parameter that is not there ({error}); it has "
            f"{also}the parameters {', '.join(problem.parameter_names)}: count from 0, and give "
            "each parameter a prior"
        ) from error
    except Exception as error:  # what NumPy's arrays cannot do, JAX's may
        log.debug("the indices of %s are not checked: %s", problem.name, error)
