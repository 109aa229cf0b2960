"""The dense net of the published performance study."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.linear import linear
from sciml.models.shared.presence import Inputs, Observed, flat, flat_size
from sciml.models.shared.sizes import check_sizes
from sciml.train.recipe import Recipe, width_scaled


@dataclass(frozen=True)
class Dense:
    """`depth` hidden layers of `width` units, swish between them, a sigmoid at the end.

    h₀ = x,  h_{i+1} = swish(W_i h_i + b_i),  y = sigmoid(W h_depth + b)

    Weights are Glorot-uniform, biases zero. From 1000 inputs to 2 outputs with 8 layers it has
    39,490 / 243,970 / 2,352,130 / 31,428,610 parameters at 32 / 128 / 512 / 2048 units, as in
    the OSTI brief "Deep Neural Networks for Parameter Estimation with Inverse Maps", Table 4.
    Several channels are laid side by side. With `missing`, NaN stands for a value that was not
    observed: it becomes 0, and a second channel says 1 where there was a value, else 0.

    As an embedding (`embed`) it ends with the linear layer, without the sigmoid.

    Raises:
        ValueError: width or depth is not a positive whole number.

    >>> Dense(width=64, depth=3)
    Dense(width=64, depth=3, missing=False)
    """

    targets: ClassVar[str] = "unit"

    width: int = 128
    depth: int = 8
    missing: bool = False

    def __post_init__(self):
        check_sizes(self, width=1, depth=1)

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None) -> "DenseNet":
        """Make the module; `dot_general` replaces the product of matrices."""
        return DenseNet(self.sizes(inputs, outputs), rngs, dot_general, missing=self.missing)

    def embed(self, inputs: Inputs, features: int, *, rngs, dot_general=None) -> "DenseNet":
        """Make the module that ends with a linear layer of `features` outputs."""
        sizes = self.sizes(inputs, features)
        return DenseNet(sizes, rngs, dot_general, missing=self.missing, linear_end=True)

    def sizes(self, inputs: Inputs, outputs: int) -> list[int]:
        """Return the sizes of all layers, input and output among them."""
        return [flat_size(inputs, self.missing), *[self.width] * self.depth, outputs]

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well: steps that fall with width."""
        return width_scaled(self.width)


class DenseNet(nnx.Module):
    """Layers of the given sizes; see `Dense`."""

    def __init__(
        self,
        sizes: list[int],
        rngs: nnx.Rngs,
        dot_general: Callable | None = None,
        *,
        missing: bool = False,
        linear_end: bool = False,
    ):
        self.layers = nnx.List(linear(n, m, rngs, dot_general) for n, m in pairwise(sizes))
        self.missing, self.linear_end = missing, linear_end

    def __call__(self, x: Observed) -> Float[Array, "batch output"]:
        """Return the outputs, in (0, 1) unless the end is linear."""
        *hidden, last = self.layers
        x = flat(x, self.missing)
        for layer in hidden:
            x = nnx.swish(layer(x))
        return last(x) if self.linear_end else nnx.sigmoid(last(x))
