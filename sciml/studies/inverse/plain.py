"""Training steps in plain JAX, with the masks and the arithmetic of the emulated machine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import optax

from wse._compilation import enable_cache
from wse.precision import Precision, mixed, scaled
from wse.sparsity import Method, masked, sparsified


@dataclass(frozen=True)
class PlainJax:
    """An executor for `fit` whose step is one compiled program.

    It trains the weights that `wse.CS2(sparsity=..., precision=...)` trains, and is quicker:
    nothing is streamed. Tests hold the two equal.
    """

    sparsity: Method | None = None
    precision: Precision | None = None

    def executor(self, loss: Callable, params: Any, batch: Any, optimizer: Any = None) -> "Steps":
        """Make the steps of a training function; compiled ones persist, as those of `fit` do."""
        enable_cache()
        transform, run = optimizer, loss
        if self.sparsity is not None:
            transform = masked(transform, self.sparsity)
        if self.precision is not None:
            run = mixed(loss, params, batch, self.precision.half)
            transform = scaled(transform, self.precision.scale)
        return Steps(run, transform, self)


class State(NamedTuple):
    """Weights, and what the optimizer keeps."""

    params: Any
    optimizer_state: Any


class Steps:
    """What `fit` asks of an executor."""

    def __init__(self, loss: Callable, transform: Any, plain: PlainJax):
        """Compile nothing yet; `train_step(state, batch)` returns the next state and the loss."""
        self.transform, self.plain = transform, plain

        def step(state: State, batch) -> tuple[State, Any]:
            params, held = state

            def objective(params):
                value = loss(params, batch)
                return (value if plain.precision is None else held.scale * value), value

            gradient, value = jax.grad(objective, has_aux=True)(params)
            change, held = transform.update(gradient, held, params)
            return State(optax.apply_updates(params, change), held), value

        self.train_step = jax.jit(step)

    def init(self, params: Any, optimizer_state: Any = None) -> State:
        """Return the first state, or the one that is given."""
        if optimizer_state is not None:
            return State(params, optimizer_state)
        if self.plain.sparsity is not None:
            params = sparsified(params, self.plain.sparsity)
        return State(params, jax.jit(self.transform.init)(params))
