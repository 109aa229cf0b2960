"""What every execution of a training function has in common: its signatures, its checks."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import jax
import numpy as np

from wse import _render
from wse._agreement import check_alike
from wse.execute.arguments import Parameters, check_meshes, check_samples, host, signature
from wse.execute.numerics import Numerics
from wse.execute.swarmx import SwarmX
from wse.execute.timeline import Run
from wse.execute.updates import check
from wse.graph.batch import batch_size
from wse.graph.layers import Graph
from wse.graph.trace import trace
from wse.machine.cluster import CS2, Cluster


@runtime_checkable
class Planned(Protocol):
    """What an execution makes ready to run."""

    graph: Graph


Plan = TypeVar("Plan", bound=Planned)


@dataclass(eq=False, repr=False)
class Execution(ABC, Generic[Plan]):
    """A training function, made ready for one of the machine's executions.

    Loss, gradients and trained weights are those of plain JAX: with a cluster's `sparsity`, of the
    optimizer in `wse.sparsity.masked` from `wse.sparsity.sparsified` weights on; with its
    `precision`, of `wse.precision.mixed` and `wse.precision.scaled`. A batch of new shapes is
    traced anew; the parameters' shapes are fixed.

    Args:
        loss: `loss(params, batch)`, as for `wse.trace`.
        params: a tree of floating-point arrays, or of their shapes.
        batch: a tree of arrays, or of their shapes; the systems divide its samples.
        optimizer: any optax optimizer; needed for `init` and `train_step` alone.
        has_aux: whether `loss` returns (scalar, auxiliary outputs).
        batch_size: samples of `batch`: its arrays of this length hold samples, all others go whole
            to every system; None: the leading axis of the largest array.
        keep_residuals: keep what the backward pass needs, instead of computing it again: about a
            quarter less arithmetic, more memory on the device.
        cluster: the systems that share a batch, and what they are told.

    Raises:
        ValueError: what `wse.trace` refuses, systems that do not divide the batch, or a sparsity
            or precision that is none.
    """

    loss: Callable[..., Any]
    params: InitVar[Any]
    batch: InitVar[Any]
    optimizer: Any = None
    _: KW_ONLY
    has_aux: bool = False
    batch_size: int | None = None
    keep_residuals: bool = False
    cluster: Cluster = field(default_factory=CS2)

    def __post_init__(self, params: Any, batch: Any) -> None:
        """Trace the function and compile what it takes."""
        self._numerics = Numerics(self.cluster.sparsity, self.cluster.precision)
        self._optimizer: Any = None
        if self.optimizer is not None:
            check(self.optimizer)
            self._optimizer = self._numerics.optimizer(self.optimizer)
        self._swarm = SwarmX(self.cluster.systems, grid=self.cluster.fabric)
        self._params = Parameters(params)
        self._plans: dict[Any, Plan] = {}
        self._holds = _holding(batch, self.batch_size)
        self._run: Run | None = None
        self._first = self._plan(batch)

    def __repr__(self) -> str:
        """One line: the layers, the machine, and the optimizer if there is one."""
        trains = "trains" if self.optimizer is not None else "value and gradients alone"
        layers = f"{len(self.graph.layers)} layers"
        return f"{type(self).__name__}({layers} on {self.cluster!r}; {trains})"

    def _repr_html_(self) -> str:
        """What a step takes and where it runs under that line, for a notebook."""
        graph, share = self.graph, self.graph.batch_size // self.cluster.systems
        rows = [
            ("parameters", f"{sum(x.size for x in graph.shapes):,}"),
            ("layers", f"{len(graph.layers)} of {graph.programs} programs"),
            ("samples of a batch", f"{graph.batch_size:,}, {share:,} for each system"),
            ("devices", f"{len(self._swarm.devices)}"),
            ("last step", repr(self._run) if self._run else "none yet"),
        ]
        return _render.html(repr(self), ("", "value"), rows)

    @property
    def graph(self) -> Graph:
        """The layers, of the batch that the executor was made with; streamed, small ones join."""
        return self._first.graph

    @property
    def run(self) -> Run:
        """The record of the last step: what moved, what ran when, what was resident.

        Raises:
            ValueError: nothing has run yet.
        """
        if self._run is None:
            raise ValueError("nothing has run yet: call value_and_grad or train_step first")
        return self._run

    def value_and_grad(self, params: Any, batch: Any) -> tuple[Any, Any]:
        """What `jax.value_and_grad(loss, has_aux=...)` returns; gradients as NumPy arrays.

        Raises:
            ValueError: parameters of another tree or of other shapes, or a batch that systems, or
                parts, do not divide.
        """
        leaves = [host(leaf) for leaf in self._params.checked(params)]
        value, gradients = self._derived(leaves, batch)
        return value, self._params.tree([np.asarray(x) for x in gradients])

    @abstractmethod
    def _derived(self, leaves: Sequence[Any], batch: Any) -> tuple[Any, Sequence[Any]]:
        """The value, and the gradients of the leaves."""

    @abstractmethod
    def _planned(self, batch: Any, size: int) -> Plan:
        """Make ready for batches of these shapes, of so many samples."""

    def _plan(self, batch: Any) -> Plan:
        found = signature(batch)
        if found not in self._plans:
            size = self._size(batch)
            self._swarm.check(size)
            check_alike("batches", jax.tree.leaves(batch))
            check_samples(size)
            self._plans[found] = self._planned(batch, size)
        return self._plans[found]

    def _size(self, batch: Any) -> int:
        """How many samples a batch has, by the arrays that held the samples of the first one."""
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(batch)]
        if self._holds is None or len(self._holds) != len(shapes):
            return batch_size(shapes) if shapes else self.cluster.systems
        sizes = {shape[:1] for shape, holds in zip(shapes, self._holds, strict=True) if holds}
        if len(sizes) > 1 or () in sizes:
            raise ValueError(
                f"the arrays that hold samples have shapes {', '.join(map(str, sorted(sizes)))} "
                "along their leading axis; they must have the same: pass one batch"
            )
        return sizes.pop()[0] if sizes else 1  # the whole batch is one sample

    def _traced(self, batch: Any) -> Graph:
        graph = trace(self.loss, self._params.shapes, batch, has_aux=self.has_aux)
        check_meshes(graph, self._swarm.devices)
        return graph

    def _value(self, graph: Graph, outputs: Sequence[Any]) -> Any:
        """The loss, or (loss, auxiliary outputs)."""
        if not self.has_aux:
            return outputs[0]
        return outputs[0], jax.tree.unflatten(graph.auxiliary, outputs[1:])

    def _trains(self) -> Any:
        """The optimizer behind masks and loss scaling, which training needs."""
        if self._optimizer is None:
            raise ValueError(
                "the executor has no optimizer; training needs one: "
                "pass executor(loss, params, batch, optax.adam(1e-3))"
            )
        return self._optimizer

    def _weights(self, params: Any, optimizer_state: Any) -> Any:
        """The weights on which training starts."""
        self._params.checked(params)
        # Weights that come with a state were trained: what makes them sparse has been done.
        return params if optimizer_state is not None else self._numerics.weights(params)


def _holding(batch: Any, stated: int | None) -> tuple[bool, ...] | None:
    """For each array of a batch, whether it holds samples; None: no number of samples was said."""
    if stated is None:
        return None
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(batch)]
    size = batch_size(shapes, stated)
    return tuple(shape[:1] == (size,) for shape in shapes)
