"""The solution of a model under all conditions of a PEtab problem at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.ode.methods.diffrax_method import Diffrax, in_pieces, solved
from sciml.ode.sbml.formula import TIME, Formula
from sciml.ode.sbml.model import Model

Sets = Mapping[str, Formula]  # what an event sets, all at once

FAR = 1e6  # assumed: in the time unit of the model; by then states are taken to rest
RESTS = 1e-9  # assumed: relative change per time at which a state is taken to rest


@dataclass(frozen=True)
class Settings:
    """What conditions say of names: (condition, name) arrays.

    Attributes:
        names: what conditions or parameters may set.
        number: a number, or NaN.
        index: which parameter, or −1. A name that has neither keeps the model's value.
    """

    names: tuple[str, ...]
    number: np.ndarray
    index: np.ndarray

    def values(self, model: Model, parameters: Any, row: Any) -> tuple[dict[str, Any], Any]:
        """Return name → value under a condition, and name → whether the condition sets it."""
        number, index = jnp.asarray(self.number)[row], jnp.asarray(self.index)[row]
        said = value_of(number, index, parameters)
        given = dict(zip(self.names, (index >= 0) | ~jnp.isnan(number), strict=True))
        values: dict[str, Any] = dict(model.values)
        for i, name in enumerate(self.names):
            values[name] = jnp.where(given[name], said[i], values.get(name, jnp.nan))
        return values, given


def value_of(number: Any, index: Any, parameters: Any) -> Any:
    """Return the parameters of those indices, and numbers where they are negative."""
    return jnp.where(index < 0, number, parameters[index])


@dataclass(frozen=True)
class Course:
    """One way through the model: rest under one condition first, or not, then another.

    Attributes:
        before: rows of `Settings`, one per course; −1: none.
        rows: rows of the conditions that are measured.
        times: (course, time), increasing, the last one repeated.
        ends: (course, piece), times of events, and the last time, repeated.
        fires: (course, piece), which of the events happens at an end, from 1 on; 0: none.
    """

    before: np.ndarray
    rows: np.ndarray
    times: np.ndarray
    ends: np.ndarray
    fires: np.ndarray


def solution(
    model: Model, settings: Settings, course: Course, method: Diffrax, events: Sequence[Sets]
) -> Any:
    """Return the map from all parameters to states (course, time, state) and all values at start.

    `events` are what `course.fires` counts.
    """
    rests = bool((course.before >= 0).any())
    if rests and not (course.before >= 0).all():
        raise ValueError(
            f"some measurements have a preequilibrationConditionId and {(course.before < 0).sum()} "
            "others have none; give each "
            "one, or write two problems"
        )

    def one(parameters, before, row, *when):
        values, given = settings.values(model, parameters, row)
        env, state = model.start(values, given)
        if rests:
            first, said = settings.values(model, parameters, before)
            start, rest = model.start(first, said)
            resting = at_rest(model, method, constants_of(model, start), rest)
            kept = jnp.stack([given.get(name, jnp.asarray(False)) for name in model.states])
            state = jnp.where(kept, state, resting)
        constants = constants_of(model, env)
        return along(model, method, constants, state, (*when, events)), constants

    batch = jax.vmap(one, in_axes=(None, 0, 0, 0, 0, 0))
    parts = np.maximum(course.before, 0), course.rows, course.times, course.ends, course.fires
    return lambda p: batch(p, *parts)


def constants_of(model: Model, env: Any) -> dict[str, Any]:
    """Return the values that neither rules nor the time change."""
    return {name: x for name, x in env.items() if name not in model.rules and name != TIME}


def along(model: Model, method: Diffrax, constants: Any, state: Any, when: Any) -> Any:
    """Return the states at given times, events between them; NaN where the solver fails."""
    times, ends, fires, events = when
    choices = [lambda _t, state: state, *(fired(model, constants, sets) for sets in events)]

    def change(i, time, state):
        return jax.lax.switch(fires[i], choices, time, state)

    def jumps(start, state):
        env = model.env(start, state, constants)
        found = jnp.stack([jnp.asarray(one(env), times.dtype) for one in model.jumps])
        return jnp.sort(jax.lax.stop_gradient(jnp.where(jnp.isfinite(found), found, -1)))

    return in_pieces(
        method,
        model.rate,
        (jnp.zeros((), times.dtype), state),
        constants,
        times=times,
        ends=ends,
        change=change,
        jumps=jumps if model.jumps else lambda _t, _state: None,
    )


def fired(model: Model, constants: Any, sets: Sets) -> Any:
    """Return (time, state) ↦ the state after an event."""

    def after(time, state):
        env = model.env(time, state, constants)
        changed = {name: one(env) for name, one in sets.items()}
        return model.packed({**env, **changed}).astype(state.dtype)

    return after


def at_rest(model: Model, method: Diffrax, constants: Any, state: Any) -> Any:
    """Return the state to which a condition leads, before time 0; NaN where it never rests.

    What the rates read of the time is that of time 0: it has not begun.
    """
    import diffrax

    def before(_time, state, constants):
        return model.rate(0.0, state, constants)

    event = diffrax.Event(diffrax.steady_state_event(rtol=RESTS, atol=RESTS * 1e-3))
    return solved(method, before, (0.0, FAR, state), constants, event=event)[-1]
