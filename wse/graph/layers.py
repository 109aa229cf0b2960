"""A training function as a row of layers: what each holds, reads, writes and costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from math import prod
from typing import Any

from jax.extend import core

from wse import _render
from wse.graph.derivatives import Demand
from wse.graph.equations import REMATS, Weight
from wse.graph.flops import inner_programs

FEW = 16  # constants below this part of the parameters are a table, not weights
HEADER = ("layer", "weights", "reads", "writes", "forward", "backward", "kept", "program", "line")


@dataclass(frozen=True)
class Work:
    """What one visit of a layer costs, from shapes alone.

    Attributes:
        forward_flops: of products and convolutions; two per multiply-add, border taps counted.
        backward_flops: the same, of the gradients that are asked for; nothing recomputed.
        weight_bytes: the weights that are brought in.
        read_bytes: activations read.
        write_bytes: activations written.
        residual_bytes: what the backward pass needs besides weights and activations read.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> graph.layers[0].work.forward_flops
    48
    """

    forward_flops: int
    backward_flops: int
    weight_bytes: int
    read_bytes: int
    write_bytes: int
    residual_bytes: int


@dataclass(frozen=True)
class Layer:
    """One visit to the weights of a layer, and all that runs during it.

    Attributes:
        name: the layer's path in the parameter tree; from the second visit on with its number.
        parameters: paths of the parameters that are resident; a slice of a stack has its index.
        weights: the same, as places among the leaves of the parameter tree.
        reads: values that it reads, as places in `Graph.values`; of a layer before the previous
            one it is a skip connection.
        writes: values that it writes.
        jaxpr: the computation, of weights, then reads, to writes.
        demand: which derivatives the backward pass asks of it.
        work: what it costs.
        program: layers of the same number share one compiled program.
        source: the user's line that reads the weights first.
        recomputed: whether the user's own program runs it again in the backward pass (a remat
            about it and others); executors make that choice themselves.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> graph = wse.trace(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> [layer.name for layer in graph.layers]
    ['w']
    """

    name: str
    parameters: tuple[str, ...]
    weights: tuple[Weight, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    jaxpr: core.ClosedJaxpr
    demand: Demand
    work: Work
    program: int
    source: str
    recomputed: bool = False


@dataclass(frozen=True)
class Graph:
    """A training function as ordered layers, from `wse.trace`.

    Attributes:
        layers: in the order of the forward pass. Shared weights are visited once per use.
        values: shape and type of every value that layers exchange: the leaves of the batch, the
            arrays that the function closes over, activations.
        inputs: for each leaf of the batch, its place in `values`.
        constants: places in `values` and the arrays that the function closes over.
        outputs: for the loss, then each leaf of the auxiliary outputs: a place in `values`, a
            weight, or an array that does not depend on either.
        parameters: paths of all parameters, in the order of the leaves.
        shapes: shape and type of all parameters.
        auxiliary: the tree of the auxiliary outputs; None without `has_aux`.
        batch_size: samples of the batch.
        doubt: why another number of samples may have been meant; empty where none was.

    >>> import wse
    >>> import numpy as np
    >>> wse.trace(lambda p, x: (x @ p["w"]).mean(), {"w": np.ones((3, 2))}, np.ones((4, 3)))
    Graph(1 layers, 1 programs, 6 parameters)
    """

    layers: tuple[Layer, ...]
    values: tuple[Any, ...]
    inputs: tuple[int, ...]
    constants: tuple[tuple[int, Any], ...]
    outputs: tuple[Any, ...]
    parameters: tuple[str, ...]
    shapes: tuple[Any, ...]
    auxiliary: Any = None
    batch_size: int = 1
    doubt: str = ""

    @property
    def asks_again(self) -> bool:
        """Whether the user's program has its backward pass compute something again, by a remat."""
        return any(x.recomputed or _has_remat(x.jaxpr.jaxpr) for x in self.layers)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What may have been meant otherwise: the samples, what nothing reads or is closed over.

        >>> import wse
        >>> import numpy as np
        >>> params = {"w": np.ones((3, 2)), "old": np.ones(5)}
        >>> wse.trace(lambda p, x: (x @ p["w"]).mean(), params, np.ones((4, 3))).cautions
        ('the loss reads 6 of 11 parameters; it does not depend on old, which are not counted',)
        """
        read = {weight.leaf for layer in self.layers for weight in layer.weights}
        unread = [i for i in range(len(self.shapes)) if i not in read]
        lost = _some([self.parameters[i] for i in unread])
        sizes = [prod(shape.shape) for shape in self.shapes]
        said = (
            f"the loss reads {sum(sizes) - sum(sizes[i] for i in unread):,} of {sum(sizes):,} "
            f"parameters; it does not depend on {lost}, which are not counted"
        )
        named = {
            w: x for one in self.layers for w, x in zip(one.weights, one.parameters, strict=True)
        }
        still = sorted(named.keys() - self.trained)
        size = sum(prod(self.shapes[x.leaf].shape[len(x.index) :]) for x in still)
        stopped = (
            f"the loss passes no gradient to {size:,} of {sum(sizes):,} parameters, "
            f"{_some([named[x] for x in still])}: these come in, and are not counted as gradients, "
            "optimizer state or updates"
        )
        held = sum(prod(self.values[place].shape) for place, _ in self.constants)
        frozen = (
            f"the loss closes over arrays of {held:,} numbers, which are no parameters: neither "
            "their way to the device nor their memory is counted; pass what is trained in params"
        )
        return tuple(
            text
            for text, holds in {
                self.doubt: bool(self.doubt),
                said: bool(unread),
                stopped: bool(still),
                frozen: FEW * held > sum(sizes),
            }.items()
            if holds
        )

    @property
    def trained(self) -> frozenset[Weight]:
        """The parameters, of a stack the slices, to which the loss passes a gradient."""
        found = (compress(layer.weights, layer.demand.weights) for layer in self.layers)
        return frozenset(chain.from_iterable(found))

    @property
    def forward_flops(self) -> int:
        """Of all layers."""
        return sum(layer.work.forward_flops for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        """Of all layers, nothing recomputed."""
        return sum(layer.work.backward_flops for layer in self.layers)

    @property
    def weight_bytes(self) -> int:
        """Bytes brought in by one forward pass: of shared weights, once per visit."""
        return sum(layer.work.weight_bytes for layer in self.layers)

    @property
    def programs(self) -> int:
        """Different programs among the layers."""
        return len({layer.program for layer in self.layers})

    def skips(self, layer: Layer) -> tuple[int, ...]:
        """The values that a layer reads from a layer before the previous one."""
        made = {v: i for i, other in enumerate(self.layers) for v in other.writes}
        here = self.layers.index(layer)
        return tuple(v for v in layer.reads if made.get(v, here) < here - 1)

    def __repr__(self) -> str:
        """One line: how many layers, programs and parameters; `print` shows the layers."""
        return f"Graph({self._caption()})"

    def __str__(self) -> str:
        """The layers as a table for a terminal."""
        return f"{self._caption()}\n\n{_render.text(HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        """The layers as a table for a notebook."""
        return _render.html(self._caption(), HEADER, self._rows())

    def _caption(self) -> str:
        return (
            f"{len(self.layers)} layers, {self.programs} programs, "
            f"{sum(prod(shape.shape) for shape in self.shapes):,} parameters"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                layer.name,
                _scaled(layer.work.weight_bytes, "B"),
                _scaled(layer.work.read_bytes, "B"),
                _scaled(layer.work.write_bytes, "B"),
                _scaled(layer.work.forward_flops, "FLOP"),
                _scaled(layer.work.backward_flops, "FLOP"),
                _scaled(layer.work.residual_bytes, "B"),
                str(layer.program),
                layer.source,
            )
            for layer in self.layers
        ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + ", …" * (len(names) > 3)


def _scaled(count: int, unit: str) -> str:
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f} {prefix}{unit}"
    return f"{count} {unit}"


def _has_remat(program: core.Jaxpr) -> bool:
    return any(
        eqn.primitive.name in REMATS or any(map(_has_remat, inner_programs(eqn)))
        for eqn in program.eqns
    )
