"""What operations beside products do in a step: norms, activations, scans of a recurrence.

They are the passes over memory that `wse.computer.compiled` finds between products, forward and
backward; a loop counts every turn.
"""

# JAX annotates only part of what it gives.
# pyright: reportUnknownVariableType=false

from dataclasses import dataclass
from functools import lru_cache

from jax.extend import core

from wse.computer.here import of_layer
from wse.graph.flops import inner_programs, products
from wse.graph.layers import Graph, Layer


@dataclass(frozen=True)
class Beside:
    """What a step does beside products, forward and backward.

    Attributes:
        moved: numbers of a sample that are read and written.
        slow: exponentials of a sample, and what costs as much.
        turns: of loops without products, of all samples at once, forward.
    """

    moved: int
    slow: int
    turns: int


def of_graph(model: Graph) -> Beside:
    """What a graph does beside products.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = jnp.ones((4, 2)), jnp.ones((3, 4))
    >>> graph = wse.trace(lambda p, x: jnp.mean(jnp.tanh(x @ p)), params, batch)
    >>> of_graph(graph).slow  # of both outputs, for the mean and for what backward reads
    4
    """
    alike = {(layer.program, layer.recomputed): layer for layer in model.layers}
    once = {which: _passes(Same(layer)) for which, layer in alike.items()}
    each = [once[layer.program, layer.recomputed] for layer in model.layers]
    turns = sum(_turns(layer.jaxpr.jaxpr) for layer in model.layers)
    size = model.batch_size
    return Beside(sum(x for x, _ in each) // size, sum(x for _, x in each) // size, turns)


class Same:
    """A layer as what it is known by, so that machine after machine does not count it anew."""

    def __init__(self, layer: Layer) -> None:
        """Keep it."""
        self.layer = layer
        self._key = layer.jaxpr, layer.demand, layer.recomputed

    def __eq__(self, other: object) -> bool:
        """Whether the other is of the same program."""
        return isinstance(other, Same) and self._key == other._key

    def __hash__(self) -> int:
        """Of the same program the same."""
        return hash(self._key)


@lru_cache(maxsize=256)
def _passes(same: Same) -> tuple[int, int]:
    found = [x for side in of_layer(same.layer) for x in side if x.kind == "pass"]
    return sum(x.turns * x.numbers for x in found), sum(x.turns * x.slow for x in found)


def _turns(program: core.Jaxpr) -> int:
    loops = [
        eqn
        for eqn in program.eqns
        if eqn.primitive.name == "scan" and not any(map(products, inner_programs(eqn)))
    ]
    return sum(eqn.params["length"] for eqn in loops)
