"""Layers cut once more, by what may flow through them in parts of a batch.

What works on each sample for itself becomes a segment that runs once per part; what must see the
whole batch (the statistics of a batch norm, a loss that is no mean) becomes a segment that runs
once, when all parts have arrived. A sum over samples is made part by part and added up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from typing import Any

from jax.extend import core

from wse.execute.primitives import UNCUT
from wse.execute.resident.samplewise import EACH, SAME, SUM, WHOLE, cut_axis, matched, role
from wse.graph import derivatives
from wse.graph.equations import Weight, key, needs, program, variables
from wse.graph.layers import Graph, Layer

NOTHING = derivatives.Demand((), (), ())


@dataclass(frozen=True)
class Segment:
    """Part of a layer that runs at once.

    Attributes:
        layer: the layer's name.
        each: whether it runs once for each part of the batch.
        weights: those of the layer that it reads.
        reads: values that it reads, by number.
        writes: values that it writes.
        closed: the computation, of weights, then reads, to writes; of one part if `each`.
        demand: which derivatives the backward pass asks of it; known when all segments are.
        program: segments of the same number share one compiled program; known with `demand`.
    """

    layer: str
    each: bool
    weights: tuple[Weight, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    closed: core.ClosedJaxpr
    demand: derivatives.Demand = NOTHING
    program: int = -1

    @property
    def asked(self) -> tuple[Weight, ...]:
        """The weights that have a gradient."""
        return tuple(compress(self.weights, self.demand.weights))

    @property
    def moved(self) -> tuple[int, ...]:
        """The values read that have a cotangent."""
        return tuple(compress(self.reads, self.demand.reads))

    @property
    def given(self) -> tuple[int, ...]:
        """The values written whose cotangents it takes."""
        return tuple(compress(self.writes, self.demand.writes))


@dataclass(frozen=True)
class Flow:
    """A graph whose batch flows through it in parts.

    Attributes:
        graph: of the whole batch.
        parts: how many.
        segments: in an order in which they can run.
        axes: for each value that lies in parts or can be cut into them, the axis.
        split: the values that are made or come in parts.
        sums: the values whose parts are added up.
        lanes: how many systems share a part, each with a program of its own samples.
    """

    graph: Graph
    parts: int
    segments: tuple[Segment, ...]
    axes: Mapping[int, int]
    split: frozenset[int]
    sums: frozenset[int]
    lanes: int = 1


def flow(whole: Graph, part: Graph, parts: int, lanes: int = 1) -> Flow:
    """Cut the layers of a graph into segments.

    Args:
        whole: traced on the batch.
        part: the same function traced on one system's samples of one of its equal parts.
        parts: how many.
        lanes: how many systems share a part.

    Raises:
        ValueError: the function is another program for a part than for the batch.
    """
    cut = _Cut(whole, parts * lanes)
    if len(whole.layers) != len(part.layers):
        raise ValueError(f"it has {len(whole.layers)} layers, of a part {len(part.layers)}")
    for a, b in zip(whole.layers, part.layers, strict=True):
        cut.layer(a, b)
    pairs = zip(whole.inputs, part.inputs, strict=True)
    for v, w in pairs:
        if cut.lies(v, whole.values[v], part.values[w]):
            cut.split.add(v)
    return cut.flow(lanes)


class _Cut:
    """The segments of a graph, being found."""

    def __init__(self, graph: Graph, parts: int) -> None:
        self.graph, self.parts = graph, parts
        self.axes: dict[int, int] = {}
        self.split: set[int] = set()
        self.sums: set[int] = set()
        self._found: list[tuple[core.ClosedJaxpr, Segment]] = []
        self._fresh = count(len(graph.values))  # numbers of values that layers do not exchange

    def layer(self, whole: Layer, part: Layer) -> None:
        same = (whole.weights, whole.reads, whole.writes) == (part.weights, part.reads, part.writes)
        pairs = matched(whole.jaxpr.jaxpr, part.jaxpr.jaxpr) if same else None
        if pairs is None:
            raise ValueError(f"layer {whole.name!r} is another program for a part of the batch")
        names = _names(whole, part, pairs)
        values = dict(zip(whole.jaxpr.jaxpr.invars[len(whole.weights) :], whole.reads, strict=True))
        values |= dict(zip(whole.jaxpr.jaxpr.outvars, whole.writes, strict=True))
        for var, other in names.items():
            if var in values:
                self.lies(values[var], var.aval, other.aval)
        levels = _levels(whole, pairs, self.parts)
        for level in sorted({x.level for x in levels.made.values()}):
            self._segment(whole, levels, level, values, names)

    def lies(self, value: int, whole: Any, part: Any) -> bool:
        """Note the axis along which a value lies in parts; whether there is one."""
        axis = cut_axis(whole, part, self.parts)
        if axis is None or axis == UNCUT:
            return False
        self.axes[value] = axis
        return True

    def flow(self, lanes: int) -> Flow:
        """Put the segments together, with what the backward pass asks of each."""
        rows = [(whole, len(x.weights), x.reads, x.writes) for whole, x in self._found]
        asked = derivatives.demands(rows, self.graph.outputs[0])
        numbers: dict[Any, int] = {}
        segments: list[Segment] = []
        for (_, x), demand in zip(self._found, asked, strict=True):
            axes = tuple((self.axes.get(v), v in self.sums) for v in (*x.reads, *x.writes))
            place = numbers.setdefault((key(x.closed), demand, x.each, axes), len(numbers))
            segments.append(replace(x, demand=demand, program=place))
        return Flow(
            self.graph,
            self.parts // lanes,
            tuple(segments),
            self.axes,
            frozenset(self.split),
            frozenset(self.sums),
            lanes,
        )

    def _segment(
        self,
        layer: Layer,
        levels: "_Levels",
        level: int,
        values: dict[Any, int],
        names: dict[Any, Any],
    ) -> None:
        each = level % 2 == 0
        run = [a for a, at in levels.equations if at in (None, level)]
        outputs = levels.outputs(level)
        inside = {x for a in run for x in a.outvars}
        wanted = needs(program((), outputs, run).jaxpr, outputs) - inside
        wanted |= {x for x in outputs if x not in inside}
        held, given = len(layer.weights), layer.jaxpr.jaxpr.invars
        weights = [x for x in given[:held] if x in wanted]
        reads = [x for x in given[held:] if x in wanted]
        reads += [x for x in levels.made if x in wanted]
        for var in outputs:
            if var not in values:
                values[var] = next(self._fresh)
            value, how = values[var], levels.made[var]
            self.lies(value, var.aval, names[var].aval)
            if how.role == EACH:
                self.split.add(value)
            if how.role == SUM:
                self.sums.add(value)
        whole = closed = program([*weights, *reads], outputs, run)
        if each:
            other = {id(a): b for a, b in levels.pairs}
            closed = program(
                [names[x] for x in (*weights, *reads)],
                [names[x] for x in outputs],
                [other[id(a)] for a in run],
            )
        segment = Segment(
            layer=layer.name,
            each=each,
            weights=tuple(compress(layer.weights, (x in wanted for x in given[:held]))),
            reads=tuple(values[x] for x in reads),
            writes=tuple(values[x] for x in outputs),
            closed=closed,
        )
        self._found.append((whole, segment))


def _names(whole: Layer, part: Layer, pairs: Sequence[Any]) -> dict[Any, Any]:
    """For each variable of a layer the one of its part."""
    a, b = whole.jaxpr.jaxpr, part.jaxpr.jaxpr
    names = dict(zip(a.invars, b.invars, strict=True))
    for x, y in pairs:
        names.update(zip(x.outvars, y.outvars, strict=True))
    return names


@dataclass(frozen=True)
class _Made:
    """How a variable is made, and in which segment: even ones run per part, odd ones once."""

    role: str
    level: int


@dataclass
class _Levels:
    """The equations of a layer with their segments; None: needs no samples, made wherever read."""

    layer: Layer
    pairs: Sequence[tuple[core.JaxprEqn, core.JaxprEqn]]
    equations: list[tuple[core.JaxprEqn, int | None]]
    made: dict[Any, _Made]

    def outputs(self, level: int) -> list[Any]:
        """What a segment makes for others, or for other layers."""
        here = [x for x, how in self.made.items() if how.level == level]
        used = set(self.layer.jaxpr.jaxpr.outvars)
        for eqn, at in self.equations:
            if at is not None and at != level:
                used.update(variables(eqn.invars))
        return [x for x in here if x in used]


def _levels(layer: Layer, pairs: Sequence[Any], parts: int) -> _Levels:
    made: dict[Any, _Made] = {}
    equations: list[tuple[core.JaxprEqn, int | None]] = []
    used = {x for whole, _ in pairs for x in variables(whole.invars)}
    used.update(variables(layer.jaxpr.jaxpr.outvars))
    for whole, part in pairs:
        how = role(whole, part, parts)
        outputs = zip(whole.outvars, part.outvars, strict=True)
        # Of a loop that works on each sample for itself, a count is of no part: it is made once.
        if how == EACH and any(
            x in used and cut_axis(x.aval, y.aval, parts) is None for x, y in outputs
        ):
            how = WHOLE
        inputs = [made[x] for x in variables(whole.invars) if x in made]
        # A derivative of the user's own need not be linear: it must see the sum of all parts.
        own = whole.primitive.name == "custom_vjp_call"
        if how == SAME and not inputs and not own:
            equations.append((whole, None))
            continue
        how = WHOLE if how == SAME else how
        if how == WHOLE:
            level = max((x.level + (x.role != WHOLE) for x in inputs), default=-1)
        else:
            after = {EACH: 0, WHOLE: 1, SUM: 2}
            level = max((x.level + after[x.role] for x in inputs), default=0)
        equations.append((whole, level))
        made.update(dict.fromkeys(whole.outvars, _Made(how, level)))
    for var in layer.jaxpr.jaxpr.outvars:
        made.setdefault(var, _Made(WHOLE, -1))
    return _Levels(layer, pairs, equations, made)
