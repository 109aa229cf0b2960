"""What a loss does with the leading axis of the arrays of its batch: is it of samples?"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Mapping
from typing import Any

from jax.extend import core

from wse.graph.equations import CALLS, CUSTOMS, REMATS, depends, turned
from wse.graph.flops import inner_programs

Place = tuple[int, int]  # of an array of the batch, and where its leading axis is now
CALLED = {*CALLS, *CUSTOMS, *REMATS}


def series(jaxpr: core.Jaxpr, places: Mapping[core.Var, int]) -> set[int]:
    """Which arrays a loop reads turn by turn while it carries arrays, as it does those in time."""
    found, known = set[int](), dict(places)
    for eqn in jaxpr.eqns:
        read = [known.get(x) if isinstance(x, core.Var) else None for x in eqn.invars]
        if eqn.primitive.name == "convert_element_type" and read[0] is not None:
            known[eqn.outvars[0]] = read[0]
        if eqn.primitive.name == "scan":
            same, carried = turned(eqn)
            states: Any = eqn.invars[same : same + carried]
            if any(x.aval.shape for x in states):
                found |= {place for place in read[same + carried :] if place is not None}
        for inner in inner_programs(eqn):
            if len(inner.invars) == len(read) and eqn.primitive.name not in ("scan", "while"):
                pairs = zip(inner.invars, read, strict=True)
                found |= series(inner, {x: place for x, place in pairs if place is not None})
    return found


def features(jaxpr: core.Jaxpr, places: Mapping[core.Var, Place]) -> set[int]:
    """Which arrays meet weights along their leading axis, as samples never do.

    Features are summed, members of an ensemble have weights of their own.

    They are followed up to their first product, through what moves axes and what keeps shapes.
    """
    found, known = set[int](), dict(places)
    moving = depends(jaxpr, places)
    for eqn in jaxpr.eqns:
        for side, atom in enumerate(eqn.invars):
            if not isinstance(atom, core.Var) or atom not in known:
                continue
            place, axis = known[atom]
            others = [x for x in eqn.invars if x is not atom and isinstance(x, core.Var)]
            if not moving & {*others} and _is_feature(eqn, side, axis):
                found.add(place)
            if (after := _after(eqn, atom, axis)) is not None:
                known[eqn.outvars[0]] = (place, after)
        for inner in inner_programs(eqn) if eqn.primitive.name in CALLED else ():
            pairs = [*zip(inner.invars, eqn.invars, strict=False)]
            given = {x: known[y] for x, y in pairs if isinstance(y, core.Var) and y in known}
            found |= features(inner, given)
    return found


def _is_feature(eqn: core.JaxprEqn, side: int, axis: int) -> bool:
    """Whether a product sums over this axis, pairs it with weights, or moves filters along."""
    numbers: Any = eqn.params.get("dimension_numbers")
    if eqn.primitive.name == "dot_general":
        return axis in numbers[0][side] or axis in numbers[1][side]
    return eqn.primitive.name == "conv_general_dilated" and not side and axis != numbers.lhs_spec[0]


def _after(eqn: core.JaxprEqn, atom: core.Var, axis: int) -> int | None:
    """Where an axis is in what an equation makes of its array; None: not to be told."""
    name, params = eqn.primitive.name, eqn.params
    if len(eqn.outvars) != 1 or name in ("dot_general", "conv_general_dilated"):
        return None
    before: Any = atom.aval
    after: Any = eqn.outvars[0].aval
    if name == "transpose":
        return params["permutation"].index(axis)
    if name == "broadcast_in_dim":
        return params["broadcast_dimensions"][axis]
    same = after.shape[: axis + 1] == before.shape[: axis + 1]
    return axis if same and (name == "reshape" or after.shape == before.shape) else None
