"""A step of a graph as a Chakra execution trace, which ASTRA-sim reads.

Weights are broadcast before a layer runs, forward and backward; gradients are reduced after it. The
schema is `et_def.proto` of mlcommons/chakra; each message has its length before it. What the names
of attributes mean is said by the feeder of that repository.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wse._files import as_path, write_aside
from wse._numbers import each_of_kind, of_kind, positive
from wse._protobuf import delimited, field, packed
from wse.graph.layers import Graph

COMP, COLLECTIVE = 4, 7  # NodeType
REDUCE, BROADCAST = 1, 5  # CollectiveCommType
KINDS = ("broadcast", "forward", "backward", "gradient")
VERSION = "0.0.4"  # of the schema, in the first message


@dataclass(frozen=True)
class Node:
    """One thing that runs or moves.

    Attributes:
        id: its place in the file, from 0.
        name: what happens, and to which layer: "broadcast", "forward", "backward", "gradient".
        kind: which of these.
        layer: the layer's name.
        needs: ids of what must have ended.
        flops: of a computation.
        bytes: read and written by a computation; moved to or from each system by a collective.
        start_s: when it was seen to run; 0: it was not run.
        seconds: how long it was seen to run.
    """

    id: int
    kind: str
    layer: str
    needs: tuple[int, ...]
    flops: int = 0
    bytes: int = 0
    start_s: float = 0.0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """As "forward blocks.0.up"."""
        return f"{self.kind} {self.layer}"


def nodes(graph: Graph) -> tuple[Node, ...]:
    """One step: what runs and moves, and what each waits for.

    Args:
        graph: from `wse.trace`.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> len(wse.chakra.nodes(graph)) > 2
    True
    """
    of_kind("graph", graph, Graph, "pass what wse.trace gives")
    found: list[Node] = []

    def add(kind: str, layer: str, needs: Sequence[int], flops: int = 0, size: int = 0) -> int:
        found.append(Node(len(found), kind, layer, tuple(dict.fromkeys(needs)), flops, size))
        return found[-1].id

    made: dict[int, int] = {}  # value -> what writes it
    forward: list[int] = []
    for layer in graph.layers:
        work = layer.work
        moved = work.weight_bytes + work.read_bytes + work.write_bytes
        sent = [add("broadcast", layer.name, (), size=work.weight_bytes)] if layer.weights else []
        reads = [made[value] for value in layer.reads if value in made]
        forward.append(add("forward", layer.name, [*sent, *reads], work.forward_flops, moved))
        made |= dict.fromkeys(layer.writes, forward[-1])
    asked: dict[int, list[int]] = {}  # value -> what made its gradient
    for i in reversed(range(len(graph.layers))):
        layer = graph.layers[i]
        if not layer.demand.any:
            continue
        work = layer.work
        moved = 2 * (work.weight_bytes + work.read_bytes + work.write_bytes)
        sent = [add("broadcast", layer.name, (), size=work.weight_bytes)] if layer.weights else []
        after = [x for value in layer.writes for x in asked.get(value, ())]
        back = add("backward", layer.name, [forward[i], *sent, *after], work.backward_flops, moved)
        for value in layer.reads:
            asked.setdefault(value, []).append(back)
        if layer.weights:
            add("gradient", layer.name, [back], size=work.weight_bytes)
    return tuple(found)


def save(found: Sequence[Node], path: Path | str, systems: int = 1) -> tuple[Path, ...]:
    """Write one file to a system, as `step.0.et`, and return their paths.

    Args:
        found: from `nodes`.
        path: of which the name is kept, and the ending must be .et.
        systems: how many; each does the same.

    Raises:
        ValueError: another ending, or no system.
    """
    path = as_path("path", path, "pass step.et")
    each_of_kind("found", found, Node, "pass what wse.chakra.nodes gives")
    if path.suffix != ".et":
        raise ValueError(f"path is {str(path)!r}; a Chakra trace ends in .et: pass step.et")
    positive("systems", systems)
    text = delimited(field(1, VERSION)) + b"".join(delimited(_message(node)) for node in found)
    paths = tuple(path.with_name(f"{path.stem}.{i}.et") for i in range(systems))
    for one in paths:
        with write_aside(one) as aside:
            aside.write_bytes(text)
    return paths


def timed(found: Sequence[Node], events: Iterable[Any]) -> tuple[Node, ...]:
    """The nodes with the times at which a run saw them.

    Args:
        found: from `nodes`.
        events: of a `wse.Run`, `run.events`; samples in and updates in the store are left out.

    Raises:
        ValueError: an event of a layer that the graph has not, or more events than nodes.
    """
    each_of_kind("found", found, Node, "pass what wse.chakra.nodes gives")
    of_kind("events", events, Iterable, "pass run.events, of a wse.Run")
    waiting: dict[tuple[str, str], list[Node]] = {}
    for node in found:
        waiting.setdefault((node.kind, node.layer), []).append(node)
    done = {node.id: node for node in found}
    for event in events:
        if event.kind not in KINDS:
            continue
        left = waiting.get((event.kind, event.layer))
        if not left:
            raise ValueError(
                f"the run has a {event.kind} of {event.layer!r} that the graph has not, or not so "
                "often; both must be of one streamed step: pass the graph that was run"
            )
        node = left.pop(0)
        done[node.id] = replace(node, start_s=event.start_s, seconds=event.seconds)
    return tuple(done.values())


def _message(node: Node) -> bytes:
    collective = node.kind in ("broadcast", "gradient")
    head = field(1, node.id) + field(2, node.name) + field(3, COLLECTIVE if collective else COMP)
    times = field(6, round(1e6 * node.start_s)) + field(7, round(1e6 * node.seconds))
    said = {"is_cpu_op": (27, 0)}
    if collective:
        said["comm_type"] = (9, BROADCAST if node.kind == "broadcast" else REDUCE)
        said["comm_size"] = (9, node.bytes)
    else:
        said["num_ops"] = (9, node.flops)
        said["tensor_size"] = (13, node.bytes)
    attributes = b"".join(
        field(10, field(1, name) + field(kind, value)) for name, (kind, value) in said.items()
    )
    return head + packed(5, node.needs) + times + attributes
