"""What is traced and checked of a model that is known by its shapes; a perceptron as such.

No weight is ever made: `nnx.eval_shape` gives the parameters' shapes, so a model of any size costs
only the time to trace it.
"""

# JAX and Flax annotate only part of what they give.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from collections.abc import Callable
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
    """

    loss: Callable[[Any, Any], Any]
    params: Any
    batch: Any


def _shapes(make: Callable[[], nnx.Module]) -> tuple[Any, Any]:
    structure, params = nnx.split(nnx.eval_shape(make), nnx.Param)
    return structure, params


def chain(sizes: list[int], batch: int) -> Traceable:
    """A perceptron with its mean squared error as loss."""
    structure, params = _shapes(lambda: _stack(sizes, nnx.Rngs(0)))

    def loss(params: Any, samples: tuple[Array, Array]) -> Any:
        x, y = samples
        layers: Any = nnx.merge(structure, params)
        *hidden, last = layers
        for layer in hidden:
            x = nnx.relu(layer(x))
        return jnp.mean((last(x) - y) ** 2)

    samples = (
        jax.ShapeDtypeStruct((batch, sizes[0]), jnp.float32),
        jax.ShapeDtypeStruct((batch, sizes[-1]), jnp.float32),
    )
    return Traceable(loss, params, samples)


def _stack(sizes: list[int], rngs: nnx.Rngs) -> nnx.Module:
    return nnx.List(nnx.Linear(n, m, rngs=rngs) for n, m in pairwise(sizes))
