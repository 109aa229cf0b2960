"""A cluster's sparsity and precision, brought to what an executor runs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from wse.execute.wire import Link
from wse.graph.layers import Graph
from wse.precision import Format, Precision, as_precision, rounded, scaled
from wse.sparsity import Method, masked, sparsified


@dataclass(frozen=True)
class Numerics:
    """Which weights are other than zero, and in which arithmetic they meet.

    Attributes:
        sparsity: how masks are chosen; None: all weights are trained.
        given: a `wse.precision.Precision`, a format's name, or None.

    Raises:
        ValueError: a sparsity that is no method, or what `wse.precision.as_precision` refuses.
    """

    sparsity: Any = None
    given: Any = None

    def __post_init__(self) -> None:
        if self.sparsity is not None and not isinstance(self.sparsity, Method):
            raise ValueError(
                f"sparsity is {self.sparsity!r}; it must be a method: pass wse.sparsity.Static(0.9)"
            )
        as_precision(self.given)

    @cached_property
    def precision(self) -> Precision | None:
        """The format and the scaling of the loss."""
        return as_precision(self.given)

    @property
    def half(self) -> Format | None:
        """The format in which values are held; None: that of the arrays."""
        return self.precision.half if self.precision else None

    def optimizer(self, inner: Any) -> Any:
        """The optimizer behind masks and loss scaling."""
        found = inner if self.sparsity is None else masked(inner, self.sparsity)
        return scaled(found, self.precision.scale) if self.precision else found

    def weights(self, params: Any) -> Any:
        """The weights before training; shapes alone stay as they are."""
        shapes = (isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(params))
        if self.sparsity is None or any(shapes):
            return params
        return sparsified(params, self.sparsity)

    def graph(self, graph: Graph, weights: bool = True) -> Graph:
        """The graph in this arithmetic; `weights`: as of `wse.precision.rounded`."""
        return rounded(graph, self.half, weights) if self.half else graph

    def scale(self, state: Any) -> float:
        """What the loss is multiplied with in the step after `state`."""
        return float(state.scale) if self.precision else 1.0

    def link(self, store: Any) -> Link:
        """How weights and gradients travel in the step after that of a store."""
        if self.sparsity is None and self.precision is None:
            return Link()
        half, state = self.half, store.optimizer_state
        if state is None:
            return Link(half=half)
        scale = self.scale(state)
        state = state.inner if self.precision else state
        if self.sparsity is None:
            return Link(half=half, scale=scale)
        masks = [np.asarray(mask) for mask in jax.tree.leaves(state.masks)]
        whole = self.sparsity.reads_gradient and bool(self.sparsity.due(int(state.step) + 1))
        return Link(masks, whole, half, scale)
