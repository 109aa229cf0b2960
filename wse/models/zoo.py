"""What is traced and checked of a model that is known by its shapes; a perceptron as such.

No weight is ever made: `nnx.eval_shape` gives the parameters' shapes, so a model of any size costs
only the time to trace it.
"""

# JAX and Flax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array


@dataclass(frozen=True)
class Traceable:
    """What `wse.trace`, `wse.check` and `wse.estimate` take: a loss, and shapes.

    Attributes:
        loss: `loss(params, batch)`.
        params: shapes of the parameters.
        batch: shapes of the batch.

    >>> import wse
    >>> made = wse.zoo.traceable("GPT-J-6B")  # shapes alone: no weights are made
    >>> made.batch
    ShapeDtypeStruct(shape=(1, 2048), dtype=int32)
    """

    loss: Callable[[Any, Any], Any]
    params: Any
    batch: Any


def chain(sizes: Sequence[int], batch: int) -> Traceable:
    """A perceptron with its mean squared error as loss."""

    def stack() -> Any:
        rngs = nnx.Rngs(0)
        return nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))

    structure, params = nnx.split(nnx.eval_shape(stack), nnx.Param)

    def loss(params: Any, samples: tuple[Array, Array]) -> Any:
        x, y = samples
        *hidden, last = nnx.merge(structure, params)
        for layer in hidden:
            x = nnx.relu(layer(x))
        return jnp.mean((last(x) - y) ** 2)

    ends = (jax.ShapeDtypeStruct((batch, n), jnp.float32) for n in (sizes[0], sizes[-1]))
    return Traceable(loss, params, tuple(ends))
