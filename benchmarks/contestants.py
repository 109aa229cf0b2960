"""Everyone who trains the same dense net: shuffle, batches, mean squared error, Adam.

A contestant is a function `make(case) -> epochs`, where `epochs(n)` trains n epochs and returns
when they are done. The net is 1000 → width × 8 → 2, swish between, a sigmoid at the end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from sciml.inverse.loss import objective_of
from sciml.models import Dense
from sciml.train import Recipe
from sciml.train.epoch import BUFFER, Carry
from sciml.train.loop import compiled
from sciml.train.optimizer import optimizer
from sciml.train.precision import dot_general

INPUTS, OUTPUTS, DEPTH = 1000, 2, 8
RATE = 1e-4
Epochs = Callable[[int], None]


@dataclass(frozen=True)
class Case:
    """One net and one batch, on `samples` random samples."""

    width: int
    batch: int
    samples: int = 1000

    @property
    def sizes(self) -> list[int]:
        """Sizes of the layers, inputs first."""
        return [INPUTS, *[self.width] * DEPTH, OUTPUTS]

    @property
    def steps(self) -> int:
        """Updates in an epoch."""
        return self.samples // self.batch

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum((n + 1) * m for n, m in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets."""
        draw = np.random.default_rng(0)
        x = draw.standard_normal((self.samples, INPUTS), np.float32)
        return x, draw.random((self.samples, OUTPUTS), np.float32)

    def net(self, precision: str = "float32") -> nnx.Module:
        """Return the net of `sciml.models.Dense`."""
        product = dot_general(precision)

        @nnx.jit
        def build():
            rngs = nnx.Rngs(0)
            return Dense(self.width, DEPTH).build(INPUTS, OUTPUTS, rngs=rngs, dot_general=product)

        return build()


def sciml(case: Case, *, precision: str = "float32", clip: float | None = None) -> Epochs:
    """Our compiled epochs, the program that `sciml.fit` and `sciml.train.train` call."""
    graph, params = nnx.split(case.net(precision))
    recipe = Recipe(case.batch, RATE, schedule="constant", clip=clip, precision=precision)
    transform = optimizer(recipe, 1)
    data = tuple(map(jnp.asarray, case.data()))
    key, state = jax.random.key(0), [None, 0]
    state[0] = Carry(params, transform.init(params))
    loss = objective_of(Dense(), graph)
    run, _ = compiled(loss, transform, case.batch, None, (state[0], data, key))

    def epochs(count: int) -> None:
        while count:
            some = min(count, BUFFER)
            state[0], losses = run(state[0], data, key, jnp.int32(state[1]), jnp.int32(some))
            losses.block_until_ready()
            state[1], count = state[1] + some, count - some

    return epochs


def shuffled(case: Case, draw: np.random.Generator) -> Iterable[Any]:
    """Return the rows of each batch of an epoch; a batch of all samples needs no order.

    Nobody is made to shuffle and copy what has no order: we do not either.
    """
    if case.steps == 1:
        return [None]
    return draw.permutation(case.samples).reshape(case.steps, case.batch)


def chosen(array: Any, rows: Any) -> Any:
    """Return the rows of a batch; None means all, in order."""
    return array if rows is None else array[rows]


def shuffled_by_torch(case: Case) -> Iterable[Any]:
    """Return the same, drawn by PyTorch."""
    import torch

    return [None] if case.steps == 1 else torch.randperm(case.samples).split(case.batch)


def sciml_bfloat16(case: Case) -> Epochs:
    """Our epochs with products in bfloat16."""
    return sciml(case, precision="bfloat16")


def sciml_clip(case: Case) -> Epochs:
    """Our epochs with the default clipping of the gradient."""
    return sciml(case, clip=1.0)


def jit_steps(case: Case) -> Epochs:
    """The plain way: one jitted, donating update, called from Python."""
    graph, params = nnx.split(case.net())
    transform, loss = optax.adam(RATE), objective_of(Dense(), graph)
    x, y = map(jnp.asarray, case.data())

    def update(params, state, x, y, rows):
        gradient = jax.grad(loss)(params, (chosen(x, rows), chosen(y, rows)), None)
        change, state = transform.update(gradient, state, params)
        return optax.apply_updates(params, change), state

    step = jax.jit(update, donate_argnums=(0, 1))
    held, draw = [(params, transform.init(params))], np.random.default_rng(0)

    def epochs(count: int) -> None:
        for _ in range(count):
            for rows in shuffled(case, draw):
                held[0] = step(*held[0], x, y, rows)
            jax.block_until_ready(held[0])

    return epochs


def nnx_jit(case: Case) -> Epochs:
    """Flax's own way: `nnx.jit` on modules, which Python takes apart at every update."""
    net = case.net()
    adam = nnx.Optimizer(net, optax.adam(RATE), wrt=nnx.Param)
    x, y = map(jnp.asarray, case.data())

    @nnx.jit
    def step(net, adam, x, y, rows):
        def loss(net):
            return jnp.mean((net(chosen(x, rows)) - chosen(y, rows)) ** 2)

        adam.update(net, nnx.grad(loss)(net))

    draw = np.random.default_rng(0)

    def epochs(count: int) -> None:
        for _ in range(count):
            for rows in shuffled(case, draw):
                step(net, adam, x, y, rows)
            jax.block_until_ready(nnx.state(net))

    return epochs


def torch_eager(case: Case) -> Epochs:
    """PyTorch with the fused Adam."""
    return torch_epochs(case, lambda net: net)


def torch_compile(case: Case) -> Epochs:
    """PyTorch with the fused Adam and a compiled net, forward and backward."""
    import torch

    torch.compiler.reset()
    return torch_epochs(case, lambda net: torch.compile(net, dynamic=False))


def torch_epochs(case: Case, prepare: Callable) -> Epochs:
    """Train `prepare(net)` in PyTorch."""
    import torch
    from torch import nn

    layers = []
    for n, m in zip(case.sizes[:-1], case.sizes[1:], strict=True):
        layers += [nn.Linear(n, m), nn.SiLU()]
    net = nn.Sequential(*layers[:-1], nn.Sigmoid())
    adam = torch.optim.Adam(net.parameters(), lr=RATE, fused=True)
    x, y = map(torch.from_numpy, case.data())
    ready = prepare(net)

    def epochs(count: int) -> None:
        for _ in range(count):
            for rows in shuffled_by_torch(case):
                adam.zero_grad(set_to_none=True)
                nn.functional.mse_loss(ready(chosen(x, rows)), chosen(y, rows)).backward()
                adam.step()

    return epochs
