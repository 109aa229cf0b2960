"""Doses into states at given times: at once, or over a while."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml._numbers import as_numbers, short
from wse._numbers import is_whole

Times = float | tuple[float, ...]
Amount = float | str
SNAP = 1e-9  # of the time: within it a dose is at a time of the observation, but for rounding


@dataclass(frozen=True)
class Bolus:
    """Add an amount to a state at once: u[state] ← u[state] + amount.

    What is observed at that very time is the state after it; observe a little earlier to see that
    before. A factor, as of bioavailability, belongs to the equation or to the condition.

    Args:
        state: its index, from 0.
        time: one, or several for a schedule.
        amount: a number, or the name of a parameter or a condition, in the unit of the state.

    Raises:
        ValueError: a state or time that cannot be, or an amount that is not finite.

    >>> from sciml.ode import Bolus
    >>> Bolus(state=0, time=(0.0, 12.0, 24.0), amount="dose")
    Bolus(state=0, time=(0.0, 12.0, 24.0), amount='dose')
    """

    state: int
    time: Times
    amount: Amount

    def __post_init__(self):
        check_dose(self)


@dataclass(frozen=True)
class Infusion:
    """Add an amount to a state evenly over a while: du[state]/dt gains amount / duration.

    Args:
        state: its index, from 0.
        time: of the begin; several for a schedule.
        amount: in all, of each; a number, or the name of a parameter or a condition.
        duration: from begin to end.

    Raises:
        ValueError: as `Bolus`, or the duration is not positive.

    >>> Infusion(state=0, time=6.0, duration=0.5, amount=30.0).amount
    30.0
    """

    state: int
    time: Times
    amount: Amount
    duration: float

    def __post_init__(self):
        check_dose(self)
        lasts = as_numbers(self.duration, "duration")
        if lasts.ndim or isinstance(self.duration, bool) or not 0 < lasts < np.inf:
            raise ValueError(
                f"Infusion.duration is {self.duration!r}; it must be a positive time: what is "
                "given at once is a Bolus"
            )
        object.__setattr__(self, "duration", float(lasts))


Dose = Bolus | Infusion


def times_of(dose: Any) -> tuple[float, ...]:
    """Return all times of a dose."""
    return tuple(np.atleast_1d(np.asarray(dose.time, float)).tolist())


def described(doses: Iterable[Dose]) -> list[dict[str, Any]]:
    """Return what a file must say of doses."""
    return [{"kind": type(dose).__name__, **asdict(dose)} for dose in doses]


def check_dose(dose: Any) -> None:
    """Refuse what no dose can be; keep Python's own numbers."""
    owner, amount = type(dose).__name__, dose.amount
    if not is_whole(dose.state, 0):
        raise ValueError(f"{owner}.state is {dose.state!r}; it must be an index, from 0 on")
    times = as_numbers(dose.time, f"{owner}.time")
    several = np.atleast_1d(times)
    alone = isinstance(dose.time, bool) or times.ndim > 1 or not times.size
    if alone or not np.isfinite(several).all() or len(np.unique(several)) < several.size:
        raise ValueError(
            f"{owner}.time is {short(dose.time)}; it must be a finite time, or several, each once"
        )
    number = as_numbers(amount, f"{owner}.amount")
    if not isinstance(amount, str):
        if isinstance(amount, bool) or number.ndim or not np.isfinite(number):
            raise ValueError(
                f"{owner}.amount is {short(amount)}; it must be a finite number, or the name of a "
                "parameter or a condition"
            )
        object.__setattr__(dose, "amount", float(number))
    object.__setattr__(dose, "state", int(dose.state))
    object.__setattr__(dose, "time", tuple(times.tolist()) if times.ndim else float(times))


def check_doses(system: Any, names: tuple[str, ...]) -> None:
    """Refuse what is no dose, one before the start, or of an amount that has no such name."""
    for dose in system.doses:
        if not isinstance(dose, Dose):
            raise TypeError(
                f"doses of {system.name!r} hold {dose!r}; each must be a Bolus or an Infusion, as "
                "doses=(Bolus(state=0, time=12.0, amount=100.0),)"
            )
        if min(times_of(dose)) < system.observation.start:
            raise ValueError(
                f"a dose of {system.name!r} is at {min(times_of(dose))}, before the start at "
                f"{system.observation.start}: set Observation(start=), or add it to the first state"
            )
        if isinstance(dose.amount, str) and dose.amount not in names:
            raise ValueError(
                f"the amount of a dose of {system.name!r} is {dose.amount!r}; it must be a number, "
                f"or one of {', '.join(names)}"
            )


def edges(system: Any) -> tuple[float, ...]:
    """Return the times at which infusions begin and end."""
    found = [
        snapped(system, t + after)
        for dose in system.doses
        if isinstance(dose, Infusion)
        for t in times_of(dose)
        for after in (0.0, dose.duration)
    ]
    return tuple(found)


def kicks(system: Any) -> list[tuple[float, Bolus]]:
    """Return (time, dose) of all that is given at once, in order."""
    found = [
        (snapped(system, t), dose)
        for dose in system.doses
        if isinstance(dose, Bolus)
        for t in times_of(dose)
    ]
    return sorted(found, key=lambda pair: pair[0])


def snapped(system: Any, time: float) -> float:
    """Return the time of observation that a time is, but for rounding; else the time."""
    nodes = system.observation.nodes
    nearest = float(nodes[np.abs(nodes - time).argmin()])
    return nearest if abs(nearest - time) <= SNAP * max(1.0, abs(time)) else time


def cuts_of(system: Any) -> np.ndarray:
    """Return the times after the start at which something is given at once."""
    return np.unique([t for t, _ in kicks(system) if t > system.observation.start])


def steps_of(
    system: Any, values: dict[str, Any], ends: np.ndarray, state: Float[Array, " state"]
) -> Float[Array, "end state"]:
    """Return by how much the state jumps at each of some times, of which all doses are one."""
    found = jnp.zeros((len(ends), *state.shape), state.dtype)
    for time, dose in kicks(system):
        at = np.flatnonzero(ends == time)
        found = found.at[at, dose.state].add(amount_of(dose, values, state.dtype))
    return found


def amount_of(dose: Dose, values: dict[str, Any], dtype: Any) -> Any:
    """Return the amount of a dose, by the values of named ones."""
    given = dose.amount
    return jnp.asarray(values[given] if isinstance(given, str) else given, dtype)


def infused(system: Any, values: dict[str, Any]) -> Callable[[Any, Any], Any] | None:
    """Return (t, du/dt) ↦ du/dt with what flows in; None where nothing does."""
    flows = [dose for dose in system.doses if isinstance(dose, Infusion)]
    if not flows:
        return None
    spans = [
        np.array([(snapped(system, t), snapped(system, t + dose.duration)) for t in times_of(dose)])
        for dose in flows
    ]

    def more(time: Any, slope: Any) -> Any:
        for dose, span in zip(flows, spans, strict=True):
            begin, end = jnp.asarray(span.T, slope.dtype)
            running = ((time >= begin) & (time < end)).sum()
            amount = amount_of(dose, values, slope.dtype)
            slope = slope.at[dose.state].add(running * amount / dose.duration)
        return slope

    return more


def within(time: Any, start: Any, end: Any) -> Any:
    """Return a time inside a gap, so that a field that jumps at its ends is the one within."""
    low, high = (jnp.asarray(t, jnp.result_type(time)) for t in (start, end))
    return jnp.clip(time, jnp.nextafter(low, high), jnp.nextafter(high, low))
