"""The weights that a visit of a traced model brings: how large, which way round, trained or not."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import Any

from jax.extend import core

from wse.graph import layers as graph
from wse.graph.equations import Weight, variables
from wse.graph.flops import products
from wse.graph.layers import Graph


@dataclass(frozen=True)
class Held:
    """One array of weights.

    Attributes:
        weight: its place among the parameters.
        size: its shape.
        sides: of a matrix, its inputs and its outputs; else the shape.
        density: share of its numbers that are not zero when training ends.
        frozen: whether no visit gives it a gradient.
    """

    weight: Weight
    size: tuple[int, ...]
    sides: tuple[int, ...]
    density: float
    frozen: bool

    @property
    def count(self) -> int:
        """Its numbers."""
        return prod(self.size)


def held(
    model: Graph, layer: graph.Layer, shares: Sequence[float], trained: Set[Weight]
) -> list[Held]:
    """Return the weights of a visit in the order in which products read them, then all others.

    Args:
        model: that the visit is of.
        layer: the visit.
        shares: the densities of all parameters.
        trained: what `model.trained` says.
    """
    turned, weights = _turned(layer), _as_read(layer)
    found: list[Held] = []
    for one, size in zip(weights, sizes(model, weights), strict=True):
        sides = size[::-1] if one in turned else size
        found.append(Held(one, size, sides, shares[one.leaf], one not in trained))
    return found


def still(own: Iterable[Held]) -> int:
    """Count the numbers without gradient."""
    return sum(one.count for one in own if one.frozen)


def sizes(model: Graph, weights: Iterable[Weight]) -> list[tuple[int, ...]]:
    """Return the shapes of weights, of a stack's slice without its axis."""
    return [tuple(model.shapes[x.leaf].shape[len(x.index) :]) for x in weights]


def _as_read(layer: graph.Layer) -> list[Weight]:
    """The weights of a visit in the order in which products read them, then all others."""
    program = layer.jaxpr.jaxpr
    source: dict[Any, Weight] = dict(zip(program.invars, layer.weights, strict=False))
    found: dict[Weight, None] = {}
    multiplying = {id(eqn) for eqn, _ in products(program)}
    for eqn in program.eqns:
        known = [source.get(x) for x in variables(eqn.invars)]
        made_of = dict.fromkeys(x for x in known if x is not None)
        if id(eqn) in multiplying:
            found |= made_of
        elif len(made_of) == 1 and None not in known:
            source |= dict.fromkeys(eqn.outvars, *made_of)
    return [*dict.fromkeys([*found, *layer.weights])]


def _turned(layer: graph.Layer) -> set[Weight]:
    """The matrices whose rows are outputs, as those of PyTorch and Equinox are."""
    program = layer.jaxpr.jaxpr
    source: dict[Any, tuple[Weight, int]] = {  # and the axis that lies first
        var: (weight, 0) for var, weight in zip(program.invars, layer.weights, strict=False)
    }
    found: set[Weight] = set()
    for eqn in program.eqns:
        read = [None if isinstance(x, core.Literal) else source.get(x) for x in eqn.invars]
        if eqn.primitive.name == "dot_general":
            summed: Any = eqn.params["dimension_numbers"][0]
            pairs = zip(read, summed, strict=True)
            found |= {one[0] for one, axes in pairs if one and tuple(axes) == (1 - one[1],)}
        elif read and read[0] and eqn.primitive.name in ("transpose", "convert_element_type"):
            weight, first = read[0]
            turns = eqn.params.get("permutation") == (1, 0)
            source[eqn.outvars[0]] = weight, 1 - first if turns else first
    return found
