"""What fits where: weights in the store, activations on the wafer, layouts of convolutions."""

from dataclasses import dataclass

from wse.graph.layers import Graph
from wse.layout import Plan, plan
from wse.machine import catalog
from wse.machine.constants import STREAMING
from wse.models import to_layout
from wse.models.shapes.workload import Layer
from wse.predict.result import Estimate

LAID_OUT = 60  # layers up to which layouts are looked for: a second or so for each ten


@dataclass(frozen=True)
class Row:
    """The memory of one layer, or of layers of the same name in different blocks.

    Attributes:
        name: of the layer.
        count: how many layers.
        parameters: of all of them.
        streamed_bytes: their weights on the wire; what stays on the wafer in pipelined mode.
        kept_bytes: activations of one sample that wait for the backward pass, if all do.
    """

    name: str
    count: int
    parameters: int
    streamed_bytes: int | float
    kept_bytes: int | float


@dataclass(frozen=True)
class Memory:
    """What of a model lies where.

    Attributes:
        rows: by layer, in the model's order.
        store_bytes: weights, gradients and two moments in single precision.
        holds_bytes: what the largest store holds; None: none is known.
        wafer_bytes: memory of the wafer.
        share: of the memory that activations may use, filled; None: in pipelined mode.
        kept: what waits for the backward pass, in words.
        layout: of convolutions and products on the grid; None: not looked for.
    """

    rows: tuple[Row, ...]
    store_bytes: int | float
    holds_bytes: int | float | None
    wafer_bytes: int | float
    share: int | float | None
    kept: str
    layout: Plan | None = None


KEPT = {
    "keep": "all activations wait on the wafer",
    "blocks": "what enters each block waits, the rest is computed again",
    "segments": "what enters every few blocks waits, the rest is computed again",
}
STORED_BYTES = 16.0  # derived: weight, gradient and two moments of Adam, 4 bytes each


def memory(estimate: Estimate, graph: object = None) -> Memory:
    """What an estimate's model needs, layer by layer.

    Args:
        estimate: of the model on one system.
        graph: of `wse.trace`, where layouts of its convolutions are to be found.
    """
    work, machine = estimate.workload, estimate.cluster.machine
    weight = float(STREAMING.weight_bytes.value)
    number = float(STREAMING.activation_bytes.value)
    alike: dict[str, list[Layer]] = {}
    for layer in work.layers:
        alike.setdefault(_shared_name(layer), []).append(layer)
    rows = tuple(
        Row(
            name,
            len(layers),
            sum(x.parameters for x in layers if not x.shared),
            weight * sum(x.parameters * x.density for x in layers),
            number * sum(x.inputs if x.kept is None else x.kept for x in layers),
        )
        for name, layers in alike.items()
    )
    stores = catalog.STORES.get(machine.wafer, ())
    step = estimate.step
    return Memory(
        rows,
        STORED_BYTES * work.parameters,
        float(stores[-1].capacity_bytes.value) if stores else None,
        float(machine.sram_bytes.value),
        step.sram_share if step else None,
        KEPT[step.plan.name] if step else "weights and activations stay on the wafer",
        _layout(graph, work.layers),
    )


def _shared_name(layer: Layer) -> str:
    """A layer's name without its block: what layers of different blocks have in common."""
    inner = layer.name.removeprefix(layer.block).strip("._")
    return f"{inner} of each block" if layer.block and inner else layer.name


def _layout(graph: object, layers: tuple[Layer, ...]) -> Plan | None:
    if not isinstance(graph, Graph) or not any(x.kind == "convolution" for x in layers):
        return None
    if any(map(to_layout.unlaid, graph.layers)):
        return None  # no layout is known of them
    shapes = to_layout.of_graph(graph)
    return plan(shapes) if 0 < len(shapes) <= LAID_OUT else None
