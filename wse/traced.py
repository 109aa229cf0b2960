"""A traced training function as a workload: what estimates need of a graph, without its arrays."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from math import prod
from typing import Any

from wse import graph
from wse.graph import Graph
from wse.workload import Layer, Workload


def samples(model: Graph) -> int:
    """Samples of the batch that was traced: the leading axis of its largest array."""
    shapes = [model.values[place].shape for place in model.inputs]
    return max((shape for shape in shapes if shape), key=prod)[0]


def workload(model: Any, name: str = "traced model") -> Workload:
    """The layers of a graph, each with its parameters, operations and activations per sample.

    Operations are per sample of the batch that was traced. A visit to weights that an earlier
    layer has visited streams them again and counts them once. What a visit reads waits for the
    backward pass. A layer that does nothing but multiply by one matrix is "dense", and its inputs
    and outputs are the matrix's; its features are the matrix's rows.

    Args:
        model: from `wse.trace`.
        name: what tables call it.

    Raises:
        ValueError: something else than a graph.
    """
    if not isinstance(model, Graph):
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a wse.workload.Workload, a wse.Graph "
            "or a loss function with params and batch: pass one of these"
        )
    batch = samples(model)
    seen: set[Any] = set()
    layers: list[Layer] = []
    for layer in model.layers:
        shared = set(layer.weights) <= seen
        seen |= set(layer.weights)
        layers.append(_layer(model, layer, batch, shared))
    first, last = layers[0], layers[-1]
    enters = sum(prod(model.values[place].shape) for place in model.inputs) // batch
    inputs = first.inputs if first.kind == "dense" else max(1, enters)
    return Workload(name, tuple(layers), inputs, last.outputs)


def _layer(model: Graph, layer: graph.Layer, batch: int, shared: bool) -> Layer:
    weights = [tuple(model.shapes[x.leaf].shape[len(x.index) :]) for x in layer.weights]
    largest = max(weights, key=prod)
    reads = max(1, _numbers(model, layer.reads) // batch)
    writes = max(1, _numbers(model, layer.writes) // batch)
    products = -(-layer.work.forward_flops // (2 * batch))
    plain = len(largest) == 2 and products == prod(largest)
    features = reads
    if len(largest) == 2:
        features = largest[0] if products else largest[1]
    return Layer(
        layer.name,
        inputs=largest[0] if plain else reads,
        outputs=largest[1] if plain else writes,
        parameters=sum(map(prod, weights)),
        kind="dense" if plain else ("convolution" if len(largest) > 2 else "products"),
        multiplies=products,
        kept=reads,
        features=features,
        shared=shared,
        sparsifiable=len(largest) > 1 and products > 0,
    )


def _numbers(model: Graph, places: tuple[int, ...]) -> int:
    return sum(prod(model.values[place].shape) for place in places)
