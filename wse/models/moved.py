"""What the products of a graph read, write and keep, however its parameters are held.

A visit is what lies between two uses of weights, so that its ends say how the user's tree is made,
not what is computed. What the products of a net read and write is the same for all trees.
"""

from dataclasses import dataclass, field
from typing import Any

from jax.extend import core

from wse.graph.equations import depends
from wse.graph.flops import laid_out, numbers, traffic
from wse.graph.layers import Graph, Layer

Place = Any  # of a value of the graph, or the number of a visit and a variable of its own


@dataclass(frozen=True)
class Moved:
    """Of one visit, for all samples of the batch.

    Attributes:
        read: numbers that products and convolutions read.
        written: numbers that they write.
        kept: numbers that are read for the first time: they wait for the backward pass.
        started: how many products and convolutions are run.
    """

    read: int
    written: int
    kept: int
    started: int


@dataclass
class _Seen:
    """What depends on the batch, and what earlier visits read.

    Attributes:
        moving: places of the batch and of what is made of it.
        multiplied: what products read.
        weighted: what products by weights read.
        kept: what products or convolutions read.
    """

    moving: set[Place]
    multiplied: set[Place] = field(default_factory=set[Place])
    weighted: set[Place] = field(default_factory=set[Place])
    kept: set[Place] = field(default_factory=set[Place])


def visits(model: Graph) -> list[Moved]:
    """What every visit of a graph moves.

    Products by weights that share an operand, as of queries, keys and values, are run as one and
    read it once: XLA merges them (its pass `DotMerger`), as vendors' nets do.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, x = {"a": jnp.ones((4, 2)), "b": jnp.ones((4, 3))}, jnp.ones((5, 4))
    >>> graph = wse.trace(lambda p, x: jnp.sum(x @ p["a"]) + jnp.sum(x @ p["b"]), params, x)
    >>> [(one.read, one.written, one.started) for one in visits(graph)]
    [(20, 10, 1), (0, 15, 0)]
    """
    seen = _Seen({*model.inputs})
    return [_visit(number, layer, seen) for number, layer in enumerate(model.layers)]


def _visit(number: int, layer: Layer, seen: _Seen) -> Moved:
    program = layer.jaxpr.jaxpr
    given = dict(zip(program.invars[len(layer.weights) :], layer.reads, strict=True))
    moving = [x for x, place in given.items() if place in seen.moving]
    found, varies = traffic(program, moving), depends(program, moving)
    same, places = laid_out(program), dict[Any, Place](given)
    for var, place in zip(program.outvars, layer.writes, strict=True):
        if isinstance(var, core.Var):
            places.setdefault(same.get(var, var), place)
            seen.moving |= {place} if var in varies else set[Place]()

    def fresh(variables: list[core.Var], known: set[Place]) -> int:
        sizes = {places.get(x, (number, x)): numbers([x]) for x in variables}
        new = sizes.keys() - known
        known |= new
        return sum(sizes[x] for x in new)

    started = found.times
    for operands in found.products:
        started += len(operands) != 1 or fresh([*operands], seen.weighted) > 0
    multiplied = [x for operands in found.products for x in operands]
    read = found.inside + numbers(found.images)
    return Moved(
        read=read + fresh(multiplied, seen.multiplied),
        written=found.written,
        kept=found.inside + fresh([*multiplied, *found.images], seen.kept),
        started=started,
    )
