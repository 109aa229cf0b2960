"""A segment on several systems at once: each works on its own samples, sums wait.

What a part of the batch gives for weights stays with its system, one entry per system along a new
first axis, until the whole net's is added up in buckets (`wse.execute.buckets`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from wse.execute.buckets import summed
from wse.execute.resident.segments import Flow, Segment
from wse.graph.derivatives import add

Program = Callable[..., Any]


def forward(run: Program, flow: Flow, segment: Segment, mesh: Any) -> Program:
    """Return (weights, reads) -> (writes, kept) on all systems."""

    def local(weights: Any, reads: Any) -> Any:
        writes, kept = run(weights, reads)
        added = [i for i, v in enumerate(segment.writes) if v in flow.sums]
        totals = summed([writes[i] for i in added], "system")
        for i, total in zip(added, totals, strict=True):
            writes[i] = total
        return writes, [x[None] for x in kept]

    reads, writes = _along(flow, segment.reads), _along(flow, segment.writes)
    return _mapped(local, mesh, (PartitionSpec(), reads), (writes, PartitionSpec("system")))


def backward(
    run: Program, flow: Flow, segment: Segment, needed: Sequence[int], mesh: Any
) -> Program:
    """Return (weights, kept, reads, cotangents, sums) -> (weight, read cotangents)."""
    moved = _along(flow, segment.moved)
    whole = [i for i, v in enumerate(segment.moved) if v not in flow.axes]

    def local(weights: Any, kept: Any, reads: Any, cotangents: Any, sums: Any) -> Any:
        found, moves = run(weights, [x[0] for x in kept], reads, cotangents)
        for i, total in zip(whole, summed([moves[i] for i in whole], "system"), strict=True):
            moves[i] = total
        own, before = sums
        weighed = [add(x[None], y) for x, y in zip(found, own, strict=True)]
        return weighed, [add(x, y) for x, y in zip(moves, before, strict=True)]

    stacked = PartitionSpec("system")
    given = _along(flow, segment.given)

    def call(weights: Any, kept: Any, reads: Any, cotangents: Any, sums: Any) -> Any:
        before = [None if x is None else spec for x, spec in zip(sums[1], moved, strict=True)]
        inputs = (PartitionSpec(), stacked, _along(flow, needed), given, (stacked, before))
        mapped = _mapped(local, mesh, inputs, (stacked, moved))
        return mapped(weights, kept, reads, cotangents, sums)

    return call


def _along(flow: Flow, values: Sequence[int]) -> list[Any]:
    """How values lie on the systems: along the axis of the samples, or whole on each."""
    axes = flow.axes
    return [
        PartitionSpec(*[None] * axes[v], "system") if v in axes else PartitionSpec() for v in values
    ]


def _mapped(local: Program, mesh: Any, inputs: Any, outputs: Any) -> Program:
    # Unchecked: a derivative taken inside stays with its system, which is what is wanted.
    return jax.shard_map(local, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
