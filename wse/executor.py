"""What a training loop holds: gradients and steps with the plain signatures, run by streaming."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from wse.arguments import Parameters, host, signature
from wse.cluster import CS2, Cluster
from wse.memoryx import MemoryX, Receiving, store
from wse.numerics import Numerics
from wse.streaming import Plan, Step
from wse.swarmx import SwarmX
from wse.timeline import Run
from wse.tracing import trace

if TYPE_CHECKING:
    from wse.graph import Graph


class Executor:
    """Runs a training function with weights that are streamed in layer by layer.

    Loss, gradients and trained weights are those of plain JAX: with a cluster's `sparsity`, of the
    optimizer in `wse.sparsity.masked` from `wse.sparsity.sparsified` weights on; with its
    `precision`, of `wse.precision.mixed` and `wse.precision.scaled`. A batch of new shapes is
    traced anew; the parameters' shapes are fixed.

    Args:
        loss: `loss(params, batch)`, as for `wse.trace`.
        params: a tree of floating-point arrays, or of their shapes.
        batch: a tree of arrays, or of their shapes.
        optimizer: any optax optimizer; needed for `init` and `train_step` alone.
        has_aux: whether `loss` returns (scalar, auxiliary outputs).
        keep_residuals: keep what the backward pass needs, instead of computing it again: about a
            quarter less arithmetic, more memory on the device.
        cluster: the systems that share a batch, and what they are told: `wse.CS2()` if left out.
        folder: keep weights and optimizer state in files there, one version per step; of several
            processes, each in a folder of its own below.
        checkpoint_every: keep them in memory, and write them to `folder` every so many steps.

    Raises:
        ValueError: what `wse.trace` refuses, systems that do not divide the batch, or a sparsity
            or precision that is none.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        params: Any,
        batch: Any,
        optimizer: Any = None,
        *,
        has_aux: bool = False,
        keep_residuals: bool = False,
        cluster: Cluster | None = None,
        folder: Path | str | None = None,
        checkpoint_every: int | None = None,
    ) -> None:
        self._loss, self._has_aux, self._keep = loss, has_aux, keep_residuals
        self._folder = folder
        self._checkpoint_every = checkpoint_every
        self._cluster = cluster = cluster or CS2()
        self._numerics = Numerics(cluster.sparsity, cluster.precision)
        self._optimizer = None if optimizer is None else self._numerics.optimizer(optimizer)
        self._swarm = SwarmX(cluster.systems, grid=cluster.fabric)
        self._params = Parameters(params)
        self._plans: dict[Any, Plan] = {}
        self._run: Run | None = None
        self._first = self._plan(batch)

    @property
    def graph(self) -> "Graph":
        """The layers, as traced on the batch that the executor was made with."""
        return self._first.graph

    @property
    def run(self) -> Run:
        """The record of the last step: what moved, what ran, what was resident.

        Raises:
            ValueError: nothing has run yet.
        """
        if self._run is None:
            raise ValueError("nothing has run yet: call value_and_grad or train_step first")
        return self._run

    def value_and_grad(self, params: Any, batch: Any) -> tuple[Any, Any]:
        """What `jax.value_and_grad(loss, has_aux=...)` returns; gradients as NumPy arrays.

        Raises:
            ValueError: parameters of another tree or of other shapes, or a batch that the systems
                do not divide.
        """
        held = MemoryX(self._leaves(params), (), self._params.structure)
        value, receiving = self._step(held, batch)
        gradients = [receiving.gradients[leaf] for leaf in range(len(held.weights))]
        return value, self._params.tree(gradients)

    def init(self, params: Any, optimizer_state: Any = None) -> MemoryX:
        """Take weights into the store and make the optimizer's first state, or take that in too.

        With `folder`, a complete step of the same model that lies there is continued; then the
        shapes of `params` suffice. What exceeds the cluster's `host_budget_bytes`, old and new
        step together, lies in files: in `folder`, or in a temporary folder.

        Raises:
            ValueError: no optimizer was given, parameters or a state of another tree or of other
                shapes, or the files of another model.
            OSError: a file cannot be written.
        """
        if self._optimizer is None:
            raise ValueError(
                "the executor has no optimizer; training needs one: "
                "pass executor(loss, params, batch, optax.adam(1e-3))"
            )
        self._params.checked(params)
        # Weights that come with a state were trained: what makes them sparse has been done.
        weights = params if optimizer_state is not None else self._numerics.weights(params)
        return store(
            weights,
            self._optimizer,
            _own(self._folder),
            optimizer_state=optimizer_state,
            checkpoint_every=self._checkpoint_every,
            budget_bytes=self._cluster.host_budget_bytes,
        )

    def train_step(self, state: MemoryX, batch: Any) -> tuple[MemoryX, Any]:
        """Run one step; returns the next state and the loss, or (loss, auxiliary outputs).

        Raises:
            ValueError: a state without an optimizer, or a batch that the systems do not divide.
        """
        if state.update is None:
            raise ValueError(
                "state has no optimizer; training needs one: make it with init(params)"
            )
        value, receiving = self._step(state, batch)
        return receiving.finish(), value

    def _step(self, held: MemoryX, batch: Any) -> tuple[Any, Receiving]:
        plan = self._plan(batch)
        receiving = held.receive(plan.expected)
        link = self._numerics.link(held.optimizer_state)
        outputs, self._run = Step(plan, held, receiving, link).run(jax.tree.leaves(batch))
        if not self._has_aux:
            return outputs[0], receiving
        return (outputs[0], jax.tree.unflatten(plan.graph.auxiliary, outputs[1:])), receiving

    def _plan(self, batch: Any) -> Plan:
        found = signature(batch)
        if found not in self._plans:
            self._swarm.check(jax.tree.leaves(batch))
            graph = trace(self._loss, self._params.shapes, batch, has_aux=self._has_aux)
            self._plans[found] = Plan(self._numerics.graph(graph), self._swarm, self._keep)
        return self._plans[found]

    def _leaves(self, params: Any) -> tuple[Any, ...]:
        return tuple(map(host, self._params.checked(params)))


def _own(folder: Path | str | None) -> Path | str | None:
    """Where this process keeps its files."""
    if folder is None or jax.process_count() == 1:
        return folder
    return Path(folder) / f"process-{jax.process_index()}"
