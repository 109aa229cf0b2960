"""Dense nets side by side: one product for the first layer, batched products for the others."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.shared.presence import Observed, flat

LAST_WITH_FIRST = (((1,), (0,)), ((), ()))


class DenseEnsembleNet(nnx.Module):
    """`size` nets of `Dense`; the first weights are kept as (input, member, unit).

    All members see the same inputs, so their first products are one: x [W¹ | W² | …]. With a
    thousand inputs that layer is most of the net.
    """

    def __init__(self, members: nnx.Module, size: int, dot_general=None):
        """Take the weights of stacked members."""
        layers: Any = members.layers  # type: ignore[attr-defined]
        self.size, self.missing = size, bool(members.missing)  # type: ignore[attr-defined]
        self.dot = dot_general or jax.lax.dot_general
        self.first = nnx.Param(jnp.moveaxis(layers[0].kernel[...], 0, 1))
        self.kernels = nnx.List(nnx.Param(layer.kernel[...]) for layer in list(layers)[1:])
        self.biases = nnx.List(nnx.Param(layer.bias[...]) for layer in layers)

    def __call__(self, x: Observed) -> Float[Array, "member batch output"]:
        """Return the outputs of every member, in (0, 1)."""
        x = flat(x, self.missing)
        first, *biases = (b[...][:, None] for b in self.biases)
        joint = self.dot(x, self.first[...].reshape(x.shape[1], -1), LAST_WITH_FIRST)
        h = jnp.swapaxes(joint.reshape(len(x), self.size, -1), 0, 1) + first
        product = jax.vmap(lambda h, w: self.dot(h, w, LAST_WITH_FIRST))
        for kernel, bias in zip(self.kernels, biases, strict=True):
            h = product(nnx.swish(h), kernel[...]) + bias
        return nnx.sigmoid(h)
