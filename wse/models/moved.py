"""What the products of a graph read, write and keep, however its parameters are held.

A visit is what lies between two uses of weights, so that its ends say how the user's tree is made,
not what is computed. What the products of a net read and write is the same for all trees.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from jax.extend import core

from wse.graph.equations import depends, needs, variables
from wse.graph.flops import CONVOLUTION, Traffic, each, laid_out, numbers, traffic
from wse.graph.layers import Graph, Layer
from wse.models import blocks
from wse.models.blocks import Product
from wse.models.shapes.workload import Part

Place = Any  # of a value of the graph, or the number of a visit and a variable of its own
TAKEN = ("slice", "split", "squeeze", "gather", "dynamic_slice")  # a part of what a product wrote


@dataclass(frozen=True)
class Moved:
    """Of one visit, for all samples of the batch.

    Attributes:
        read: numbers that products and convolutions read.
        written: numbers that they write.
        kept: numbers that are read for the first time, and what is needed to make them again: they
            wait for the backward pass.
        started: how many products and convolutions are run.
        parts: the same of every block that it has products of.
    """

    read: int
    written: int
    kept: int
    started: int
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class _Made:
    """How a value was made.

    Attributes:
        number: of the last product before it; -1: none.
        source: what that product wrote, or the part that was taken of it.
        count: its numbers.
        beside: numbers of what was multiplied by it, which waits as well.
    """

    number: int = -1
    source: Place = None
    count: int = 0
    beside: int = 0


@dataclass
class _Walk:
    """What was seen on the way through a graph.

    Attributes:
        moving: places of the batch and of what is made of it.
        multiplied: what products read.
        weighted: what products by weights read.
        kept: what products or convolutions read.
        made: of places, how.
        products: in the order in which they run.
        steps: of every equation, what it reads and what it makes, with its numbers.
    """

    moving: set[Place]
    multiplied: set[Place] = field(default_factory=set[Place])
    weighted: set[Place] = field(default_factory=set[Place])
    kept: set[Place] = field(default_factory=set[Place])
    made: dict[Place, _Made] = field(default_factory=dict[Place, _Made])
    products: list[Product] = field(default_factory=list[Product])
    steps: list[blocks.Step] = field(default_factory=list[blocks.Step])


def visits(model: Graph) -> list[Moved]:
    """What every visit of a graph moves.

    Products by weights that share an operand, as of queries, keys and values, are run as one and
    read it once: XLA merges them (its pass `DotMerger`), as vendors' nets do. Of a gated product
    both factors wait; of a convolution, what it writes too where a norm's factors meet that.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, x = {"a": jnp.ones((4, 2)), "b": jnp.ones((4, 3))}, jnp.ones((5, 4))
    >>> graph = wse.trace(lambda p, x: jnp.sum(x @ p["a"]) + jnp.sum(x @ p["b"]), params, x)
    >>> [(one.read, one.written, one.started) for one in visits(graph)]
    [(20, 10, 1), (0, 15, 0)]
    """
    walk = _Walk({*model.inputs})
    for number, layer in enumerate(model.layers):
        _visit(number, layer, walk)
    found = blocks.of_products(walk.products, walk.steps)
    by_visit = {i: [*rows] for i, rows in groupby(walk.products, lambda one: one.visit)}
    return [_moved(by_visit.get(i, []), found) for i in range(len(model.layers))]


def multiplies_activations(model: Graph) -> bool:
    """Whether a product reads activations alone, as attention's do, outside of loops and calls.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> def loss(p, x):
    ...     return jnp.mean((x @ p) @ x.T)
    >>> multiplies_activations(wse.trace(loss, jnp.ones((4, 4)), jnp.ones((3, 4))))
    True
    """

    def held(layer: Layer) -> bool:
        program = layer.jaxpr.jaxpr
        found = traffic(program, program.invars[len(layer.weights) :]).products
        return any(len(operands) == 2 for operands in found)

    return any(map(held, model.layers))


def _moved(products: list[Product], found: dict[int, blocks.Block]) -> Moved:
    parts = [
        Part(block.name, block.enters, sum(x.kept for x in rows), sum(x.moved for x in rows))
        for block, rows in (
            (found[first], [*rows])
            for first, rows in groupby(products, lambda one: found[one.number].first)
        )
    ]
    return Moved(
        read=sum(x.read for x in products),
        written=sum(x.written for x in products),
        kept=sum(x.kept for x in products),
        started=sum(x.started for x in products),
        parts=tuple(parts),
    )


def _visit(number: int, layer: Layer, walk: _Walk) -> None:
    program = layer.jaxpr.jaxpr
    given = dict(zip(program.invars[len(layer.weights) :], layer.reads, strict=True))
    moving = [x for x, place in given.items() if place in walk.moving]
    found, varies = each(program, moving), depends(program, moving)
    same, places = laid_out(program), dict[Any, Place](given)
    vectors = depends(program, [x for x in program.invars[: len(layer.weights)] if _flat(x)])

    def place(var: core.Var) -> Place:
        var = same.get(var, var)
        return places.get(var, (number, var))

    for var, written in zip(program.outvars, layer.writes, strict=True):
        if isinstance(var, core.Var):
            places.setdefault(same.get(var, var), written)
            walk.moving |= {written} if var in varies else set[Place]()
    for eqn in program.eqns:
        inputs = variables(eqn.invars)
        read = [x for x in dict.fromkeys(inputs) if x in varies]
        if one := found.get(id(eqn)):
            _multiply(walk, one, place, number, _path(layer, eqn, varies))
            walk.products[-1].is_convolution = eqn.primitive.name == CONVOLUTION
            made = _Made(walk.products[-1].number)
        else:
            made = _passed([walk.made.get(place(x), _Made()) for x in read], eqn)
            if made.number >= 0:
                scaled = any(x in vectors and x not in varies for x in inputs)
                walk.products[made.number].met += scaled
        outputs = [x for x in eqn.outvars if x in varies]
        taken = one is not None or eqn.primitive.name in TAKEN
        for var in outputs:
            new = _Made(made.number, place(var), numbers([var])) if taken else made
            walk.made.setdefault(place(var), new)
        reads = {place(x): numbers([x]) for x in read}
        writes = {place(x): made.number >= 0 for x in outputs}
        looks_up = eqn.primitive.name == "gather" and bool(outputs) and len(read) < len(inputs)
        walk.steps.append(blocks.Step(reads, writes, one is not None, one is not None or looks_up))


def _flat(var: core.Var) -> bool:
    shape: Any = var.aval
    return len(shape.shape) == 1


def _path(layer: Layer, eqn: core.JaxprEqn, varies: set[core.Var]) -> str:
    """The path of the weights that a product reads; empty: it reads none."""
    program = layer.jaxpr.jaxpr
    held = needs(program, [x for x in variables(eqn.invars) if x not in varies])
    paths = zip(program.invars, layer.parameters, strict=False)
    own = [path for var, path in paths if var in held and not _flat(var)]
    return own[0] if own else ""


def _multiply(walk: _Walk, one: Traffic, place: Any, visit: int, path: str) -> None:
    def fresh(variables: Iterable[core.Var], known: set[Place]) -> dict[Place, int]:
        sizes = {place(x): numbers([x]) for x in variables}
        new = {x: size for x, size in sizes.items() if x not in known}
        known.update(new)
        return new

    started = one.times
    for operands in one.products:
        started += len(operands) != 1 or len(fresh(operands, walk.weighted)) > 0
    multiplied = [x for operands in one.products for x in operands]
    read = one.inside + numbers(one.images)
    waits = fresh([*multiplied, *one.images], walk.kept)
    beside = sum(walk.made[x].beside for x in waits if x in walk.made)
    walk.products.append(
        Product(
            number=len(walk.products),
            visit=visit,
            path=path or (walk.products[-1].path if walk.products else ""),
            read=read + sum(fresh(multiplied, walk.multiplied).values()),
            written=one.written,
            read_first=one.inside + sum(waits.values()) + beside,
            started=started,
        )
    )


def _passed(read: list[_Made], eqn: core.JaxprEqn) -> _Made:
    """Of what is no product: the last product before it, and what a factor waits beside."""
    last = max(read, key=lambda made: made.number, default=_Made())
    sources = {made.source: made.count for made in read if made.number >= 0}
    if eqn.primitive.name == "mul" and len(sources) > 1:
        return _Made(last.number, last.source, last.count, min(sources.values()))
    return last
