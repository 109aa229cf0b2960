"""What would change the answer most: one thing at a time, the rest as it is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wse.machine import catalog
from wse.machine.cluster import Cluster
from wse.models.shapes.workload import Workload
from wse.predict.estimate import estimate
from wse.predict.result import Estimate


@dataclass(frozen=True)
class Lever:
    """One change, and the time of the whole run with it.

    Attributes:
        what: in words.
        total_s: with the change; NaN where it cannot be made.
        factor: over the time without.
        refused: why it cannot be made; empty: it can.
    """

    what: str
    total_s: int | float
    factor: int | float
    refused: str = ""


@dataclass(frozen=True)
class Unsure:
    """One phase whose time is not known well.

    Attributes:
        what: the phase.
        status: "sourced", "derived", "calibrated" or "assumed".
        least_s: the whole run if this phase takes the least that it may.
        most_s: if it takes the most.
    """

    what: str
    status: str
    least_s: int | float
    most_s: int | float

    @property
    def width_s(self) -> int | float:
        """By how much the answer hangs on it."""
        return self.most_s - self.least_s


def unsure(found: Estimate) -> tuple[Unsure, ...]:
    """The phases by how much the time of the whole run hangs on each, the most first."""
    total = found.total_s
    rows = [
        Unsure(
            phase.name,
            phase.status,
            total - phase.time_s + phase.interval_s[0],
            total - phase.time_s + phase.interval_s[1],
        )
        for phase in found.phases
    ]
    return tuple(sorted(rows, key=lambda x: -x.width_s))


def levers(found: Estimate) -> tuple[Lever, ...]:
    """What the user may change, by how much each changes the time of the whole run."""
    made = [_pulled(found, *change) for change in _changes(found)]
    able = [x for x in made if not x.refused]
    able.sort(key=lambda x: -max(x.factor, 1 / x.factor))
    return (*able, *(x for x in made if x.refused))


Change = tuple[str, Workload, Cluster, int, int]


def _changes(found: Estimate) -> Iterator[Change]:
    work, cluster, batch, samples = found.workload, found.cluster, found.batch, found.samples
    n = cluster.systems
    yield "twice the samples of a step", work, cluster, 2 * batch, max(samples, 2 * batch)
    if batch % (2 * n) == 0:
        yield "half the samples of a step", work, cluster, batch // 2, samples
    yield "ten times the samples", work, cluster, batch, 10 * samples
    if samples // 10 >= batch:
        yield "a tenth of the samples", work, cluster, batch, samples // 10
    more = replace(cluster, systems=4 * n)
    divided = -(-batch // (4 * n)) * 4 * n  # some more samples where the systems do not divide them
    yield f"{4 * n} systems, the step as it is", work, more, divided, samples
    share = f"{4 * n} systems, each with its share as now"
    yield share, work, more, 4 * batch, max(samples, 4 * batch)
    if any(x.sparsifiable for x in work.layers):
        yield "three quarters of the weights left out", work.sparse(0.25), cluster, batch, samples
    other = catalog.CS3 if cluster.machine.name == "CS-2" else catalog.CS2
    if cluster.machine.name != other.name:
        there = replace(cluster, machine=other, tree=None, store=None)
        yield f"{other.name} in its place", work, there, batch, samples
    mode = "streaming" if (cluster.mode or "pipelined") == "pipelined" else "pipelined"
    yield f"{mode} in place of the mode", work, replace(cluster, mode=mode), batch, samples


def _pulled(found: Estimate, what: str, work: Workload, cluster: Cluster, *counts: int) -> Lever:
    batch, samples = counts
    try:
        made = estimate(work, batch=batch, machine=cluster, samples=max(samples, batch))
    except ValueError as error:
        return Lever(what, float("nan"), float("nan"), str(error))
    return Lever(what, made.total_s, made.total_s / found.total_s)
