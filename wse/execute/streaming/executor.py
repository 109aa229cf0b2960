"""What a training loop holds: gradients and steps with the plain signatures, run by streaming."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from wse._agreement import check_alike
from wse.execute.arguments import check_state
from wse.execute.base import Execution
from wse.execute.memoryx.pinned import Pinned, can_pin
from wse.execute.memoryx.store import MemoryX, Receiving, store
from wse.execute.streaming.passes import Plan, Step
from wse.execute.streaming.visits import visited
from wse.execute.updates import Update, cut


@dataclass(eq=False, repr=False, kw_only=True)
class Executor(Execution[Plan]):
    """Runs a training function with weights that are streamed in layer by layer.

    `wse.execute.base.Execution` says what it computes and what `loss` to `cluster` are.

    Args:
        folder: keep weights and optimizer state in files there, one version per step; of several
            processes, each in a folder of its own below.
        checkpoint_every: keep them in memory, and write them to `folder` every so many steps.

    >>> import jax.numpy as jnp
    >>> import wse
    >>> params, batch = {"w": jnp.ones((4, 2))}, jnp.ones((3, 4))
    >>> executor = wse.CS2().executor(lambda params, x: jnp.sum(x @ params["w"]), params, batch)
    >>> value, gradients = executor.value_and_grad(params, batch)
    >>> float(value)
    24.0
    """

    folder: Path | str | None = None
    checkpoint_every: int | None = None
    _update: Update | None = field(default=None, init=False)
    _pinned: Pinned | None = field(default=None, init=False)

    def init(self, params: Any, optimizer_state: Any = None) -> MemoryX:
        """Take weights into the store and make the optimizer's first state, or take that in too.

        With `folder`, a complete step of the same model that lies there is continued; then the
        shapes of `params` suffice. What exceeds the cluster's `host_budget_bytes`, old and new
        step together, lies in files: in `folder`, or in a temporary folder.

        Raises:
            ValueError: no optimizer was given, or one that a store cannot run, parameters or a
                state of another tree or of other shapes, or the files of another model.
            OSError: a file cannot be written, or another process works in `folder`.
        """
        made = store(
            self._weights(params, optimizer_state),
            self._trains(),
            _own(self.folder),
            optimizer_state=optimizer_state,
            checkpoint_every=self.checkpoint_every,
            budget_bytes=self.cluster.host_budget_bytes,
            arrivals=self._first.arrivals,
        )
        check_alike("params and optimizer state", made.held)
        # Every state of this executor has the same update: by it they are told from others.
        self._update = self._update or made.update
        return replace(made, update=self._update)

    def train_step(self, state: MemoryX, batch: Any) -> tuple[MemoryX, Any]:
        """Run one step; returns the next state and the loss, or (loss, auxiliary outputs).

        Raises:
            ValueError: a state of another model, optimizer or mode, or a batch that the systems do
                not divide.
        """
        own = self._own_state(state)
        if self._pinned is None and self._pins(own):
            self._pinned = Pinned(self._swarm.devices[0])
        value, receiving = self._step(own, batch, self._pinned)
        return receiving.finish(), value

    def _pins(self, held: MemoryX) -> bool:
        """Whether weights are copied to pinned pages: for one card, where memory is free for it."""
        if self._swarm.parallel or self._swarm.at_host or not can_pin(self._swarm.devices[0]):
            return False
        budget = self.cluster.host_budget_bytes
        weights = sum(x.nbytes for x in held.held[: held.count])
        return not held.filed and (budget is None or 2 * held.nbytes + weights <= budget)

    def _own_state(self, state: Any) -> MemoryX:
        """The state, with the update of this executor's optimizer."""
        optimizer = self._trains()
        if not isinstance(state, MemoryX):
            raise ValueError(
                f"state is of {type(state).__name__}; when weights are streamed it must be of "
                "MemoryX: pass what init(params) or train_step returned"
            )
        if state.update is None:
            raise ValueError(
                f"state has no optimizer, being {state!r}; training needs one: make it with "
                "init(params)"
            )
        if self._update is None:
            self._update = cut(optimizer, self._params.shapes, self._first.arrivals)
        if state.update is self._update:
            return state
        wanted = (self._params.shapes, self._update.state)
        check_state((state.params, state.optimizer_state), wanted)
        return replace(state, update=self._update)

    def _derived(self, leaves: Sequence[Any], batch: Any) -> tuple[Any, Sequence[Any]]:
        held = MemoryX(tuple(leaves), self._params.structure)
        # The caller may write over his arrays between calls: copies are of this call alone.
        pinned = Pinned(self._swarm.devices[0]) if self._pins(held) else None
        value, receiving = self._step(held, batch, pinned)
        return value, [receiving.gradients[leaf] for leaf in range(len(leaves))]

    def _step(self, held: MemoryX, batch: Any, pinned: Pinned | None) -> tuple[Any, Receiving]:
        plan = self._plan(batch)
        link = self._numerics.link(held)
        pinned = pinned if link.plain else None
        receiving = held.receive(plan.expected, pinned and partial(pinned.updated, plan.read))
        step = Step(plan, held, receiving, link, pinned)
        try:
            outputs, self._run = step.run(jax.tree.leaves(batch))
        except BaseException:  # such as Ctrl-C, after which the same state may be gone on with
            receiving.settle()
            raise
        return self._value(plan.graph, outputs), receiving

    def _planned(self, batch: Any, size: int) -> Plan:
        graph = self._numerics.graph(self._traced(batch))
        if self.cluster.fabric == (1, 1):  # over a fabric each layer's arrays lie in their own way
            graph = visited(graph)
        return Plan(graph, self._swarm, self.keep_residuals, size)


def _own(folder: Path | str | None) -> Path | str | None:
    """Where this process keeps its files."""
    if folder is None or jax.process_count() == 1:
        return folder
    return Path(folder) / f"process-{jax.process_index()}"
