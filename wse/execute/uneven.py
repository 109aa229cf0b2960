"""What moves samples among each other finds them whole, where they lie unevenly on the devices.

Of a batch that lies on several devices, what takes every second sample, sorts, shifts or scans
samples may be as many as the devices do not divide. There XLA's partitioner errs: gradients come
out wrong by their own size, programs do not compile, or end the process (jaxlib 0.10.2). Therefore
the axes along which samples may lie are followed from the batch through every layer, and such
equations find their arrays whole on every device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from jax.extend import core

from wse.execute.fabric import HELD, Roles, applied, is_held, retraced
from wse.execute.primitives import RULES
from wse.graph.equations import turned, variables
from wse.graph.flops import inner_programs

# What moves samples among each other, where it acts along their axis.
_MOVING = """
argmax argmin concatenate cumlogsumexp cummax cummin cumprod cumsum dynamic_slice
dynamic_update_slice pad reshape rev slice sort split stack top_k
"""
MOVING = frozenset((*HELD, *_MOVING.split()))
STILL = frozenset(RULES) - MOVING  # what is not known may move them too
TOGETHER = ("concatenate", "stack")  # a rule is asked about all inputs at once

Axes = frozenset[int]  # of an array: along one of them its samples lie, if along any
NONE: Axes = frozenset()


def axes_of_programs(
    parts: Sequence[Any], start: Mapping[int, Axes], closed: Callable[[Any], core.ClosedJaxpr]
) -> dict[int, list[Axes]]:
    """Along which axes samples may lie in what each program of a graph takes in.

    Args:
        parts: layers or segments, in order.
        start: the axes of values that are known before: of the batch, of what comes in parts.
        closed: the program of one of them, of its weights, then its reads.
    """
    values = dict(start)
    found: dict[int, list[Axes]] = {}
    stable = False
    while not stable:  # parts that share a program widen each other's axes
        stable = True
        for part in parts:
            reads = [NONE] * len(part.weights) + [values.get(v, NONE) for v in part.reads]
            before = found.get(part.program, [NONE] * len(reads))
            now = [a | b for a, b in zip(before, reads, strict=True)]
            stable = stable and found.get(part.program) == now
            found[part.program] = now
            writes = _Following(closed(part).jaxpr, now).outputs
            for value, axes in zip(part.writes, writes, strict=True):
                values[value] = start.get(value, NONE) | axes
    return found


def whole_where_uneven(
    closed: core.ClosedJaxpr,
    axes: Sequence[Axes],
    devices: int,
    lay: Callable[[Any, Roles | None], Any],
) -> core.ClosedJaxpr:
    """A program whose equations find arrays whole where samples, along `axes`, lie unevenly.

    By None, `lay` lays an array on every device as a whole.
    """
    held = _Following(closed.jaxpr, axes).held(devices)
    if not held:
        return closed
    places = {id(eqn) for eqn in held}
    return retraced(
        closed, lambda eqn, known: applied(eqn, known, lay if id(eqn) in places else None)
    )


class _Following:
    """The axes of samples in every value of a program."""

    def __init__(self, jaxpr: core.Jaxpr, axes: Sequence[Axes]) -> None:
        self._jaxpr = jaxpr
        self._axes: dict[Any, Axes] = dict(zip(jaxpr.invars, axes, strict=True))
        for eqn in jaxpr.eqns:
            self._axes.update(zip(eqn.outvars, _after(eqn, self._of(eqn.invars)), strict=True))

    @property
    def outputs(self) -> list[Axes]:
        """Those of what the program gives."""
        return self._of(self._jaxpr.outvars)

    @property
    def shapes(self) -> list[Sequence[int]]:
        """The shapes of what the program gives."""
        return [_shape(var) for var in self._jaxpr.outvars]

    def held(self, devices: int) -> list[core.JaxprEqn]:
        """The equations with steps, and those that move samples that lie unevenly.

        What is made of such samples is followed: programs inside an equation, loops among them,
        find them whole too.
        """
        found: list[core.JaxprEqn] = []
        followed: set[Any] = set()
        for eqn in self._jaxpr.eqns:
            touched = not followed.isdisjoint(variables(eqn.invars))
            name = eqn.primitive.name
            moves = name not in STILL if touched else name in MOVING
            held = (
                is_held(eqn, ())
                or (moves and (touched or self._uneven([*eqn.invars, *eqn.outvars], devices)))
                or any(inner.held(devices) for inner in _inside(eqn, self._of(eqn.invars)))
            )
            if held:
                found.append(eqn)
            if touched or held:
                followed |= {var for var in eqn.outvars if self._uneven([var], devices)}
        return found

    def _of(self, atoms: Iterable[Any]) -> list[Axes]:
        return [NONE if isinstance(x, core.Literal) else self._axes.get(x, NONE) for x in atoms]

    def _uneven(self, atoms: Sequence[Any], devices: int) -> bool:
        pairs = zip(atoms, self._of(atoms), strict=True)
        return any(x.aval.shape[axis] % devices for x, axes in pairs for axis in axes)


def _after(eqn: core.JaxprEqn, axes: Sequence[Axes]) -> list[Axes]:
    """The axes of what an equation gives; all of an array where no rule knows better."""
    shapes = [_shape(var) for var in eqn.outvars]
    if not any(axes):
        return [NONE] * len(shapes)
    inner = _inside(eqn, axes)
    scans, loops = eqn.primitive.name == "scan", eqn.primitive.name == "while"
    # The programs of others, such as what a scatter does with two numbers, do not give the whole.
    if inner and not loops and (scans or all(x.shapes == shapes for x in inner)):
        found = [NONE.union(*each) for each in zip(*(x.outputs for x in inner), strict=True)]
        if scans:  # what it collects has a new first axis
            same, carried = turned(eqn)
            sliced = any(0 in each for each in axes[same + carried :])
            along = frozenset({0}) if sliced else NONE
            found[carried:] = [along | {a + 1 for a in each} for each in found[carried:]]
    else:
        moved = [_moved(eqn, i, axis) for i, every in enumerate(axes) for axis in every]
        found = [NONE.union(*moved)] * len(shapes)
    return [
        frozenset(a for a in each if a < len(shape))
        for each, shape in zip(found, shapes, strict=True)
    ]


def _moved(eqn: core.JaxprEqn, place: int, axis: int) -> set[int]:
    """Where samples along an axis of one input lie in the outputs."""
    name, shape = eqn.primitive.name, _shape(eqn.invars[place])
    rank = max(len(_shape(var)) for var in eqn.outvars)
    if _is_summed(eqn, place, axis):
        return set()
    if name == "reshape":
        return _reshaped(shape, _shape(eqn.outvars[0]), axis)
    if name == "dot_general" and axis in (batch := eqn.params["dimension_numbers"][1][place]):
        return {batch.index(axis)}
    inputs: list[int | None] = [None] * len(eqn.invars)
    inputs[place] = axis
    if name in TOGETHER:
        inputs = [axis] * len(inputs)
    rule, outputs = RULES.get(name), len(eqn.outvars)
    found = {b for b in range(rank) if rule and rule(eqn, eqn, inputs, [b] * outputs)}
    if found:
        return found
    kept = name in MOVING - {"gather", "conv_general_dilated"} and len(shape) == rank
    return {axis} if kept else set(range(rank))


def _reshaped(old: Sequence[int], new: Sequence[int], axis: int) -> set[int]:
    """The axes of the new shape over which the places of an old one are spread."""
    start, stop = prod(old[:axis]), prod(old[: axis + 1])
    spans = [(prod(new[:b]), prod(new[: b + 1])) for b in range(len(new))]
    if start == stop:  # one sample: its axis of one place, or else those that it may be part of
        alone = {b for b, span in enumerate(spans) if span == (start, stop)}
        return alone or {b for b, (low, high) in enumerate(spans) if low <= start <= high}
    return {b for b, (low, high) in enumerate(spans) if low < stop and start < high}


def _shape(var: Any) -> Sequence[int]:
    return getattr(var.aval, "shape", ())


def _is_summed(eqn: core.JaxprEqn, place: int, axis: int) -> bool:
    """Whether an axis is gone from what an equation gives."""
    if eqn.primitive.name == "dot_general":
        return axis in eqn.params["dimension_numbers"][0][place]
    reduced = eqn.primitive.name.startswith(("reduce_", "arg"))
    return reduced and axis in eqn.params.get("axes", ())


def _inside(eqn: core.JaxprEqn, axes: Sequence[Axes]) -> list[_Following]:
    """The programs inside an equation, with the axes of what they take in."""
    name, found = eqn.primitive.name, inner_programs(eqn)
    if name == "scan":
        return [_scanned(eqn, jaxpr, list(axes)) for jaxpr in found]
    given = axes[1:] if name == "cond" else axes
    plain = name != "while" and all(len(x.invars) == len(given) for x in found)
    return [_Following(x, given if plain else _every(x, any(axes))) for x in found]


def _every(jaxpr: core.Jaxpr, some: bool) -> list[Axes]:
    return [frozenset(range(len(_shape(var)))) if some else NONE for var in jaxpr.invars]


def _scanned(eqn: core.JaxprEqn, jaxpr: core.Jaxpr, axes: list[Axes]) -> _Following:
    """The body of a loop: what it carries may have the axes of what it returns."""
    first, carried = turned(eqn)
    last = first + carried
    axes[last:] = [frozenset(a - 1 for a in each if a) for each in axes[last:]]
    while True:
        body = _Following(jaxpr, axes)
        joined = [a | b for a, b in zip(axes[first:last], body.outputs, strict=False)]
        if joined == axes[first:last]:
            return body
        axes[first:last] = joined
