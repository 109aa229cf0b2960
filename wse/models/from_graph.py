"""A traced training function as a workload: what estimates need of a graph, without its arrays."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any

from wse.graph import layers as graph
from wse.graph.layers import Graph
from wse.graph.trace import trace
from wse.models.shapes.workload import Layer, Workload


def samples(model: Graph) -> int:
    """Samples of the batch that was traced: the leading axis of its largest array."""
    shapes = [model.values[place].shape for place in model.inputs]
    return max((shape for shape in shapes if shape), key=prod)[0]


def traced(model: Any, params: Any, batch: Any) -> tuple[Workload, Any]:
    """A graph, or a loss function with params and batch, as a workload, and the samples of a step.

    Raises:
        ValueError: something else, or what `wse.trace` refuses.
    """
    if callable(model):
        model, batch = trace(model, params, batch, has_aux=None), None
    return workload(model), samples(model) if batch is None else batch


def workload(model: Any, name: str = "traced model") -> Workload:
    """The layers of a graph, each with its parameters, operations and activations per sample.

    Operations are per sample of the batch that was traced. Weights that an earlier layer has
    visited come again as a layer of their own, without work: streamed again, counted once. What a
    visit reads waits for the backward pass. A visit that does nothing but multiply by one matrix
    after another gives "dense" layers with the matrices' inputs and outputs; features are the
    shorter side of a matrix. Layers named after an embedding, a norm or a head stay dense, as in
    the vendor's default. Layers are one block up to the first number in their path.

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
        again = [weight for weight in layer.weights if weight in seen]
        if again:
            layers.append(_again(f"{layer.name} again", _sizes(model, again)))
        own = _sizes(model, [x for x in layer.weights if x not in seen])
        plain = _chain(layer, own, batch)
        layers += plain or [_layer(model, layer, batch, own)]
        seen |= set(layer.weights)
    first, last = layers[0], layers[-1]
    enters = sum(prod(model.values[place].shape) for place in model.inputs) // batch
    inputs = first.inputs if first.kind == "dense" else max(1, enters)
    return Workload(name, tuple(layers), inputs, last.outputs)


def _again(name: str, sizes: list[tuple[int, ...]]) -> Layer:
    count = sum(map(prod, sizes))
    return Layer(name, 1, 1, count, "again", 0, kept=0, shared=True, sparsifiable=False)


def _chain(layer: graph.Layer, own: list[tuple[int, ...]], batch: int) -> list[Layer]:
    """A visit as dense layers one after another; empty if it is something else."""
    matrices: list[Any] = [size for size in own if len(size) == 2]
    rest = [size for size in own if len(size) < 2]
    products = -(-layer.work.forward_flops // (2 * batch))
    joined = all(a[1] == b[0] for a, b in pairwise(matrices))
    if not joined or len(matrices) + len(rest) < len(own) or products != sum(map(prod, matrices)):
        return []
    layers: list[Layer] = []
    for i, (n, m) in enumerate(matrices):
        biased = (m,) in rest
        if biased:
            rest.remove((m,))
        layers.append(
            Layer(
                layer.name if i == 0 else f"{layer.name}.{i}",
                n,
                m,
                n * m + m * biased,
                features=min(n, m),
                block=_block(layer.name),
                sparsifiable=not _left_dense(layer.name),
            )
        )
    return [] if rest else layers


def _layer(model: Graph, layer: graph.Layer, batch: int, own: list[tuple[int, ...]]) -> Layer:
    largest: Any = max(_sizes(model, layer.weights), key=prod)
    reads = max(1, _numbers(model, layer.reads) // batch)
    products = -(-layer.work.forward_flops // (2 * batch))
    return Layer(
        layer.name,
        inputs=reads,
        outputs=max(1, _numbers(model, layer.writes) // batch),
        parameters=sum(map(prod, own)),
        kind="convolution" if len(largest) > 2 else "products",
        multiplies=products,
        kept=reads,
        features=min(largest) if len(largest) == 2 else reads,
        block=_block(layer.name),
        sparsifiable=len(largest) > 1 and products > 0 and not _left_dense(layer.name),
    )


def _block(name: str) -> str:
    """The path up to its first number: `blocks.3` of `blocks.3.up`; empty without one."""
    found = re.match(r"(?:.*?[._\[])?\d+\]?", name)
    return found[0] if found else ""


def _sizes(model: Graph, weights: Iterable[Any]) -> list[tuple[int, ...]]:
    return [tuple(model.shapes[x.leaf].shape[len(x.index) :]) for x in weights]


def _numbers(model: Graph, places: tuple[int, ...]) -> int:
    return sum(prod(model.values[place].shape) for place in places)


def _left_dense(name: str) -> bool:
    # sourced: the default filter of the vendor's sparsity, embedding, norm, lm_head
    return any(word in name.lower() for word in ("embed", "norm", "head"))
