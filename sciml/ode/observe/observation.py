"""What is seen of a solution, and when."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sciml._numbers import as_numbers, real, short
from wse._numbers import is_whole


@dataclass(frozen=True, repr=False)
class Observation:
    """Some states at given times, as they are or as functions of them.

    Args:
        states: indices of the observed states, counted from 0.
        times: increasing times in the system's unit, which labelled ones may say; kept as a tuple.
        transform: maps the observed states (time, state) of ONE sample to channels
            (time, channel), or to a vector of features (feature,) such as moments; pure JAX.
        start: the time of the initial state, at which solving begins.
        unit: of the times, by default that which labelled ones say; a system refuses another.

    Raises:
        ValueError: no state, a negative one, no times, or times that do not increase from `start`.

    >>> Observation.regular(interval=0.5, length=3).times
    (0.0, 0.5, 1.0)
    """

    states: Sequence[int]
    times: Sequence[float] | np.ndarray
    transform: Callable[[Any], Any] | None = None
    start: float = 0.0
    unit: str = field(default="", compare=False)

    def __post_init__(self):
        """Keep tuples of plain numbers; check every value."""
        said = str(getattr(self.times, "attrs", {}).get("units", "")).strip()
        object.__setattr__(self, "unit", said or self.unit)
        if not isinstance(self.states, Sequence | np.ndarray):
            raise TypeError(
                f"Observation.states is {self.states!r}; it must hold indices: ({self.states!r},)"
            )
        if not len(self.states) or not all(is_whole(state, 0) for state in self.states):
            raise ValueError(
                f"Observation.states is {self.states}; it must hold indices of states, from 0 on"
            )
        times, start = real(self.times, "Observation.times"), as_numbers(self.start, "start")
        if times.ndim != 1 or start.ndim or not np.isfinite(start):
            raise ValueError(
                f"Observation.times is {short(self.times)} and start {short(self.start)}; they "
                "must be numbers, as times=(1.0, 2.0) and start=0.0, in the system's unit"
            )
        object.__setattr__(self, "states", tuple(int(state) for state in self.states))
        object.__setattr__(self, "times", tuple(times.tolist()))
        if not self.times:
            raise ValueError("Observation.times is empty; there must be at least one time")
        steps = np.diff([self.start, *self.times])
        steps[0] = steps[0] or 1.0  # the first time may be the start
        allowed = np.isfinite(steps) & (steps > 0)
        if not allowed.all():
            wrong = int(np.argmin(allowed))
            raise ValueError(
                f"Observation.times[{wrong}] is {self.times[wrong]}; times must be finite and "
                f"increase from start={self.start} on: sort them and drop repeats"
            )

    def __repr__(self) -> str:
        """Return one line: states, times, and whether they are transformed."""
        seen = f"states={self.states}, {len(self.times)} times, {self.times[0]:g} to "
        changed = "" if self.transform is None else ", transformed"
        return f"Observation({seen}{self.times[-1]:g}{changed})"

    @classmethod
    def regular(
        cls,
        *,
        interval: float,
        length: int,
        states: Sequence[int] = (0,),
        transform: Callable[[Any], Any] | None = None,
    ) -> "Observation":
        """Return an observation at 0, interval, …, (length − 1) interval.

        Raises:
            ValueError: the interval is not positive, or there are no times.
        """
        if not 0 < interval < math.inf:
            raise ValueError(f"the interval is {interval}; it must be positive")
        if length < 1:
            raise ValueError(f"the length is {length}; it must be at least 1")
        return cls(states, np.arange(length) * interval, transform)

    @property
    def nodes(self) -> np.ndarray:
        """`start` and all later times: the ends of the gaps that a solver crosses."""
        later = np.asarray(self.times)
        return later if later[0] == self.start else np.concatenate([[self.start], later])

    @property
    def interval(self) -> float | None:
        """The length of all gaps if they are equal, else None."""
        gaps = np.diff(self.nodes)
        if not len(gaps):
            return None
        expected = self.start + np.arange(len(gaps) + 1) * gaps[0]
        equal = np.allclose(self.nodes, expected, rtol=1e-9, atol=1e-9 * gaps[0])
        return float(gaps[0]) if equal else None
