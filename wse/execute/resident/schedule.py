"""When each segment works on which part: one forward, one backward, as soon as both can.

Time is counted in ticks; in each, every segment does at most one task. A backward task goes before
a forward one. A segment with n segments after it takes n + 1 parts forward before the first comes
back, no more (the schedule known as 1F1B): so few activations wait. Where a segment must see the
whole batch (a barrier) and everything stands still, those that wait take one more part, up to all
of them: before the barrier the schedule is then GPipe's, all forward and all back.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wse.execute.resident.segments import Flow, Segment


@dataclass(frozen=True)
class Task:
    """A segment's work on a part, or on the whole batch.

    Attributes:
        segment: its place in the flow.
        part: the part's number; None: the whole batch.
        back: whether this is the backward pass.
    """

    segment: int
    part: int | None
    back: bool = False


def order(flow: Flow, waits: Sequence[bool]) -> tuple[tuple[Task, int], ...]:
    """Return all tasks of a step, each with its tick, in an order in which they can run.

    Args:
        flow: what flows.
        waits: for each segment, whether its backward pass needs its forward pass; that of a sum,
            for one, does not.
    """
    needs = _needs(flow, waits)
    queues = {
        (s, back): [task for task in needs if (task.segment, task.back) == (s, back)]
        for s in range(len(flow.segments))
        for back in (False, True)
    }
    trained = [i for i, x in enumerate(flow.segments) if x.each and x.demand.any]
    room = {s: len(trained) - place for place, s in enumerate(trained)}
    held: Counter[int] = Counter()
    done: set[Task] = set()
    found: list[tuple[Task, int]] = []
    tick = 0
    while len(found) < len(needs):
        ready = {
            s: task for s in range(len(flow.segments)) if (task := _next(queues, s, needs, done))
        }
        now = [t for s, t in ready.items() if t.back or s not in room or held[s] < room[s]]
        if not now:
            for s in ready:
                room[s] += 1
            continue
        for task in now:
            queues[task.segment, task.back].pop(0)
            held[task.segment] += -1 if task.back else 1
            found.append((task, tick))
        done.update(now)
        tick += 1
    return tuple(found)


def _next(
    queues: dict[tuple[int, bool], list[Task]],
    segment: int,
    needs: dict[Task, frozenset[Task]],
    done: set[Task],
) -> Task | None:
    for back in (True, False):
        queue = queues[segment, back]
        if queue and needs[queue[0]] <= done:
            return queue[0]
    return None


def _needs(flow: Flow, waits: Sequence[bool]) -> dict[Task, frozenset[Task]]:
    """For each task those that must have been done before."""
    makes = {v: s for s, segment in enumerate(flow.segments) for v in segment.writes}
    takes: dict[int, list[int]] = {}
    for s, segment in enumerate(flow.segments):
        for value in segment.moved:
            takes.setdefault(value, []).append(s)
    found: dict[Task, frozenset[Task]] = {}
    for s, segment in enumerate(flow.segments):
        for part in runs(flow, segment):
            found[Task(s, part)] = frozenset(
                Task(makes[v], p)
                for v in segment.reads
                if v in makes
                for p in _sides(flow, flow.segments[makes[v]], segment, v, part)
            )
            if segment.demand.any:
                own = {Task(s, part)} if waits[s] else set[Task]()
                found[Task(s, part, back=True)] = frozenset(own) | {
                    Task(c, p, back=True)
                    for v in segment.given
                    for c in takes.get(v, ())
                    for p in _sides(flow, flow.segments[c], segment, v, part)
                }
    return found


def runs(flow: Flow, segment: Segment) -> Sequence[int | None]:
    """The parts on which a segment works."""
    return range(flow.parts) if segment.each else (None,)


def _sides(
    flow: Flow, other: Segment, segment: Segment, value: int, part: int | None
) -> Sequence[int | None]:
    """The parts of the other side of a value that one part of this side waits for."""
    if segment.each and other.each and value in flow.split:
        return (part,)
    return runs(flow, other)
