"""Small neighbours visited together: a program takes longer to start than a small layer to run.

Neighbouring layers share a visit while their weights together are no more than the largest layer's,
so that two visits never hold more than two layers, and no more than `SMALL_BYTES`. Their gradients
leave together: on several systems one reduction serves them all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jax.extend import core

from wse.graph import derivatives
from wse.graph.cuts import total_bytes
from wse.graph.equations import Flat, closing, fresh, key
from wse.graph.layers import Graph, Layer, Work

SMALL_BYTES = 256 * 2**10  # above, a layer's own work outlasts the start of its program


def visited(graph: Graph, small_bytes: int = SMALL_BYTES) -> Graph:
    """The same computation in layers that are the visits of the weight-streaming executor.

    Those that share a visit weigh no more than `small_bytes`; the others are as they were.
    """
    runs = _runs([layer.work.weight_bytes for layer in graph.layers], small_bytes)
    if len(runs) == len(graph.layers):
        return graph
    layers = [graph.layers[run[0]] if len(run) == 1 else _joined(graph, run) for run in runs]
    rows = [(x.jaxpr, len(x.weights), x.reads, x.writes) for x in layers]
    numbers: dict[Any, int] = {}
    found = [
        replace(
            layer, demand=asked, program=numbers.setdefault((key(layer.jaxpr), asked), len(numbers))
        )
        for layer, asked in zip(layers, derivatives.demands(rows, graph.outputs[0]), strict=True)
    ]
    return replace(graph, layers=tuple(found))


def _runs(sizes: Sequence[int], small_bytes: int) -> list[list[int]]:
    """Group neighbours, in order, up to the size of the largest.

    >>> _runs([1, 2, 9, 3, 3, 8, 1], 100)
    [[0, 1], [2], [3, 4], [5, 6]]
    """
    most, runs, held = min(max(sizes), small_bytes), list[list[int]](), 0
    for i, size in enumerate(sizes):
        if runs and held + size <= most:
            runs[-1].append(i)
            held += size
        else:
            runs.append([i])
            held = size
    return runs


def _joined(graph: Graph, run: Sequence[int]) -> Layer:
    """One layer that does what several in a row do."""
    layers = [graph.layers[i] for i in run]
    flat = Flat({}, ())
    weights = {
        weight: fresh(var.aval)
        for layer in layers
        for weight, var in zip(layer.weights, layer.jaxpr.jaxpr.invars, strict=False)
    }
    values: dict[int, Any] = {}
    reads: dict[int, core.Var] = {}
    for layer in layers:
        for value in layer.reads:
            if value not in values:
                values[value] = reads[value] = fresh(graph.values[value])
        given = [*(weights[w] for w in layer.weights), *(values[v] for v in layer.reads)]
        values.update(zip(layer.writes, flat.inline(layer.jaxpr, given), strict=True))
    others = [x for i, x in enumerate(graph.layers) if i not in run]
    used = {v for x in others for v in x.reads} | {x for x in graph.outputs if isinstance(x, int)}
    writes = tuple(v for layer in layers for v in layer.writes if v in used)
    inputs = [*weights.values(), *reads.values()]
    return replace(
        layers[0],
        name=f"{layers[0].name} to {layers[-1].name}",
        parameters=tuple(dict.fromkeys(path for layer in layers for path in layer.parameters)),
        weights=tuple(weights),
        reads=tuple(reads),
        writes=writes,
        jaxpr=closing(flat, inputs, [values[v] for v in writes]),
        work=Work(
            forward_flops=sum(layer.work.forward_flops for layer in layers),
            backward_flops=sum(layer.work.backward_flops for layer in layers),
            weight_bytes=total_bytes(weights.values()),
            read_bytes=total_bytes(reads.values()),
            write_bytes=total_bytes(values[v] for v in writes),
            residual_bytes=sum(layer.work.residual_bytes for layer in layers),
        ),
    )
