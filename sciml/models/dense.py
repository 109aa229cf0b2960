"""The dense net of the published performance study."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import jax
from flax import nnx
from jaxtyping import Array, Float

from sciml.train.recipe import Recipe, width_scaled


@dataclass(frozen=True)
class Dense:
    """`depth` hidden layers of `width` units, swish between them, a sigmoid at the end.

    h₀ = x,  h_{i+1} = swish(W_i h_i + b_i),  y = sigmoid(W h_depth + b)

    Weights are Glorot-uniform, biases zero. From 1000 inputs to 2 outputs with 8 layers it has
    39,490 / 243,970 / 2,352,130 / 31,428,610 parameters at 32 / 128 / 512 / 2048 units, as in
    the OSTI brief "Deep Neural Networks for Parameter Estimation with Inverse Maps", Table 4.

    Raises:
        ValueError: width or depth is not a positive whole number.
    """

    width: int = 128
    depth: int = 8

    def __post_init__(self):
        """Check both sizes."""
        for name in ("width", "depth"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} is {size!r}; it must be a whole number ≥ 1, as in 32")

    def build(self, inputs: int, outputs: int, *, rngs: nnx.Rngs, dot_general=None) -> "DenseNet":
        """Make the module; `dot_general` replaces the product of matrices."""
        return DenseNet([inputs, *[self.width] * self.depth, outputs], rngs, dot_general)

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well: steps that fall with width."""
        return width_scaled(self.width)


class DenseNet(nnx.Module):
    """Layers of the given sizes; see `Dense`."""

    def __init__(self, sizes: list[int], rngs: nnx.Rngs, dot_general: Callable | None = None):
        """Draw the weights."""
        self.layers = nnx.List(linear(n, m, rngs, dot_general) for n, m in pairwise(sizes))

    def __call__(self, x: Float[Array, "batch input"]) -> Float[Array, "batch output"]:
        """Return the outputs in (0, 1)."""
        *hidden, last = self.layers
        for layer in hidden:
            x = nnx.swish(layer(x))
        return nnx.sigmoid(last(x))


def linear(inputs: int, outputs: int, rngs: nnx.Rngs, dot_general=None) -> nnx.Linear:
    """Return a Glorot-uniform layer."""
    return nnx.Linear(
        inputs,
        outputs,
        kernel_init=jax.nn.initializers.glorot_uniform(),
        rngs=rngs,
        dot_general=dot_general or jax.lax.dot_general,
    )
