"""Training steps on packed weights, for whoever trains on an executor."""

# JAX and optax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import optax

from wse.sparsity.blockwise import blockwise
from wse.sparsity.fixed import Magnitude, Static
from wse.sparsity.packing import check_blocks, packed, repacked, unpacked


@dataclass(frozen=True)
class PackedSteps:
    """An executor that trains the kept blocks alone, on this computer.

    Pass it where an executor is asked for: `sciml.fit(model, data, executor=PackedSteps(method))`.
    It trains the weights that `masked` trains with the same method, but for rounding, and the
    trained net is dense again, with zeros between the blocks.

    Attributes:
        sparsity: a method with a block, as `Static(0.9, block=32)`.

    Raises:
        ValueError: a method whose masks move or have no blocks.

    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import optax
    >>> from wse.sparsity import PackedSteps, Rule, Static
    >>> def loss(params, x):
    ...     return jnp.mean((x @ params["w"]) ** 2)
    >>> params, x = {"w": np.ones((64, 32), "f4")}, jnp.ones((8, 64))
    >>> method = Static(0.75, rule=Rule(keep_last=False), block=16)
    >>> steps = PackedSteps(method).executor(loss, params, x, optax.sgd(0.1))
    >>> state, value = steps.train_step(steps.init(params), x)
    >>> int((np.asarray(state.params["w"]) != 0).sum()), float(value)
    (512, 1024.0)
    """

    sparsity: Static | Magnitude

    def __post_init__(self) -> None:
        check_blocks(self.sparsity)

    def executor(
        self, loss: Callable[..., Any], params: Any, batch: Any, optimizer: Any = None
    ) -> "Steps":
        """Make the steps of `loss(params, batch)`; `batch` is not read.

        Raises:
            ValueError: no optimizer.
        """
        del batch
        if optimizer is None:
            raise ValueError("optimizer is None; steps must have one: pass optax.adam(1e-3)")
        return Steps(loss, params, optimizer, self.sparsity)


class PackedState(NamedTuple):
    """Packed weights, and what the optimizer keeps of them."""

    weights: Any
    optimizer_state: Any

    @property
    def params(self) -> Any:
        """The dense parameters."""
        return unpacked(self.weights)


class Steps:
    """The steps of one training."""

    def __init__(self, loss: Callable[..., Any], params: Any, optimizer: Any, method: Any):
        """Compile nothing yet; `train_step(state, batch)` returns the next state and the loss."""
        self._first, self._optimizer, self._method = packed(params, method), optimizer, method

        def step(state: PackedState, batch: Any) -> tuple[PackedState, Any]:
            weights, held = state
            value, gradient = jax.value_and_grad(blockwise(loss))(weights, batch)
            change, held = optimizer.update(gradient, held, weights)
            return PackedState(optax.apply_updates(weights, change), held), value

        self.train_step = jax.jit(step)

    def init(self, params: Any, optimizer_state: Any = None) -> PackedState:
        """The first state; with an optimizer's state, the one from which a training goes on."""
        if optimizer_state is not None:
            return PackedState(repacked(params, self._first), optimizer_state)
        weights = packed(params, self._method)
        return PackedState(weights, jax.jit(self._optimizer.init)(weights))
