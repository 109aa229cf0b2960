"""Adaptive and implicit methods, by diffrax: for stiff systems and for error control."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml.ode.conditions import split_names
from sciml.ode.doses import cuts_of, within
from sciml.ode.system import System, bolus_steps, initial_state, rate, stops

M = TypeVar("M")
FINEST_FLOAT32 = 1e-6  # derived: eight times the rounding of float32, 1.2e-7


@dataclass(frozen=True)
class Diffrax:
    """Adapt the step so that each step's error stays below atol + rtol |u|.

    `solver` names the scheme: "Tsit5" (order 5, the usual choice), "Dopri8" (order 8, for fine
    tolerances in float64), "Kvaerno5" (implicit, order 5, for stiff systems). A sample that
    takes more than `max_steps` steps, or whose step breaks down, fails: it is kept as NaN.
    `chunk` samples are solved at once, 32 times as many on a card, as slowly as the slowest.
    `derivatives` says which of JAX's serve: those of `jax.grad`, or "forward" ones, `jax.jacfwd`.

    Raises:
        ValueError: another solver, dtype or derivatives, a tolerance that is not positive or that
            the dtype cannot hold, or a count below 1.

    >>> Diffrax("Kvaerno5", rtol=1e-7, atol=1e-10, dtype="float64").rtol
    1e-07
    """

    solver: Literal["Tsit5", "Dopri8", "Kvaerno5"] = "Tsit5"
    rtol: float = 1e-6
    atol: float = 1e-6
    max_steps: int = 16_384
    dtype: Literal["float32", "float64"] = "float32"
    chunk: int = 2048
    derivatives: Literal["reverse", "forward"] = field(default="reverse", repr=False)

    def __post_init__(self):
        if self.derivatives not in ("reverse", "forward"):
            raise ValueError(
                f"derivatives is {self.derivatives!r}; it must be 'reverse' or 'forward'"
            )
        if self.solver not in ("Tsit5", "Dopri8", "Kvaerno5"):
            raise ValueError(
                f"solver is {self.solver!r}; it must be 'Tsit5', 'Dopri8' or 'Kvaerno5'"
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")
        if not (self.rtol > 0 and self.atol > 0):
            raise ValueError(f"rtol is {self.rtol} and atol {self.atol}; both must be positive")
        if self.dtype == "float32" and self.rtol < FINEST_FLOAT32:
            raise ValueError(
                f"rtol is {self.rtol} in float32, whose rounding would be taken for error; it "
                f"must be at least {FINEST_FLOAT32}: pass dtype='float64'"
            )
        if self.max_steps < 1 or self.chunk < 1:
            raise ValueError(
                f"max_steps is {self.max_steps} and chunk {self.chunk}; both must be at least 1"
            )

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this method."""
        numbers = asdict(self)
        del numbers["chunk"], numbers["derivatives"]
        return {"name": "Diffrax", **numbers}


def forwards(method: M) -> M:
    """Return a method whose solution can be differentiated forwards."""
    return replace(method, derivatives="forward") if isinstance(method, Diffrax) else method


@contextmanager
def told_forwards(name: str) -> Iterator[None]:
    """Say in one line that a solution of the user's own has no forward derivatives."""
    try:
        yield
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise TypeError(
            f"the solution of {name!r} has no forward derivatives: solve it by diffrax with "
            "adjoint=diffrax.ForwardMode(), by sciml's Diffrax with derivatives='forward', or "
            "sample by nuts(settings=Chains(forward=False))"
        ) from None


def trajectory(
    system: System, method: Diffrax
) -> Callable[[Float[Array, " param"]], Float[Array, "time state"]]:
    """Return the map from the parameters of one sample to its observed states; NaN if it fails."""
    seen = system.observation
    states = jnp.asarray(seen.states, jnp.int32)  # also where 64 bits are on

    series = seen.times if split_names(system)[1] else ()  # which bends there
    breaks = np.unique([*stops(system), *series])
    cuts = [t for t in cuts_of(system) if t <= seen.times[-1]]

    def slope(t, u, row):
        return jnp.stack(rate(system, row)(t, u))

    def begun(parameters, ends):
        """Return the times, the jumps, the first state after its doses, and later doses."""
        first = initial_state(system, parameters)
        kicks = bolus_steps(system, parameters, np.array([seen.start, *ends]), first)
        jumps = jnp.asarray(breaks, parameters.dtype) if len(breaks) else None
        return jnp.asarray(seen.times, parameters.dtype), jumps, first + kicks[0], kicks[1:]

    def whole(parameters):
        times, jumps, first, _ = begun(parameters, ())
        span = seen.start, seen.times[-1], first
        options = {"times": times, "jumps": jumps, "see": lambda _t, u, _p: u[states]}
        return solved(method, slope, span, parameters, **options)

    def from_dose_to_dose(parameters):
        ends = np.unique([*cuts, seen.times[-1]])
        times, jumps, first, kicks = begun(parameters, ends)
        start = jnp.asarray(seen.start, times.dtype), first
        found = in_pieces(
            method,
            slope,
            start,
            parameters,
            times=times,
            ends=jnp.asarray(ends, times.dtype),
            change=lambda i, _t, state: state + kicks[i],
            jumps=lambda _t, _state: jumps,
        )
        return found[:, states]

    return from_dose_to_dose if cuts else whole


def in_pieces(
    method: Diffrax,
    rate: Callable,
    first: tuple[Any, Any],
    args: Any,
    *,
    times: Any,
    ends: Any,
    change: Callable[[Any, Any, Any], Any],
    jumps: Callable[[Any, Any], Any],
) -> Any:
    """Return the states at times, solved from end to end by one program for all pieces.

    `first` is the first time and state, `change(i, time, state)` the state after the i-th end, and
    `jumps(time, state)` where the rate jumps in the piece that begins there. Ends do not decrease,
    and the last of them is not before the last time. Seen at an end is the state after it.
    """

    def piece(carry, part):
        (start, state, found), (i, stop) = carry, part
        # A solution needs a stretch of time; of an empty one nothing is read.
        far = jnp.where(stop > start, stop, start + 1e-6 * (1 + jnp.abs(start)))

        def inside(t, u, row):
            return rate(within(t, start, far), u, row)

        at = jnp.append(jnp.clip(times, start, stop), stop)
        whole = start, far, state
        made = solved(method, inside, whole, args, times=at, jumps=jumps(start, state))
        made = jnp.where(stop > start, made, state)
        found = jnp.where((times >= start)[:, None], made[:-1], found)
        state = change(i, stop, made[-1])
        found = jnp.where((times == stop)[:, None], state, found)
        return (stop, state, found), None

    begun = (*first, jnp.zeros((len(times), *first[1].shape), first[1].dtype))
    (_, _, found), _ = jax.lax.scan(piece, begun, (jnp.arange(len(ends)), ends))
    return found


def solved(
    method: Diffrax,
    rate: Callable,
    span: tuple[Any, Any, Any],
    args: Any,
    *,
    times: Any = None,
    jumps: Any = None,
    see: Callable = lambda _t, state, _args: state,
    event: Any = None,
) -> Any:
    """Return what is seen of d state/dt = rate(t, state, args) at times; NaN where it fails.

    `span` is the first time, the last one, and the first state. Without times it is seen at the
    end; with an event it fails unless that ends it.
    """
    import diffrax

    adjoints = {"forward": diffrax.ForwardMode, "reverse": diffrax.RecursiveCheckpointAdjoint}
    start, stop, state = span
    # Kvaerno5 interpolates to third order only: let it step on the times themselves.
    at_times = method.solver == "Kvaerno5" and times is not None
    stops = ({"step_ts": times} if at_times else {}) | ({} if jumps is None else {"jump_ts": jumps})
    adaptive = diffrax.PIDController(rtol=method.rtol, atol=method.atol)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(finite(rate) if method.derivatives == "forward" else rate),
        getattr(diffrax, method.solver)(),
        t0=start,
        t1=stop,
        dt0=None,
        y0=state,
        args=args,
        saveat=diffrax.SaveAt(ts=times, t1=times is None, fn=see),
        stepsize_controller=(
            diffrax.ClipStepSizeController(adaptive, **stops) if stops else adaptive
        ),
        event=event,
        max_steps=method.max_steps,
        throw=False,
        adjoint=adjoints[method.derivatives](),
    )
    results = diffrax.RESULTS
    fine = solution.result == (results.event_occurred if event else results.successful)
    return jnp.where(fine, jnp.asarray(solution.ys), jnp.nan)


def finite(rate: Callable) -> Callable:
    """Return a rate without NaN or infinities, at which linear solvers of tangents raise.

    What stands in their place is so large that the step is refused all the same.
    """

    def bounded(*given: Any) -> Any:
        change = rate(*given)
        return jnp.where(jnp.isfinite(change), change, jnp.finfo(change.dtype).max ** 0.25)

    return bounded
