"""A masked net: what it gives for a variable depends on earlier variables and the context only."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.linear import glorot, linear, zero_linear

Hidden = Float[Array, "*#batch unit"]


class MaskedNet(nnx.Module):
    """(variables, features) ↦ `each` numbers per variable, autoregressive.

    A hidden unit of degree m sees the first m variables and all features; variable i (from 0)
    reads units of degree ≤ i. Layers after the first are residual. The last layer starts at zero.
    Source: Germain, Gregor, Murray, Larochelle, "MADE", arXiv 1502.03509.
    """

    def __init__(self, variables: int, features: int, width: int, depth: int, each: int, rngs):
        self.variables, self.width, self.each = variables, width, each
        self.features = linear(features, width, rngs)
        self.first = nnx.Param(glorot(rngs.params(), (variables, width), jnp.float32))
        self.hidden = nnx.List(linear(width, width, rngs) for _ in range(depth - 1))
        self.last = zero_linear(width, variables * each, rngs)

    def degrees(self) -> np.ndarray:
        """Return the degrees of hidden units, evenly spread over 0, …, variables − 1."""
        return np.arange(self.width) % self.variables

    def units(self, y: Float[Array, "*batch param"], added: Hidden) -> Hidden:
        """Return the last hidden layer."""
        degrees = self.degrees()
        sees = np.arange(self.variables)[:, None] < degrees
        passes = degrees[:, None] <= degrees
        h = nnx.swish(y @ jnp.where(sees, self.first[...], 0) + added)
        for layer in self.hidden:
            h = h + nnx.swish(masked(layer, h, passes))
        return h

    def __call__(
        self, y: Float[Array, "*batch param"], added: Hidden
    ) -> Float[Array, "*batch param each"]:
        """Return the numbers of every variable."""
        reads = self.degrees()[:, None] <= np.repeat(np.arange(self.variables), self.each)
        return masked(self.last, self.units(y, added), reads).reshape(*y.shape, self.each)

    def of_variable(
        self, i: int | Array, y: Float[Array, "*batch param"], added: Hidden
    ) -> Float[Array, "*batch each"]:
        """Return the numbers of variable `i` alone, of which y[..., :i] is known."""
        assert self.last.bias is not None
        kernel, bias = (
            jax.lax.dynamic_slice_in_dim(each[...], i * self.each, self.each, axis=-1)
            for each in (self.last.kernel, self.last.bias)
        )
        return self.units(y, added) @ jnp.where(self.degrees()[:, None] <= i, kernel, 0) + bias


def masked(layer: nnx.Linear, x: Hidden, mask: np.ndarray) -> Array:
    """Return x (W ∘ mask) + b."""
    assert layer.bias is not None
    return x @ jnp.where(mask, layer.kernel[...], 0) + layer.bias[...]
