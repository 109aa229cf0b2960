"""Whether the layers of a graph stand in a row: each works on what the one before it wrote."""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from jax.extend import core

from wse.graph.equations import variables
from wse.graph.flops import products
from wse.graph.layers import Graph, Layer

Stage = int | None
JOINS = -1  # the stage of what more than one layer made, and of what is no layer's
# What changes the shape of a sample and leaves its numbers alone.
SHAPES = {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose"}
# What keeps the shape of a sample and mixes its numbers.
MIXES = {"sort", "cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "rev"}
LOOPS = {"while", "scan", "cond"}
SAID = {
    True: "read again behind the last product, beside a target: a skip over the net, which is no "
    "plain chain of dense layers; if it only weights the loss, pass "
    "machine=wse.CS2(mode='pipelined')",
    False: "compared with its outputs: it is read as the target of an autoencoder; if it is added "
    "to the outputs, as by a skip, pass machine=wse.CS2(mode='streaming')",
}
INNER = ("jaxpr", "call_jaxpr")  # where calls keep what they run


def stands_in_row(model: Graph) -> bool:
    """Whether a graph is products by weights and functions of single numbers, one after another.

    Residual connections, norms, loops and sorts make it something else, whatever its matrices are.
    What follows the last product, as a loss does, may be anything.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> w, x = jnp.ones((4, 4)), jnp.ones((3, 4))
    >>> stands_in_row(wse.trace(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2), w, x))
    True
    >>> stands_in_row(wse.trace(lambda w, x: jnp.mean((x + jnp.tanh(x @ w)) @ w), w, x))
    False
    """
    before = set(model.inputs)
    for place, layer in enumerate(model.layers):
        made, multiplied = _visit(model, layer, before)
        ends = place == len(model.layers) - 1
        if not multiplied or (not ends and JOINS in made):
            return False
        before = set(layer.writes)
    return True


def reread(model: Graph, outputs: int) -> tuple[str, bool]:
    """What enters a product and is read again behind the last one, as a skip or a target is.

    Args:
        model: the graph.
        outputs: numbers per sample that the last product makes.

    Returns:
        Words on it, empty where nothing is; whether it is a skip, since there is a target besides.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> w, x = jnp.ones((4, 4)), jnp.ones((3, 4))
    >>> graph = wse.trace(lambda w, x: jnp.mean((jnp.tanh(x @ w) - x) ** 2), w, x)
    >>> reread(graph, 4)[0].partition(":")[0]
    'array 1 of the batch, (3, 4), enters the net and is compared with its outputs'
    """
    leads = {place for place in model.inputs if _shape_at(model, place)[:1] == (model.batch_size,)}
    entering, direct = streams(model)
    again = sorted(direct & entering & leads)
    if not again:
        return "", False
    is_skip = any(_is_target(model, place, outputs) for place in direct & leads - entering)
    number, shape = model.inputs.index(again[0]) + 1, _shape_at(model, again[0])
    return f"array {number} of the batch, {shape}, enters the net and is {SAID[is_skip]}", is_skip


def streams(model: Graph) -> tuple[set[int], set[int]]:
    """The arrays of the batch that enter a product, and those that reach the loss without one.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> w, x, y = jnp.ones((4, 4)), jnp.ones((3, 4)), jnp.ones((3, 4))
    >>> graph = wse.trace(lambda w, b: jnp.mean((b[0] @ w - b[1]) ** 2), w, (x, y))
    >>> streams(graph)
    ({0}, {1})
    """
    seen: dict[int, frozenset[int]] = {place: frozenset([place]) for place in model.inputs}
    entering: set[int] = set()
    for layer in model.layers:
        given = [frozenset[int]()] * len(layer.weights)
        given += [seen.get(place, frozenset()) for place in layer.reads]
        made = _past_products(layer.jaxpr.jaxpr, given, entering)
        seen |= dict(zip(layer.writes, made, strict=True))
    loss = model.outputs[0]
    return entering, {*seen.get(loss, ())} if isinstance(loss, int) else set()


def _past_products(
    program: core.Jaxpr, given: Iterable[frozenset[int]], entering: set[int]
) -> list[frozenset[int]]:
    """Which arrays of the batch each result holds without a product; what meets one is entering."""
    known = dict(zip(program.invars, given, strict=True))
    multiplying = {id(eqn) for eqn, _ in products(program)}
    for eqn in program.eqns:
        found = frozenset[int]().union(*(known.get(x, ()) for x in variables(eqn.invars)))
        if id(eqn) in multiplying:
            entering |= found
            found = frozenset[int]()
        known |= dict.fromkeys(eqn.outvars, found)
    outputs = [x if isinstance(x, core.Var) else None for x in program.outvars]
    return [frozenset() if x is None else known.get(x, frozenset()) for x in outputs]


def _is_target(model: Graph, place: int, outputs: int) -> bool:
    whole = model.values[place].dtype.kind in "iu"
    return whole or prod(_shape_at(model, place)) == outputs * model.batch_size


def _shape_at(model: Graph, place: int) -> tuple[int, ...]:
    return tuple(model.values[place].shape)


def _visit(model: Graph, layer: Layer, before: set[int]) -> tuple[list[Stage], bool]:
    """The stages of what a visit writes, and whether each of its products has one stream."""
    constants = {place for place, _ in model.constants}

    def stage(place: int) -> Stage:
        shared = tuple(model.values[place].shape[:1]) != (model.batch_size,)
        return None if shared or place in constants else 0 if place in before else JOINS

    given = [None] * len(layer.weights) + [stage(place) for place in layer.reads]
    return _run(layer.jaxpr.jaxpr, given)


def _run(program: core.Jaxpr, given: Iterable[Stage]) -> tuple[list[Stage], bool]:
    """The stages of what a program returns: how many products made it; None: it knows no sample."""
    known: dict[Any, Stage] = dict(zip(program.invars, given, strict=True))
    fine = True
    for eqn in program.eqns:
        stages = [_of(known, atom) for atom in eqn.invars]
        streams = {stage for stage in stages if stage is not None}
        inner = next((eqn.params[name] for name in INNER if name in eqn.params), None)
        if not streams:
            found = [None] * len(eqn.outvars)
        elif inner is not None and eqn.primitive.name not in LOOPS:
            found, well = _run(getattr(inner, "jaxpr", inner), stages)
            fine = fine and well
        elif eqn.primitive.name == "dot_general":
            fine = fine and len(streams) == 1 and JOINS not in streams and None in stages
            found = [max(streams) + 1]
        elif len(streams) == 1 and (eqn.primitive.name in SHAPES or _keeps(eqn, stages)):
            found = [*streams] * len(eqn.outvars)
        else:
            found = [JOINS] * len(eqn.outvars)
        known |= dict(zip(eqn.outvars, found, strict=True))
    return [_of(known, atom) for atom in program.outvars], fine


def _of(known: Mapping[Any, Stage], atom: Any) -> Stage:
    return None if isinstance(atom, core.Literal) else known.get(atom)


def _keeps(eqn: core.JaxprEqn, stages: Iterable[Stage]) -> bool:
    """Whether each number that comes out is a function of the samples' numbers in its place."""
    if eqn.primitive.name in MIXES | LOOPS:
        return False
    pairs = zip(eqn.invars, stages, strict=True)
    shapes = {_shape(x) for x, stage in pairs if stage is not None}
    return shapes == {_shape(x) for x in eqn.outvars}


def _shape(atom: Any) -> tuple[int, ...]:
    return atom.aval.shape
