"""One entry to all methods: from a problem to a function of its parameters."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciml._numbers import short
from sciml.ode import conditions
from sciml.ode.blackbox import BlackBox
from sciml.ode.methods import runge_kutta
from sciml.ode.methods.accuracy import adequate, check_clock
from sciml.ode.methods.diffrax_method import Diffrax
from sciml.ode.methods.diffrax_method import trajectory as adaptive_trajectory
from sciml.ode.methods.runge_kutta import RungeKutta4
from sciml.ode.mistakes import check_field, check_solution, shape_of
from sciml.ode.static import Static
from sciml.ode.system import System
from wse._compilation import enable_cache

Solvable = System | Static
Problem = Solvable | BlackBox
Method = RungeKutta4 | Diffrax
Solve = Callable[[Float[Array, "sample param"]], Float[Array, "sample ..."]]


def chosen_method(problem: Problem, method: Method | None = None) -> Method:
    """Return the given method, else the problem's own, else `RungeKutta4` at an adequate step."""
    check_problem(problem)
    enable_cache()  # the same problem is solved again, in another call or on another day
    problem = solvable(problem)
    chosen = method or getattr(problem, "method", None)
    if chosen is None:
        is_system = isinstance(problem, System)
        return adequate(problem, sight(problem)) if is_system else RungeKutta4()
    if not isinstance(chosen, Method):
        raise TypeError(
            f"the method is {chosen!r}; it must be RungeKutta4() or Diffrax('Tsit5'), "
            "both from sciml.ode"
        )
    return chosen


def solvable(problem: Problem) -> Solvable:
    """Return a problem; refuse one of which nothing but simulations is known."""
    if isinstance(problem, BlackBox):
        raise TypeError(
            f"{problem.name!r} is a BlackBox, which only sciml.simulate calls; a store, a "
            "likelihood, a solution or its derivatives need a sciml.ode.System or Static: fit a "
            "net to sciml.simulate(box, samples), and sciml.refine it"
        )
    return problem


def check_problem(problem: Any) -> None:
    """Refuse what is no problem: its name, or the function that makes it."""
    if isinstance(problem, Problem):
        return
    name = problem if isinstance(problem, str) else getattr(problem, "__name__", "")
    remedy = f": call the function, as sciml.ode.{name}()" if name else ""
    raise TypeError(
        f"the problem is {short(problem)}; it must be a sciml.ode.System, Static or "
        f"BlackBox{remedy}"
    )


def solver(problem: Problem, method: Method | None = None) -> Solve:
    """Return the noise-free forward map of a batch, a pure function to trace, compile and scan.

    (sample, param) → (sample, time) for one channel, (sample, time, channel) for several,
    (sample, feature) where the observation's transform returns a vector. A sample whose solution
    fails holds values that are not finite. With `dtype="float64"` call it, and what it is
    compiled in, inside `jax.enable_x64()`. Conditions stand behind the parameters, in as many
    columns as they have numbers: first those that are numbers, in their order, then series.

    Raises:
        ValueError: the vector field or the transform return another shape than they must, or read
            a state or parameter that is not there.
        TypeError: the method is none.

    >>> import jax.numpy as jnp
    >>> from sciml.ode import lotka_volterra, solver
    >>> solver(lotka_volterra())(jnp.ones((2, 4))).shape
    (2, 10, 2)
    """
    problem = solvable(problem)
    if isinstance(problem, Static) and problem.solution is None:
        return lambda parameters: parameters  # such a task has no conditions
    method = chosen_method(problem, method)
    if isinstance(problem, Static):
        one, dtype = solution_of(problem), method.dtype

        def each(parameters):
            parameters = jnp.asarray(parameters).astype(checked_dtype(dtype))
            check_solution(problem, one, parameters[0])
            return jax.vmap(lambda row: jnp.asarray(one(row), parameters.dtype))(parameters)

        return each
    if isinstance(method, RungeKutta4):
        solve = runge_kutta.trajectory(problem, method)
    else:
        solve = adaptive_trajectory(problem, method)
    see = sight(problem)

    def batch(parameters):
        parameters = jnp.asarray(parameters).astype(checked_dtype(method.dtype))
        check_field(problem, parameters[0])
        check_clock(problem, method, parameters[0])
        return jax.vmap(lambda one: see(solve(one)))(parameters)

    return batch


def solution_of(task: Static) -> Callable:
    """Return the map from one row, parameters and conditions, to the solution of a task."""
    whole: Any = task.solution
    size = len(task.parameter_names)

    # Never the user's own function: what JAX has traced under its name lives as long as it, and
    # with it the single precision of NumPy's arrays in it, which double precision then meets.
    def one(row):
        known = (conditions.columns_of(task, row[size:]),) if task.conditions else ()
        return whole(row[:size], *known)

    return one


def sight(system: System) -> Callable:
    """Return the map from the observed states (time, state) of one sample to what is seen."""
    solvable(system)
    transform = system.observation.transform or (lambda states: states)

    def see(states):
        given = jax.ShapeDtypeStruct(states.shape, states.dtype)
        check_transformed(system, shape_of(system, "the transform", transform, given))
        out = jnp.asarray(transform(states), states.dtype)
        return out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out

    return see


def is_series(problem: Problem) -> bool:
    """Tell a problem that is observed at times from one that gives vectors of features."""
    if not isinstance(problem, System):
        return isinstance(problem, Static) and problem.times is not None
    seen, transform = problem.observation, problem.observation.transform
    if transform is None:
        return True
    states = jax.ShapeDtypeStruct((len(seen.times), len(seen.states)), jnp.float32)
    return len(jax.eval_shape(lambda u: jnp.asarray(transform(u)), states).shape) == 2


def check_transformed(system: System, shape: Any) -> None:
    """Refuse a transform that returns neither channels at all times nor a vector."""
    times = len(system.observation.times)
    if (
        not isinstance(shape, tuple)
        or len(shape) not in (1, 2)
        or (len(shape) == 2 and shape[0] != times)
    ):
        raise ValueError(
            f"the transform of {system.name!r} returns the shape {shape}; it must return "
            f"({times} times, channel) or (feature,)"
        )


def checked_dtype(dtype: str) -> str:
    """Return a dtype that JAX will really compute in."""
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            f"the method computes in {dtype} but JAX has it switched off; "
            "call the solver inside `with jax.enable_x64():`, or pass dtype='float32'"
        )
    return dtype
