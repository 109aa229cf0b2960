"""The layer-pipelined execution: the whole net resident, parts of the batch flowing through it."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from wse.arguments import Parameters, host, shape, signature
from wse.cluster import CS2, Cluster
from wse.equations import Weight
from wse.pipeline import Plan, Step
from wse.segments import Flow, flow
from wse.swarmx import SwarmX
from wse.timeline import Run
from wse.tracing import trace

if TYPE_CHECKING:
    from wse.graph import Graph

MOST_PARTS = 8  # the default: more fill the pipeline better, but make small work


@dataclass(frozen=True)
class Loaded:
    """A net on the systems: weights and optimizer state of one step.

    Nothing in it is changed in place: a step makes another one.

    Attributes:
        weights: the parameters, on the devices, as they came in.
        optimizer_state: as optax knows it; on the devices.
        step: how many updates were made.
    """

    weights: Any
    optimizer_state: Any
    step: int = 0

    @property
    def params(self) -> Any:
        """The parameters in the tree that they came in; NumPy arrays, not to be written to."""
        return jax.tree.map(np.asarray, self.weights)


class PipelinedExecutor:
    """Runs a training function with all weights resident and parts of the batch flowing through.

    Loss, gradients and trained weights are those of plain JAX on the whole batch. What works on
    each sample for itself, as the equations show, runs part by part; what does not (batch
    statistics, a loss that is no mean) waits for all parts and runs once.

    Args:
        loss: `loss(params, batch)`, as for `wse.trace`.
        params: a tree of floating-point arrays, or of their shapes.
        batch: a tree of arrays, or of their shapes; systems and parts divide its samples.
        optimizer: any optax optimizer; needed for `init` and `train_step` alone.
        has_aux: whether `loss` returns (scalar, auxiliary outputs).
        keep_residuals: keep what the backward pass needs, instead of computing it again.
        cluster: the systems, each a replica of the net: `wse.CS2(mode="pipelined")` if left out.
        micro_batches: into how many parts a batch is cut; None: the most that divide it, up to 8,
            and 1 where the function cannot be traced on a part.

    Raises:
        ValueError: what `wse.trace` refuses; systems or parts that do not divide the batch; with
            `micro_batches` given, a function that is another program for a part of the batch.
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
        micro_batches: int | None = None,
    ) -> None:
        self._loss, self._has_aux, self._keep = loss, has_aux, keep_residuals
        self._optimizer, self._parts = optimizer, micro_batches
        self._cluster = cluster = cluster or CS2(mode="pipelined")
        _refuse(cluster)
        self._swarm = SwarmX(cluster.systems, grid=cluster.fabric)
        self._params = Parameters(params)
        self._plans: dict[Any, Plan] = {}
        self._run: Run | None = None
        self._update: Callable[..., Any] | None = None
        self._first = self._plan(batch)
        for caution in self.cautions:
            logging.getLogger(__name__).warning(caution)

    @property
    def graph(self) -> "Graph":
        """The layers, as traced on the batch that the executor was made with."""
        return self._first.flow.graph

    @property
    def flow(self) -> Flow:
        """The segments through which the batch flows: per part, or the whole of it at once."""
        return self._first.flow

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the machine could not do and the emulation does."""
        sizes = [x.dtype.itemsize * int(np.prod(x.shape)) for x in self.graph.shapes]
        room = int(self._cluster.machine.sram_bytes.value)
        if sum(sizes) <= room:
            return ()
        name = self._cluster.machine.name
        return (
            f"the weights take {sum(sizes):,} bytes and a {name} holds {room:,}: it is emulated, "
            "but the machine would stream them: mode='streaming'",
        )

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
            ValueError: parameters of another tree or of other shapes, or a batch that systems and
                parts do not divide.
        """
        leaves = self._swarm.broadcast(list(map(host, self._params.checked(params))))
        value, gradients = self._step(leaves, batch)
        return value, self._params.tree(list(map(np.asarray, gradients)))

    def init(self, params: Any, optimizer_state: Any = None) -> Loaded:
        """Bring a net to the systems and make the optimizer's first state, or take that in too.

        Raises:
            ValueError: no optimizer was given, or parameters of another tree or of other shapes.
        """
        if self._optimizer is None:
            raise ValueError(
                "the executor has no optimizer; training needs one: "
                "pass executor(loss, params, batch, optax.adam(1e-3))"
            )
        copies = [np.array(host(leaf)) for leaf in self._params.checked(params)]
        weights = self._params.tree(self._swarm.broadcast(copies))
        state = (
            jax.jit(self._optimizer.init)(weights) if optimizer_state is None else optimizer_state
        )
        leaves, structure = jax.tree.flatten(state)
        return Loaded(weights, jax.tree.unflatten(structure, self._swarm.broadcast(leaves)))

    def train_step(self, state: Loaded, batch: Any) -> tuple[Loaded, Any]:
        """Run one step; returns the next state and the loss, or (loss, auxiliary outputs).

        Raises:
            ValueError: no optimizer was given, or a batch that systems and parts do not divide.
        """
        value, gradients = self._step(jax.tree.leaves(state.weights), batch)
        if self._update is None:
            self._update = jax.jit(self._updated)
        tree = self._params.tree(gradients)
        new = self._update(tree, state.optimizer_state, state.weights)
        jax.block_until_ready(new)
        return Loaded(new[0], new[1], state.step + 1), value

    def _updated(self, gradients: Any, state: Any, weights: Any) -> Any:
        updates, state = self._optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    def _step(self, leaves: Sequence[Any], batch: Any) -> tuple[Any, list[Any]]:
        plan = self._plan(batch)
        used = dict.fromkeys(w for x in plan.flow.segments for w in x.weights)
        outside = [x for x in plan.flow.graph.outputs if isinstance(x, Weight)]
        weights = {w: _taken(leaves, w) for w in (*used, *outside)}
        outputs, found, self._run = Step(plan, weights, jax.tree.leaves(batch)).run()
        gradients = [_gathered(i, leaf, found) for i, leaf in enumerate(leaves)]
        if not self._has_aux:
            return outputs[0], gradients
        auxiliary = jax.tree.unflatten(plan.flow.graph.auxiliary, outputs[1:])
        return (outputs[0], auxiliary), gradients

    def _plan(self, batch: Any) -> Plan:
        found = signature(batch)
        if found not in self._plans:
            self._plans[found] = Plan(self._flow(batch), self._swarm, self._keep)
        return self._plans[found]

    def _flow(self, batch: Any) -> Flow:
        size = self._swarm.check(jax.tree.leaves(batch))
        whole = trace(self._loss, self._params.shapes, batch, has_aux=self._has_aux)
        given, share = self._parts, size // self._swarm.systems
        most = max(n for n in range(1, MOST_PARTS + 1) if share % n == 0)
        parts = most if given is None else given
        if parts < 1 or share % parts:
            raise ValueError(
                f"micro_batches is {parts} for {share} samples of a system; it must divide them: "
                f"pass micro_batches={most}"
            )
        reason = ""
        lanes = self._swarm.lanes
        for small in _smaller(batch, size, parts * lanes) if parts > 1 else ():
            try:
                part = trace(self._loss, self._params.shapes, small, has_aux=self._has_aux)
                return flow(whole, part, parts, lanes)
            except (TypeError, ValueError) as error:
                reason = reason or str(error)
        if given and parts > 1:
            raise ValueError(
                f"the loss is another program for {size // parts} samples than for {size}: "
                f"{reason}; pass micro_batches=1"
            )
        if reason:
            logging.getLogger(__name__).warning("one micro-batch: %s", reason)
        return flow(whole, whole, 1)


def _smaller(batch: Any, size: int, parts: int) -> list[Any]:
    """Shapes of a part of a batch; a table with as many rows as there are samples is in doubt."""
    shapes = jax.tree.map(shape, batch)

    def cut(x: jax.ShapeDtypeStruct, sure: bool) -> jax.ShapeDtypeStruct:
        table = len(x.shape) == 1 and jnp.issubdtype(x.dtype, jnp.floating)
        if x.shape[:1] != (size,) or (sure and table):
            return x
        return jax.ShapeDtypeStruct((size // parts, *x.shape[1:]), x.dtype)

    leaves, structure = jax.tree.flatten(shapes)
    found = [[cut(x, sure) for x in leaves] for sure in (False, True)]
    return [jax.tree.unflatten(structure, x) for x in found]


def _taken(leaves: Sequence[Any], weight: Weight) -> Any:
    return leaves[weight.leaf][weight.index] if weight.index else leaves[weight.leaf]


def _gathered(leaf: int, like: Any, found: dict[Weight, Any]) -> Any:
    """The gradient of a parameter, put together from those of its slices."""
    own = {w.index: x for w, x in found.items() if w.leaf == leaf}
    if set(own) == {()}:
        return own[()]
    gradient = jnp.zeros_like(like)
    for index, x in own.items():
        gradient = gradient.at[index].add(x)
    return gradient


def _refuse(cluster: Cluster) -> None:
    """Name what a cluster may be told and this executor does not do."""
    if (budget := cluster.host_budget_bytes) is not None:
        raise ValueError(
            f"host_budget_bytes is {budget}; a net that is resident as a whole has no store: "
            "leave it out, or pass mode='streaming'"
        )
    for name in ("sparsity", "precision"):
        if (given := getattr(cluster, name)) is not None:
            raise ValueError(
                f"{name} is {given!r}; only weight streaming does it: pass mode='streaming'"
            )
