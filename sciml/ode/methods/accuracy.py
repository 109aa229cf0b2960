"""How far a fixed step is off: solutions beside those of half the step."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sciml.ode import conditions, prior
from sciml.ode.doses import described
from sciml.ode.methods.runge_kutta import (
    RungeKutta4,
    nodes_of,
    substeps_per_gap,
    trajectory_in_steps,
)
from sciml.ode.mistakes import check_field
from sciml.ode.system import System, initial_state, rate, stops

CHECKED = 64  # assumed: draws from the prior; what 7 % of samples suffer, 99 % of checks see
SHARE = 0.02  # assumed: of samples that may be further off: one that stands between two regimes
MOST = 64  # substeps: beyond them an adaptive method is faster
FAR = 1e3  # assumed: times the median height of a channel, from where a solution is looked at
EXPLODED = 0.1  # assumed: difference of half the step, in parts of the height, that is no solution
SKIPPED = 0.05  # assumed: as far off, an adaptive method has not seen something
SKIM = 2**15  # assumed: fixed steps that take less than a second
LEAST = 1e-3  # assumed: spread of a channel that hardly varies, in parts of its largest value
CLOCK = 0.01  # assumed: rounding of a time, in parts of the gap between two of them
STIFF = "Diffrax('Kvaerno5', dtype='float64')"  # in float32 its Newton steps often fail
KEPT: dict[Any, tuple[RungeKutta4, Any]] = {}  # steps that were chosen, the last ones

Errors = Float[np.ndarray, " sample"]


class StepWarning(UserWarning):
    """Steps are too long for some samples.

    >>> import warnings
    >>> import sciml
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     coarse = sciml.ode.RungeKutta4(substeps=1)
    ...     data = sciml.simulate(sciml.ode.van_der_pol(), 20, method=coarse)
    >>> [x.category.__name__ for x in told]
    ['StepWarning']
    """


def refinements(system: System, see: Callable, dtype: str) -> Callable[[np.ndarray, int], Any]:
    """Return (parameters, number of substeps) ↦ what is observed; one program for all numbers."""
    one = trajectory_in_steps(system)
    program = jax.jit(lambda theta, count: jax.vmap(lambda p: see(one(p, count)))(theta))

    @cache
    def compiled(shape: tuple[int, ...]) -> Any:
        like = jax.ShapeDtypeStruct(shape, dtype), jax.ShapeDtypeStruct((), np.int32)
        return program.lower(*like).compile()

    def solve(theta: np.ndarray, count: int) -> np.ndarray:
        # Compiled before it is called, also within what others trace: there, constants of the
        # program would be computed one by one, each by a program of its own.
        with jax.enable_x64(dtype == "float64"):
            run = compiled(theta.shape)
            with jax.ensure_compile_time_eval():
                return np.asarray(run(np.asarray(theta, dtype), np.int32(count)), np.float64)

    return solve


def check_clock(system: System, method: Any, row: Float[Any, " param"]) -> None:
    """Refuse times, such as Julian dates, whose gaps float32 does not resolve, if that matters.

    Fixed steps are as long as they should be: they suffer only where the rate depends on time.
    """
    times = nodes_of(system)
    if method.dtype != "float32" or len(times) < 2:
        return
    step, gap = np.spacing(np.abs(times).astype(np.float32))[1:], np.diff(times)
    worst = int((step / gap).argmax())
    if step[worst] / 2 <= CLOCK * gap[worst]:
        return
    if isinstance(method, RungeKutta4) and not reads_time(system, row):
        return
    raise ValueError(
        f"{system.name!r} is solved in float32, which counts in steps of {step[worst]:.3g} about "
        f"the time {times[worst + 1]:.10g}, and the gap there is {gap[worst]:.3g}: subtract the "
        f"first time from all, in the equation too, or pass a method with dtype='float64'"
    )


def reads_time(system: System, row: Float[Any, " param"]) -> bool:
    """Tell whether the rate depends on the time itself, as a season's does."""
    state = jax.eval_shape(lambda p: initial_state(system, p), row)
    time = jax.ShapeDtypeStruct((), state.dtype)
    slope = lambda t, u, p: rate(system, p)(t, u)  # noqa: E731
    program = jax.make_jaxpr(slope)(time, state, row).jaxpr
    read = [v for equation in program.eqns for v in equation.invars] + program.outvars
    return bool(stops(system)) or any(v is program.invars[0] for v in read)


def lost(solutions: np.ndarray) -> np.ndarray:
    """Tell which samples have no finite solution."""
    return np.logical_not(np.isfinite(solutions).reshape(len(solutions), -1).all(axis=1))


def differences(coarse: np.ndarray, fine: np.ndarray) -> Errors:
    """Return the largest difference of each sample, in parts of the spread of its channel.

    Samples that fail alike do not differ; one that fails with one step only is infinitely off.
    """
    failed = [lost(part) for part in (coarse, fine)]
    kept = ~(failed[0] | failed[1])
    found = np.where(failed[0] == failed[1], 0.0, np.inf)
    if kept.any():
        axes = tuple(range(fine.ndim - 1)) if fine.ndim == 3 else None
        largest = np.abs(fine[kept]).max(axis=axes)
        sd = np.maximum(fine[kept].std(axis=axes), LEAST * largest)
        sd = np.where(sd > 0, sd, 1.0)
        off = np.abs(coarse[kept] - fine[kept]) / sd
        found[kept] = off.reshape(len(off), -1).max(axis=1)
    return found


def adequate(system: System, see: Callable, tolerance: float = 0.01) -> RungeKutta4:
    """Return the classical method with as few substeps as meet a tolerance on draws of the prior.

    Substeps are doubled from the default on, until at most `SHARE` of 64 draws differ more from
    those of half the step, or fail where finer ones do not. Where `MOST` do not meet it, those that
    came nearest are taken, with a `StepWarning`.
    """
    priors = json.dumps(prior.described(system.prior))
    parts = (system.vector_field, system.initial_state, system.observation, system.jumps)
    given = json.dumps([conditions.described(system), described(system.doses)])
    key = (system.name, *parts, priors, given, tolerance)
    if key not in KEPT:
        while len(KEPT) >= CHECKED:
            del KEPT[next(iter(KEPT))]
        KEPT[key] = refined(system, see, tolerance)
    method, message = KEPT[key]
    if message:
        warnings.warn(message, StepWarning, stacklevel=4)
    return method


def refined(system: System, see: Callable, tolerance: float) -> tuple[RungeKutta4, str | None]:
    """Return what `adequate` chooses, and what is to be said of it."""
    theta = prior.draw(system.prior, CHECKED, jax.random.key(0), system.name)
    theta = conditions.rows(system, theta, jax.random.key(0))
    method = RungeKutta4(tolerance=tolerance)
    check_field(system, jnp.asarray(theta[0], jnp.float32))
    check_clock(system, method, jnp.asarray(theta[0], jnp.float32))
    solve = refinements(system, see, method.dtype)
    found, coarse = {}, solve(theta, method.substeps)
    count, hopeless = method.substeps, None
    while count <= MOST:
        fine = solve(theta, 2 * count)
        errors = differences(coarse, fine)
        if (alike := lost(coarse) & lost(fine)).any():  # both steps may be too long for them
            hopeless = lost(solve(theta, 2 * MOST)) if hopeless is None else hopeless
            errors[alike & ~hopeless] = np.inf
        found[count], coarse = errors, fine
        if not too_far(errors, tolerance):
            return replace(method, substeps=count), None
        count *= 2
    best = min(found, key=lambda n: (found[n] > tolerance).mean())
    method = replace(method, substeps=best)
    return method, told(system, method, found[best])


def too_far(errors: Errors, tolerance: float) -> bool:
    """Tell whether more than `SHARE` are off; of a single sample, whether it is far off."""
    wrong = errors > tolerance
    clearly = wrong.sum() > 1 or errors.max() > 10 * tolerance
    return bool(clearly and wrong.mean() > SHARE)


def told(system: System, method: RungeKutta4, errors: Errors) -> str:
    """Return what is wrong with a step, and what to do."""
    wrong = errors > method.tolerance
    return (
        f"{wrong.sum()} of {len(errors)} solutions of {system.name!r} with {method} differ from "
        f"those of half the step, by up to {errors.max():.2g} of the spread of what is observed; "
        f"at most {100 * SHARE:g} % may by more than {method.tolerance:g}. Where the equation "
        "jumps, as a stimulus does, name the times in System.jumps, or say it by System.doses; "
        f"else take method={STIFF}, or RungeKutta4 with more substeps. Of a chaotic system, which "
        "never meets this over long times, say RungeKutta4(tolerance=math.inf)"
    )


def is_judged(problem: Any, method: Any) -> bool:
    """Tell whether the step of a method is fixed, and to be judged."""
    fixed = isinstance(problem, System) and isinstance(method, RungeKutta4)
    return fixed and not np.isinf(method.tolerance)


def warn_of_step(system: System, see: Callable, method: Any, theta: np.ndarray) -> None:
    """Warn where a given fixed step is too long for some of the parameters to be solved."""
    if not is_judged(system, method):
        return
    check_field(system, jnp.asarray(theta[0], jnp.float32))
    rows = np.unique(np.linspace(0, len(theta) - 1, CHECKED).round().astype(int))
    errors = errors_of(system, see, method, theta[rows])
    if too_far(errors, method.tolerance):
        warnings.warn(told(system, method, errors), StepWarning, stacklevel=3)


def warn_of_skipped(
    system: System, see: Callable, method: Any, theta: np.ndarray, clean: np.ndarray
) -> None:
    """Warn where an adaptive method is far from fine fixed steps, which agree with finer ones.

    It bounds the error of what it sees, and may step over a pulse. Where fixed steps fail, as of
    stiff systems, they say nothing.
    """
    many = int(np.clip(SKIM // 8 // np.prod(clean.shape[1:]), 8, CHECKED))
    rows = np.unique(np.linspace(0, len(theta) - 1, many).round().astype(int))
    count = int(np.clip(SKIM // len(system.observation.times), 8, 4 * MOST))
    solve = refinements(system, see, method.dtype)
    fine, finer = (solve(theta[rows], n) for n in (count, 2 * count))
    off, doubt = differences(clean[rows], finer), differences(fine, finer)
    wrong = np.isfinite(off) & (off > SKIPPED) & (off > 3 * doubt)
    if wrong.sum() > SHARE * len(rows):
        warnings.warn(
            f"{wrong.sum()} of {len(rows)} solutions of {system.name!r} with {method} differ from "
            f"{2 * count} fixed steps to a gap by up to {off[wrong].max():.2g} of the spread of "
            "what is observed: it may step over short pulses. Name the times at which the equation "
            "jumps in System.jumps, or say it by System.doses; else take finer tolerances (atol is "
            "in the unit of the states)",
            StepWarning,
            stacklevel=3,
        )


def without_exploded(
    system: System, see: Callable, method: Any, theta: np.ndarray, clean: np.ndarray
) -> np.ndarray:
    """Return solutions (sample, time, [channel]) with NaN for those that the step has made large.

    Beyond its limit of stability a step multiplies what it should damp, and a number of 1e30 is
    finite. Solutions that reach `FAR` times what is usual are solved again with half the step;
    where the two differ by more than a tenth, they have failed, and a `StepWarning` says so.
    """
    heights = np.abs(clean).max(axis=1).reshape(len(clean), -1)
    known = np.isfinite(heights).all(axis=1)
    if not known.any():
        return clean
    usual = np.median(heights[known], axis=0)
    suspect = np.flatnonzero(known & ((heights > FAR * usual) & (usual > 0)).any(axis=1))
    if not suspect.size:
        return clean
    solve = refinements(system, see, method.dtype)
    count, wrong = 2 * substeps_per_gap(system, method), []
    for first in range(0, suspect.size, CHECKED):
        rows = suspect[first : first + CHECKED]
        fine = solve(theta[np.resize(rows, CHECKED)], count)[: rows.size]
        flat, own = (x.reshape(rows.size, -1) for x in (fine, clean[rows].astype(np.float64)))
        off = np.abs(flat - own).max(axis=1)
        wrong.extend(rows[~(off <= EXPLODED * np.abs(own).max(axis=1))])  # NaN too
    if not wrong:
        return clean
    warnings.warn(
        f"{len(wrong)} of {len(clean)} solutions of {system.name!r} with {method} grew beyond "
        f"{FAR:g} times the usual by the step alone: they count as failed. Take more substeps, or "
        f"method={STIFF}",
        StepWarning,
        stacklevel=3,
    )
    clean = np.array(clean)
    clean[wrong] = np.nan
    return clean


def errors_of(system: System, see: Callable, method: RungeKutta4, theta: np.ndarray) -> Errors:
    """Return how far the solutions are off, sample by sample."""
    count = substeps_per_gap(system, method)
    solve = refinements(system, see, method.dtype)
    return differences(solve(theta, count), solve(theta, 2 * count))
