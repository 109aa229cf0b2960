"""The layer-pipelined execution: the whole net resident, parts of the batch flowing through it."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import logging
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse._agreement import check_alike
from wse.execute.arguments import check_state, host
from wse.execute.base import Execution
from wse.execute.resident.flow import Plan, Step
from wse.execute.resident.segments import Flow, flow
from wse.execute.swarmx import held_bytes
from wse.execute.timeline import Event
from wse.execute.updates import check_step, step
from wse.graph.cuts import nbytes
from wse.graph.equations import Weight
from wse.graph.layers import Graph
from wse.graph.outline import table, typed

MOST_PARTS = 8  # the default: more fill the pipeline better, but make small work


@dataclass(frozen=True, repr=False)
class Loaded:
    """A net on the systems: weights and optimizer state of one step.

    Nothing in it is changed in place: a step makes another one.

    Attributes:
        weights: the parameters, on the devices, as they came in.
        optimizer_state: as optax knows it; on the devices.
        step: how many updates were made.
        owner: stands for the executor that made it, and need not look at it again.
    """

    weights: Any
    optimizer_state: Any
    step: int = 0
    owner: Any = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """One line: the step, how much there is."""
        leaves = [jax.tree.leaves(x) for x in (self.weights, self.optimizer_state)]
        size = sum(nbytes(typed(leaf)) for part in leaves for leaf in part)
        held = f"{len(leaves[0])} weights, {len(leaves[1])} states, {size:,} bytes"
        return f"Loaded(step {self.step}: {held}, on the devices)"

    def _repr_html_(self) -> str:
        """The weights under that line, for a notebook."""
        return table(repr(self), self.weights)

    @property
    def params(self) -> Any:
        """The parameters in the tree that they came in; NumPy arrays, not to be written to."""
        return jax.tree.map(np.asarray, self.weights)


@dataclass(eq=False, repr=False, kw_only=True)
class PipelinedExecutor(Execution[Plan]):
    """Runs a training function with all weights resident and parts of the batch flowing through.

    `wse.execute.base.Execution` says what it computes and what `loss` to `cluster` are; each system
    is a replica of the net. What works on each sample for itself, as the equations show, runs part
    by part; what does not (batch statistics, a loss that is no mean) waits for all parts and runs
    once.

    Args:
        micro_batches: into how many parts a batch is cut; None: the most that divide it, up to 8,
            and 1 where the function cannot be traced on a part.
        folder: refused: there is no store.

    Raises:
        ValueError: parts that do not divide the batch; with `micro_batches` given, a function that
            is another program for a part of the batch; what only a store can do.

    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import wse
    >>> weights = {"w": np.ones((4, 2))}
    >>> def loss(params, batch):
    ...     return jnp.mean((batch @ params["w"]) ** 2)
    >>> cluster = wse.CS2(mode="pipelined")
    >>> executor = cluster.executor(loss, weights, np.ones((8, 4)), micro_batches=4)
    >>> value, gradients = executor.value_and_grad(weights, np.ones((8, 4)))
    >>> float(value), gradients["w"][0].tolist()
    (16.0, [4.0, 4.0])
    """

    micro_batches: int | None = None
    folder: InitVar[Any] = None

    def __post_init__(self, params: Any, batch: Any, folder: Any) -> None:
        """Refuse what only a store can do; say what the machine could not."""
        asked = {"host_budget_bytes": self.cluster.host_budget_bytes, "folder": folder}
        for name, value in asked.items():
            if value is not None:
                raise ValueError(
                    f"{name} is {value!r}; a net that is resident as a whole has no store: "
                    "leave it out, or pass mode='streaming'"
                )
        self._owner = object()
        Execution.__post_init__(self, params, batch)
        for caution in self.cautions:
            logging.getLogger(__name__).warning(caution)

    @property
    def flow(self) -> Flow:
        """The segments through which the batch flows: per part, or the whole of it at once."""
        return self._first.flow

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the machine could not do and the emulation does."""
        size = sum(map(nbytes, self.graph.shapes))
        room = int(self.cluster.machine.sram_bytes.value)
        if size <= room:
            return ()
        name = self.cluster.machine.name
        return (
            f"the weights take {size:,} bytes and a {name} holds {room:,}: it is emulated, "
            "but the machine would stream them: mode='streaming'",
        )

    def init(self, params: Any, optimizer_state: Any = None) -> Loaded:
        """Bring a net to the systems and make the optimizer's first state, or take that in too.

        Raises:
            ValueError: no optimizer was given, or parameters or a state of another tree or of other
                shapes.
        """
        first = self._weights(params, optimizer_state)
        wanted, _ = self._trained
        if optimizer_state is not None:
            check_state((first, optimizer_state), (self._params.shapes, wanted))
        copies = [np.array(host(leaf)) for leaf in jax.tree.leaves(first)]
        check_alike("params", copies)
        weights = self._params.tree(self._swarm.broadcast(copies))
        state = (
            jax.jit(self._trains().init)(weights) if optimizer_state is None else optimizer_state
        )
        leaves, structure = jax.tree.flatten(state)
        held = jax.tree.unflatten(structure, self._swarm.broadcast(leaves))
        return Loaded(weights, held, owner=self._owner)

    def train_step(self, state: Loaded, batch: Any) -> tuple[Loaded, Any]:
        """Run one step; returns the next state and the loss, or (loss, auxiliary outputs).

        Raises:
            ValueError: no optimizer was given, a state of another model, optimizer or mode, or a
                batch that systems and parts do not divide.
        """
        wanted, update = self._trained
        self._check(state, wanted)
        scale, began = self._numerics.scale(state.optimizer_state), perf_counter()
        value, gradients = self._step(jax.tree.leaves(state.weights), batch, scale)
        start = perf_counter()
        weights, held = jax.block_until_ready(
            update(self._params.tree(gradients), state.weights, state.optimizer_state)
        )
        self._note(start - began, perf_counter() - start, weights)
        return Loaded(weights, held, state.step + 1, self._owner), value

    @cached_property
    def _trained(self) -> tuple[Any, Any]:
        """The shapes of the optimizer's state, and its step."""
        optimizer, params = self._trains(), self._params.shapes
        state, update = jax.eval_shape(optimizer.init, params), jax.jit(step(optimizer))
        check_step((params, state), jax.eval_shape(update, params, params, state))
        return state, update

    def _check(self, state: Any, wanted: Any) -> None:
        if not isinstance(state, Loaded):
            raise ValueError(
                f"state is of {type(state).__name__}; of a net that is resident it must be of "
                "Loaded: pass what init(params) or train_step returned"
            )
        if state.owner is not self._owner:
            check_state((state.weights, state.optimizer_state), (self._params.shapes, wanted))

    def _note(self, start_s: float, seconds: float, weights: Any) -> None:
        """Add the update, which is of all parameters at once, to the record."""
        names = self.graph.parameters
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        size = held_bytes(jax.tree.leaves(weights))
        update = Event("update", name, start_s, seconds, size)
        self._run = replace(self.run, events=(*self.run.events, update))

    def _derived(self, leaves: Sequence[Any], batch: Any) -> tuple[Any, Sequence[Any]]:
        return self._step(self._swarm.broadcast(leaves), batch)

    def _step(self, leaves: Sequence[Any], batch: Any, scale: float = 1.0) -> tuple[Any, list[Any]]:
        plan = self._plan(batch)
        used = dict.fromkeys(w for x in plan.flow.segments for w in x.weights)
        outside = [x for x in plan.graph.outputs if isinstance(x, Weight)]
        weights = {w: plan.held(_taken(leaves, w)) for w in (*used, *outside)}
        outputs, found, self._run = Step(plan, weights, jax.tree.leaves(batch), scale).run()
        gradients = [_gathered(i, leaf, found) for i, leaf in enumerate(leaves)]
        return self._value(plan.graph, outputs), gradients

    def _planned(self, batch: Any, size: int) -> Plan:
        return Plan(self._flow(batch, size), self._swarm, self.keep_residuals, self._numerics.half)

    def _resident(self, batch: Any) -> Graph:
        """The graph for weights that are rounded once, when they are resident."""
        return self._numerics.graph(self._traced(batch), weights=False)

    def _flow(self, batch: Any, size: int) -> Flow:
        whole = self._resident(batch)
        given, share = self.micro_batches, size // self._swarm.systems
        most = max(n for n in range(1, MOST_PARTS + 1) if share % n == 0)
        parts = most if given is None else given
        if parts < 1 or share % parts:
            raise ValueError(
                f"micro_batches is {parts} for {share} samples of a system; it must divide them: "
                f"pass micro_batches={most}"
            )
        reason, lanes = "", self._swarm.lanes
        for small in _smaller(batch, size, parts * lanes) if parts > 1 else ():
            try:
                traced = self._resident(small)
            except Exception as error:  # a loss may refuse a smaller batch in any way it likes
                said = " ".join(f"{type(error).__name__}: {error}".split())
                reason = reason or f"{said} (it cannot be traced on {size // parts} samples)"
                continue
            try:
                return flow(whole, traced, parts, lanes)
            except ValueError as error:
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

    def cut(leaf: Any, sure: bool) -> Any:
        x = typed(leaf)
        table = len(x.shape) == 1 and jnp.issubdtype(x.dtype, jnp.floating)
        if x.shape[:1] != (size,) or (sure and table):
            return leaf
        part = (size // parts, *x.shape[1:])
        # Weak types stay: they, too, decide what program it is.
        return jax.ShapeDtypeStruct(part, x.dtype, weak_type=x.weak_type)

    leaves, structure = jax.tree.flatten(batch)
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
