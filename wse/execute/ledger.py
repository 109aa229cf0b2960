"""The record of a step while it runs: what happened when, what was held."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from wse.execute.swarmx import held_bytes
from wse.execute.timeline import Event, Resident, Run

Counts = list[tuple[int, int, int]]


class Ledger:
    """Events and bytes of one step.

    Args:
        counts: bytes of weights, gradients and activations after each change, as a step of the same
            plan found them before; what is not there yet is counted and added. Every step of a plan
            holds the same, and counting takes longer than a small layer.
    """

    def __init__(self, counts: Counts) -> None:
        self._counts, self._began = counts, perf_counter()
        self._events: list[Event] = []
        self._resident: list[Resident] = []

    def now(self) -> float:
        """Seconds since the step began."""
        return perf_counter() - self._began

    def log(
        self,
        kind: str,
        layer: str,
        start: float,
        size: int = 0,
        when: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Note what began at `start` and has just ended; `when`: part and tick of a pipeline."""
        self._events.append(Event(kind, layer, start, self.now() - start, size, *when))

    def count(self, held: Callable[[], Iterable[Iterable[Any]]]) -> None:
        """Note the bytes of the weights, gradients and activations that `held` gives."""
        place = len(self._resident)
        if place == len(self._counts):
            weights, gradients, activations = map(held_bytes, held())
            self._counts.append((weights, gradients, activations))
        self._resident.append(Resident(self.now(), *self._counts[place]))

    def run(self, systems: int) -> Run:
        """All of it, frozen."""
        return Run(tuple(self._events), tuple(self._resident), systems)
