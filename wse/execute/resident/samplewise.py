"""Which equations of a program work on each sample for itself.

A program is traced twice: on a batch, and on one of its equal parts. A value whose shape differs
along one axis lies in parts along that axis. An equation is `EACH` if, for certain, the parts of
its results are what it makes of the parts of its inputs; `SUM` if its results are the sums of what
it makes of them; `SAME` if nothing of it lies in parts. Everything else is `WHOLE`: it must see the
batch at once. What is not known is `WHOLE`, so an unknown operation costs speed, never exactness.
"""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import jax
import numpy as np
from jax.extend import core

from wse.execute.primitives import RULES, SUMS, UNCUT, Axis
from wse.graph.derivatives import is_float
from wse.graph.equations import CALLS, REMATS, Flat, alone, closing, hashable, structs, turned

EACH, SUM, SAME, WHOLE = "each", "sum", "same", "whole"

# Parameters that speak of shapes, or hold programs: the rule of their equation looks at them.
SHAPES = frozenset(("shape", "new_sizes", "start_indices", "limit_indices", "slice_sizes"))
_PROGRAMS = "jaxpr call_jaxpr branches jvp jvp_jaxpr_fun fwd_jaxpr_thunk bwd out_trees"
PROGRAMS = frozenset(_PROGRAMS.split())


def cut_axis(whole: Any, part: Any, parts: int) -> Axis:
    """The axis along which a value lies in parts; None: in none; `UNCUT`: it cannot."""
    if whole.shape == part.shape:
        return None
    if len(whole.shape) != len(part.shape):
        return UNCUT
    differ = [i for i, (n, m) in enumerate(zip(whole.shape, part.shape, strict=True)) if n != m]
    axis = differ[0]
    return axis if len(differ) == 1 and whole.shape[axis] == parts * part.shape[axis] else UNCUT


def role(whole: core.JaxprEqn, part: core.JaxprEqn, parts: int) -> str:
    """How an equation treats samples: `EACH`, `SUM`, `SAME` or `WHOLE`."""
    inputs = [_axis(a, b, parts) for a, b in zip(whole.invars, part.invars, strict=True)]
    outputs = [_axis(a, b, parts) for a, b in zip(whole.outvars, part.outvars, strict=True)]
    if UNCUT in (*inputs, *outputs) or not _literals_agree(whole, part):
        return WHOLE
    name = whole.primitive.name
    still = all(axis is None for axis in (*inputs, *outputs))
    free = PROGRAMS if name in NESTED else frozenset[str]() if still else SHAPES
    if _parameters(whole, free) != _parameters(part, free):
        return WHOLE
    if name in NESTED and not NESTED[name](whole, part, parts):
        return WHOLE
    if still:
        return SAME
    if name in NESTED:
        return EACH
    if all(axis is None for axis in outputs):
        return SUM if name in SUMS and SUMS[name](whole, inputs) else WHOLE
    if None in outputs or name not in RULES:
        return WHOLE
    return EACH if RULES[name](whole, part, inputs, outputs) else WHOLE


def all_each(whole: core.Jaxpr, part: core.Jaxpr, parts: int) -> bool:
    """Whether every equation of a program is `EACH` or `SAME`, and both say the same."""
    pairs = matched(whole, part)
    return pairs is not None and all(role(a, b, parts) in (EACH, SAME) for a, b in pairs)


def matched(
    whole: core.Jaxpr, part: core.Jaxpr
) -> list[tuple[core.JaxprEqn, core.JaxprEqn]] | None:
    """The equations of two programs side by side; None if the programs are not alike."""
    heads = [(*whole.constvars, *whole.invars), (*part.constvars, *part.invars)]
    if len(heads[0]) != len(heads[1]) or len(whole.eqns) != len(part.eqns):
        return None
    same = dict(zip(*heads, strict=True))
    for a, b in zip(whole.eqns, part.eqns, strict=True):
        if a.primitive is not b.primitive or not _wired(same, a.invars, b.invars):
            return None
        same.update(zip(a.outvars, b.outvars, strict=True))
    if not _wired(same, whole.outvars, part.outvars):
        return None
    return list(zip(whole.eqns, part.eqns, strict=True))


def _wired(same: dict[Any, Any], ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    if len(ours) != len(theirs):
        return False
    return all(
        isinstance(b, core.Literal) if isinstance(a, core.Literal) else same.get(a) is b
        for a, b in zip(ours, theirs, strict=True)
    )


def _axis(whole: Any, part: Any, parts: int) -> Axis:
    return cut_axis(whole.aval, part.aval, parts)


def _literals_agree(whole: core.JaxprEqn, part: core.JaxprEqn) -> bool:
    values = [[x.val for x in e.invars if isinstance(x, core.Literal)] for e in (whole, part)]
    return hashable(values[0]) == hashable(values[1])


def _parameters(eqn: core.JaxprEqn, without: frozenset[str]) -> Any:
    return {k: hashable(v) for k, v in eqn.params.items() if k not in without}


def _call(name: str) -> Callable[[Any, Any, int], bool]:
    def check(whole: Any, part: Any, parts: int) -> bool:
        a, b = whole.params[name], part.params[name]
        closed = isinstance(a, core.ClosedJaxpr)
        return _closed_each(a, b, parts) if closed else all_each(a, b, parts)

    return check


def _branches(whole: Any, part: Any, parts: int) -> bool:
    pairs = zip(whole.params["branches"], part.params["branches"], strict=True)
    still = _axis(whole.invars[0], part.invars[0], parts) is None
    return still and all(_closed_each(a, b, parts) for a, b in pairs)


def _scan(whole: Any, part: Any, parts: int) -> bool:
    same, carried = turned(whole)
    sliced = [
        *zip(whole.invars[same + carried :], part.invars[same + carried :], strict=True),
        *zip(whole.outvars[carried:], part.outvars[carried:], strict=True),
    ]
    if any(_axis(a, b, parts) == 0 for a, b in sliced):
        return False
    return _closed_each(whole.params["jaxpr"], part.params["jaxpr"], parts)


def _closed_each(whole: core.ClosedJaxpr, part: core.ClosedJaxpr, parts: int) -> bool:
    """The same of closed programs, whose arrays must be the same too."""
    held = [[(str(x.dtype), np.asarray(x).tobytes()) for x in p.consts] for p in (whole, part)]
    return held[0] == held[1] and all_each(whole.jaxpr, part.jaxpr, parts)


def _derived(derivative: Callable[..., Any]) -> Callable[[Any, Any, int], bool]:
    """A rule of the user's own for a derivative: it must work on each sample for itself, too."""

    def check(whole: Any, part: Any, parts: int) -> bool:
        body, other = (eqn.params["call_jaxpr"] for eqn in (whole, part))
        if whole.params["symbolic_zeros"] or not _closed_each(body, other, parts):
            return False  # a rule that sees what moves is another one than can be tried here
        try:
            rule, smaller = derivative(whole), derivative(part)
        except Exception:  # it refuses to be derived by all of its arguments: nothing is known
            return False
        return _closed_each(_undone(rule), _undone(smaller), parts)

    return check


def _undone(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """A derivative's program: it is not derived again, so calls in it are their bodies."""
    flat = Flat({}, (), customs=True)
    inputs = list(closed.jaxpr.invars)
    return closing(flat, inputs, flat.inline(closed, inputs))


def _pushed(eqn: core.JaxprEqn) -> core.ClosedJaxpr:
    function, args, moving = _of(eqn)

    def push(args: list[Any], tangents: list[Any]) -> Any:
        return jax.jvp(function(args), moving(args), tangents)

    return jax.make_jaxpr(push)(args, moving(args))


def _pulled(eqn: core.JaxprEqn) -> core.ClosedJaxpr:
    function, args, moving = _of(eqn)

    def pull(args: list[Any], cotangents: list[Any]) -> Any:
        outputs, vjp = jax.vjp(function(args), *moving(args))
        return outputs, vjp(cotangents)

    return jax.make_jaxpr(pull)(args, structs(eqn.outvars))


def _of(eqn: core.JaxprEqn) -> tuple[Callable[..., Any], list[Any], Callable[..., Any]]:
    """An equation as a function of what can move, given all; the shapes of all; what can move."""
    inputs, whole = alone(eqn)
    moves = [is_float(var) for var in inputs]

    def function(args: list[Any]) -> Callable[..., Any]:
        def of_moving(*moved: Any) -> Any:
            left = iter(moved)
            return whole(*(next(left) if m else x for x, m in zip(args, moves, strict=True)))

        return of_moving

    def moving(args: list[Any]) -> list[Any]:
        return list(compress(args, moves))

    return function, structs(inputs), moving


NESTED: dict[str, Callable[[Any, Any, int], bool]] = {
    **{name: _call(program) for name, program in CALLS.items()},
    **dict.fromkeys(REMATS, _call("jaxpr")),
    "cond": _branches,
    "custom_jvp_call": _derived(_pushed),
    "custom_vjp_call": _derived(_pulled),
    "scan": _scan,
}
