"""A graph run in plain JAX, one layer after the other."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from typing import Any

from jax.extend import core

from wse.graph.equations import Weight
from wse.graph.layers import Graph, Layer


def run(layer: Layer, args: Sequence[Any]) -> Sequence[Any]:
    """The writes of a layer, of its weights and reads."""
    return core.jaxpr_as_fun(layer.jaxpr)(*args)


def walk(
    graph: Graph,
    leaves: Sequence[Any],
    batch: Sequence[Any],
    visit: Callable[[Layer, Sequence[Any]], Sequence[Any]] = run,
) -> list[Any]:
    """Visit every layer in the order of the forward pass.

    Args:
        graph: the layers.
        leaves: the parameters.
        batch: the leaves of the batch.
        visit: (layer, its weights and reads) -> its writes.

    Returns:
        The loss, then the leaves of the auxiliary outputs.
    """
    values: dict[int, Any] = dict(graph.constants)
    values.update(zip(graph.inputs, batch, strict=True))

    def taken(weight: Weight) -> Any:
        return leaves[weight.leaf][weight.index]

    def output(found: Any) -> Any:
        if isinstance(found, Weight):
            return taken(found)
        return values[found] if isinstance(found, int) else found

    for layer in graph.layers:
        args = [*map(taken, layer.weights), *(values[place] for place in layer.reads)]
        values.update(zip(layer.writes, visit(layer, args), strict=True))
    return [output(found) for found in graph.outputs]
