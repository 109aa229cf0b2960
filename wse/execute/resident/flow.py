"""One step of a net that is resident as a whole, with parts of a batch flowing through it."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, compress
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from wse.execute.buckets import reducer
from wse.execute.ledger import Counts, Ledger
from wse.execute.resident import lanes, schedule
from wse.execute.resident.schedule import Task
from wse.execute.resident.segments import Flow, Segment
from wse.execute.swarmx import SwarmX, held_bytes
from wse.execute.timeline import Run
from wse.execute.uneven import Axes, axes_of_programs
from wse.graph import derivatives
from wse.graph.derivatives import Programs, add
from wse.graph.equations import Weight
from wse.precision import Format

Place = tuple[int, int | None]  # a value, and a part of it or all


class Plan:
    """A flow made ready to run.

    With `keep`, what the backward pass needs is kept, not computed again; weights and their
    gradients are held in the format `half`, or as they are.
    """

    def __init__(self, flow: Flow, swarm: SwarmX, keep: bool, half: Format | None = None) -> None:
        self.flow, self.graph, self.swarm, self._half = flow, flow.graph, swarm, half
        self.counts: Counts = []
        self._compiled: dict[int, Programs] = {}
        start = {value: frozenset({axis}) for value, axis in flow.axes.items()}
        axes = axes_of_programs(flow.segments, start, lambda segment: segment.closed)
        for segment in flow.segments:
            if segment.program not in self._compiled:
                laid = self._laid(segment, axes[segment.program])
                self._compiled[segment.program] = self._compile(segment, laid, keep)
        self.tasks = schedule.order(flow, [self.compiled(x).waits for x in flow.segments])

    def compiled(self, segment: Segment) -> Programs:
        """The programs of a segment; backward takes the sums so far too."""
        return self._compiled[segment.program]

    def needed(self, segment: Segment) -> tuple[int, ...]:
        """The values that the backward pass reads again."""
        return tuple(compress(segment.reads, self.compiled(segment).reads))

    def places(self, segment: Segment, value: int, part: int | None) -> list[Place]:
        """Where a segment finds a value when it works on a part."""
        if value not in self.flow.split:
            return [(value, None)]
        return [(value, p) for p in ((part,) if segment.each else range(self.flow.parts))]

    @cached_property
    def constants(self) -> dict[int, jax.Array]:
        """The arrays that the training function closes over, on every system."""
        return {v: self.swarm.broadcast([x])[0] for v, x in self.graph.constants}

    @cached_property
    def uses(self) -> Counter[Place]:
        """How often each value, or part of one, is read in a step."""
        found: Counter[Place] = Counter()
        for task, _ in self.tasks:
            segment = self.flow.segments[task.segment]
            read = self.needed(segment) if task.back else segment.reads
            for value in read:
                found.update(self.places(segment, value, task.part))
        for value in self.graph.outputs:
            if isinstance(value, int):
                split = value in self.flow.split
                found.update((value, p) for p in (range(self.flow.parts) if split else (None,)))
        return found

    def _laid(self, segment: Segment, axes: Sequence[Axes]) -> core.ClosedJaxpr:
        # A system that runs a program of its own has all of its samples.
        return segment.closed if self.lanes(segment) else self.swarm.laid(segment.closed, axes)

    def _compile(self, segment: Segment, closed: core.ClosedJaxpr, keep: bool) -> Programs:
        asked, swarm = segment.demand, self.swarm
        made = derivatives.recompute(closed, asked)
        if asked.any:
            kept = derivatives.keep(closed, asked)
            # What needs nothing to come back, as a mean, need not wait for its own forward.
            made = kept if keep or not kept.waits else made
        forward, back = made.forward, derivatives.adding(made.backward, swarm.reduce)
        if self.lanes(segment):
            needed = list(compress(segment.reads, made.reads))
            forward = lanes.forward(made.forward, self.flow, segment, swarm.mesh)
            back = lanes.backward(made.backward, self.flow, segment, needed, swarm.mesh)
        return replace(made, forward=jax.jit(forward), backward=jax.jit(back, donate_argnums=4))

    def held(self, array: Any) -> Any:
        """A weight, or the gradient of one, as the wafer holds it."""
        return array if self._half is None else self._half.round(array)

    def visits(self, segment: Segment) -> list[tuple[str, Weight]]:
        """Where gradients add up: by weight; by visit too, where that of each is rounded."""
        layer = "" if self._half is None else segment.layer
        return [(layer, weight) for weight in segment.asked]

    def lanes(self, segment: Segment) -> bool:
        """Whether every system runs a program of its own, with gradients that are added up last."""
        return segment.each and self.flow.lanes > 1

    @cached_property
    def reducer(self) -> Callable[[Any], Any]:
        """The program that adds up the systems' gradients, in buckets."""
        return reducer(self.swarm.mesh)


class Step:
    """One step being run, whose loss is multiplied with `scale`."""

    def __init__(
        self, plan: Plan, weights: Mapping[Weight, Any], batch: Sequence[Any], scale: float
    ) -> None:
        self._plan, self._flow, self._weights = plan, plan.flow, weights
        self._batch = dict(zip(plan.graph.inputs, batch, strict=True))
        self._scale, self._ledger = scale, Ledger(plan.counts)
        self._now, self._log = self._ledger.now, self._ledger.log
        self._left = Counter(plan.uses)
        self._values: dict[Place, Any] = {(v, None): x for v, x in plan.constants.items()}
        self._kept: dict[Task, list[Any]] = {}
        self._cotangents: dict[Place, Any] = {}
        self._served: Counter[int] = Counter()  # parts that took a cotangent of the whole batch
        self._gradients: dict[tuple[str, Weight], Any] = {}
        # With one entry per system, not added up yet.
        self._apart: dict[tuple[str, Weight], Any] = {}

    def run(self) -> tuple[list[Any], dict[Weight, Any], Run]:
        """Do every task; return the outputs, the gradients and the record."""
        for task, tick in self._plan.tasks:
            segment = self._flow.segments[task.segment]
            work = self._back if task.back else self._on
            work(task, segment, tick)
        self._reduce()
        outputs = [self._output(x) for x in self._plan.graph.outputs]
        return outputs, self._totals(), self._ledger.run(self._plan.swarm.systems)

    def _totals(self) -> dict[Weight, Any]:
        """The gradient of each weight, of all its visits."""
        held, found = self._plan.held, dict[Weight, Any]()
        for (_, weight), gradient in self._gradients.items():
            found[weight] = add(held(gradient), found.get(weight))
        return {weight: held(gradient) for weight, gradient in found.items()}

    def _reduce(self) -> None:
        """Add up what every system found, in buckets of the whole net."""
        if not self._apart:
            return
        start, size = self._now(), held_bytes(self._apart.values())
        totals = jax.block_until_ready(self._plan.reducer(list(self._apart.values())))
        for visit, total in zip(self._apart, totals, strict=True):
            self._gradients[visit] = add(total, self._gradients.get(visit))
        self._apart.clear()
        self._log("gradient", "", start, size)

    def _on(self, task: Task, segment: Segment, tick: int) -> None:
        reads = [self._read(segment, v, task.part, tick) for v in segment.reads]
        start = self._now()
        compiled = self._plan.compiled(segment)
        writes, kept = compiled.forward([self._weights[w] for w in segment.weights], reads)
        # One task at a time: its seconds are its own, and collectives cannot starve each other.
        jax.block_until_ready((writes, kept))
        if segment.demand.any:
            self._kept[task] = kept
        for value, array in zip(segment.writes, writes, strict=True):
            place = (value, task.part if value in self._flow.split else None)
            old = self._values.get(place) if value in self._flow.sums else None
            self._values[place] = add(array, old)
        self._log("forward", segment.layer, start, when=(task.part, tick))
        self._drop(segment, segment.reads, task.part)

    def _back(self, task: Task, segment: Segment, tick: int) -> None:
        compiled, part = self._plan.compiled(segment), task.part
        needed = self._plan.needed(segment)
        reads = [self._read(segment, v, part, tick) for v in needed]
        cotangents = [self._cotangent(segment, v, part) for v in segment.given]
        start = self._now()
        places = [
            (v, part if segment.each and v in self._flow.axes else None) for v in segment.moved
        ]
        own = self._apart if self._plan.lanes(segment) else self._gradients
        visits = self._plan.visits(segment)
        sums = [own.pop(visit, None) for visit in visits]
        before = [self._cotangents.pop(place, None) for place in places]
        gradients, found = compiled.backward(
            [self._weights[w] for w in segment.weights],
            self._kept.pop(Task(task.segment, part), []),
            reads,
            cotangents,
            (sums, before),
        )
        jax.block_until_ready((gradients, found))
        own.update(zip(visits, gradients, strict=True))
        self._cotangents.update(zip(places, found, strict=True))
        self._log("backward", segment.layer, start, when=(part, tick))
        self._drop(segment, needed, part)

    def _read(self, segment: Segment, value: int, part: int | None, tick: int) -> Any:
        flow = self._flow
        places = self._plan.places(segment, value, part)
        found = [self._value(place, tick) for place in places]
        if len(found) > 1:
            return _joined(found, flow.axes[value])
        sliced = segment.each and value in flow.axes and value not in flow.split
        return self._cut(found[0], value, part) if sliced else found[0]

    def _value(self, place: Place, tick: int) -> Any:
        """A value or a part of one; samples come in when they are read first."""
        if place not in self._values:
            (value, part), start = place, self._now()
            array = self._batch[value]
            if part is None:
                (self._values[place],) = self._plan.swarm.broadcast([array])
            else:
                count = array.shape[0] // self._flow.parts
                rows = array[part * count : (part + 1) * count]
                (self._values[place],) = self._plan.swarm.deal([rows], count)
            self._log("batch", "", start, held_bytes([self._values[place]]), (part, tick))
        return self._values[place]

    def _cotangent(self, segment: Segment, value: int, part: int | None) -> Any:
        """What the loss feels of what a segment wrote; of the loss itself, its scale."""
        flow, graph = self._flow, self._plan.graph
        found: list[Any] = []
        if value == graph.outputs[0]:
            found.append(jnp.full((), self._scale, graph.values[value].dtype))
        if segment.each:
            found += self._pop((value, part))
            # What the whole batch gave back serves every part; the last one takes it away.
            whole = self._cotangents.get((value, None))
            if whole is not None:
                found.append(self._cut(whole, value, part) if value in flow.axes else whole)
                self._served[value] += 1
                if self._served[value] == flow.parts:
                    self._pop((value, None))
        else:
            found += self._pop((value, None))
            parts = [x for p in range(flow.parts) for x in self._pop((value, p))]
            found += [_joined(parts, flow.axes[value])] if parts else []
        return sum(found[1:], found[0])

    def _pop(self, place: Place) -> list[Any]:
        found = self._cotangents.pop(place, None)
        return [] if found is None else [found]

    def _cut(self, array: Any, value: int, part: int | None) -> Any:
        axis = self._flow.axes[value]
        count = array.shape[axis] // self._flow.parts
        assert part is not None
        return _slice(array, part * count, count, axis)

    def _drop(self, segment: Segment, values: Sequence[int], part: int | None) -> None:
        for value in values:
            for place in self._plan.places(segment, value, part):
                self._left[place] -= 1
                if not self._left[place]:
                    self._values.pop(place, None)
        self._ledger.count(self._held)

    def _output(self, found: Any) -> Any:
        if isinstance(found, Weight):
            return self._weights[found]
        if not isinstance(found, int):
            return found
        if found in self._flow.split:
            parts = [self._value((found, p), 0) for p in range(self._flow.parts)]
            return self._plan.swarm.collect(_joined(parts, self._flow.axes[found]))
        return self._plan.swarm.collect(self._value((found, None), 0))

    def _held(self) -> Any:
        kept = chain.from_iterable(self._kept.values())
        activations = chain(self._values.values(), kept, self._cotangents.values())
        gradients = chain(self._gradients.values(), self._apart.values())
        return self._weights.values(), gradients, activations


@partial(jax.jit, static_argnums=(2, 3))
def _slice(array: jax.Array, start: Any, count: int, axis: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(array, start, count, axis)


@partial(jax.jit, static_argnums=1)
def _joined(parts: list[jax.Array], axis: int) -> jax.Array:
    return jnp.concatenate(parts, axis)
