"""A workload's layers as arrays, and what of their activations may wait on the wafer."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from wse.machine.cluster import Cluster
from wse.machine.constants import SHARES, STREAMING, Streaming, end
from wse.machine.machine import Sourced
from wse.machine.share import Shares as Known
from wse.models.shapes.workload import Layer, Workload
from wse.predict import grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]
else:  # jaxtyping asks for a class, which these are not from NumPy 2.5 on
    Reals = Integers = Flags = np.ndarray


@dataclass(frozen=True)
class Plan:
    """What waits on the wafer for the backward pass.

    Attributes:
        name: "keep", "blocks" or "segments".
        passes: r, times that a layer's weights come in on the way back.
        again: e, forward passes computed again beyond those that efficiencies contain.
        bytes_per_sample: activations that must fit, of one sample.
    """

    name: str
    passes: int
    again: int
    bytes_per_sample: float


@dataclass(frozen=True)
class Shapes:
    """Layers as arrays; equal neighbourhoods may be merged and counted.

    Attributes:
        weights: P of every layer that is different.
        trained: those among them that have a gradient.
        updated: the same, 0 where the weights are another layer's.
        forward_flops: F per sample.
        backward_flops: F_b per sample; the first layer has no gradient of the samples.
        seconds_per_flop: 1 / (eta R).
        density: s.
        zeros: share of zeros among activations.
        thin: whether a layer is sparsifiable.
        here: for each visit, the layer; `before` and `after`: its neighbours, -1 for none.
        before: see `here`.
        after: see `here`.
        count: how many visits are the same.
        share: of the peak, as it is, that the layer with the most work reaches.
    """

    weights: Float[Reals, " layer"]
    trained: Float[Reals, " layer"]
    updated: Float[Reals, " layer"]
    forward_flops: Float[Reals, " layer"]
    backward_flops: Float[Reals, " layer"]
    seconds_per_flop: Float[Reals, " layer"]
    density: Float[Reals, " layer"]
    zeros: Float[Reals, " layer"]
    thin: Bool[Flags, " layer"]
    here: Int[Integers, " visit"]
    before: Int[Integers, " visit"]
    after: Int[Integers, " visit"]
    count: Float[Reals, " visit"]
    share: Sourced


def shapes(
    workload: Workload,
    cluster: Cluster,
    release: str,
    *,
    merged: bool = False,
    fast: bool | None = None,
    known: Known = SHARES,
    held: int = 1,
) -> Shapes:
    """The layers of a workload as arrays.

    Args:
        workload: the model.
        cluster: whose wafer and peak set the speed.
        release: of the vendor's software, which sets the efficiency.
        merged: merge visits that have the same layer between the same neighbours.
        fast: take efficiencies at the fast or slow end of their intervals; None: as they are.
        known: the shares of the peak that were calibrated.
        held: samples at once on one system, which the layouts of convolutions ask for.

    Raises:
        ValueError: what `wse.constants.efficiency` refuses.
    """
    each = _shares(workload, cluster, release, known, held)
    most = max(range(len(each)), key=lambda i: workload.layers[i].forward_flops)
    ends = {one: one if fast is None else end(one, fast) for one in dict.fromkeys(each)}
    kinds: dict[Any, int] = {}
    rows: list[tuple[float, ...]] = []
    visits: list[int] = []
    for i, layer in enumerate(workload.layers):
        row = _row(layer, i == 0, cluster, ends[each[i]])
        key = row if merged else i
        if key not in kinds:
            kinds[key] = len(rows)
            rows.append(row)
        visits.append(kinds[key])
    triples = list(zip([-1, *visits[:-1]], visits, [*visits[1:], -1], strict=True))
    counts = Counter(triples)  # without merging, every one is another
    before, here, after = (np.array(x, dtype=np.int64) for x in zip(*counts, strict=True))
    count = np.array(list(counts.values()), dtype=np.float64)
    *columns, thin = (np.array(x, dtype=np.float64) for x in zip(*rows, strict=True))
    places = {"here": here, "before": before, "after": after, "count": count}
    return Shapes(*columns, thin=thin > 0, share=each[most], **places)


def plans(workload: Workload, constants: Streaming = STREAMING) -> tuple[Plan, ...]:
    """What may wait on the wafer, from the most memory to the least."""
    every = [part for layer in workload.layers for part in layer.waiting]
    entering: dict[str, float] = {}
    within: Counter[str] = Counter()
    for part in every:
        entering.setdefault(part.block, float(part.enters))
        within[part.block] += part.kept
    inner = max(within.values())
    waiting = {
        "keep": float(within.total()),
        "blocks": sum(entering.values()) + inner,
        "segments": 2 * sqrt(len(entering)) * max(entering.values()) + inner,
    }
    size = constants.activation_bytes.value
    least = float(workload.inputs)  # where nothing is multiplied
    return tuple(
        Plan(name, passes, again, size * max(least, waiting[name]))
        for name, passes, again in (("keep", 1, 0), ("blocks", 2, 0), ("segments", 3, 1))
    )


def _shares(
    workload: Workload, cluster: Cluster, release: str, known: Known, held: int
) -> tuple[Sourced, ...]:
    """The share of the peak of every layer; of convolutions by their layouts, if these are known.

    Of a net of dense layers alone no such run is known.
    """
    unseen = workload.tokens == 1 and {x.kind for x in workload.layers} == {"dense"}
    left = grid.shares(workload, cluster.machine, held)

    @cache
    def alike(features: int, kind: str, convolved: float) -> Sourced:
        return known.of(cluster.machine.wafer, release, features, kind, convolved)

    return tuple(
        known.laid_out(left[layer.name])
        if layer.name in left
        else alike(layer.along_rows, "unseen" if unseen else layer.kind, layer.convolved)
        for layer in workload.layers
    )


def held_at_once(
    workload: Workload, sram_bytes: float, per_system: float, micro_batch: int | None = None
) -> int:
    """Samples at once on one system, as many as fit where most of their activations wait; or 0."""
    most = [int(sram_bytes // plan.bytes_per_sample) for plan in plans(workload)]
    fit = next((n for n in most if n), 0)
    return max(1, int(min(micro_batch or fit, per_system))) if fit else 0


def _row(layer: Layer, first: bool, cluster: Cluster, share: Sourced) -> tuple[float, ...]:
    """What `Shapes` holds of one layer, in the order of its fields."""
    backward = layer.backward_flops - (layer.of_inputs_flops if first else 0)
    return (
        float(layer.parameters),
        float(layer.trained),
        0.0 if layer.shared else float(layer.trained),
        float(layer.forward_flops),
        float(backward),
        1.0 / (share.value * cluster.machine.peak_fp16_flops_per_s),
        layer.density,
        layer.zeros,
        float(layer.sparsifiable and layer.parameters > 0),
    )
