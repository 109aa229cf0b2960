"""The convolutional net of the published inverse map."""

from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.dense import DenseNet
from sciml.train.recipe import Recipe

KERNEL, STRIDE, POOL = 3, 2, 2  # sourced: Rudi, Bessac, Lenzi, arXiv 2012.06691, Table 2


@dataclass(frozen=True)
class Convolutional:
    """Three convolutions over time, then two dense layers and a sigmoid.

    1 → f → 2f → 4f channels, kernel 3, stride 2, no padding, swish; mean pooling by 2 after the
    first two; then two dense layers of `units`. With 1000 inputs, 2 outputs, f = 8 and 32 units:
    lengths 499, 249, 124, 62, 30 and 33,874 parameters.

    Source: Rudi, Bessac, Lenzi, arXiv 2012.06691, Table 2 (the selected CNN).

    Raises:
        ValueError: filters or units is not a positive whole number.
    """

    filters: int = 8
    units: int = 32

    def __post_init__(self):
        """Check both sizes."""
        for name in ("filters", "units"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"{name} is {size!r}; it must be a whole number ≥ 1, as in 8")

    def build(
        self, inputs: int, outputs: int, *, rngs: nnx.Rngs, dot_general=None
    ) -> "ConvolutionalNet":
        """Make the module; `dot_general` replaces the product of the dense layers' matrices."""
        return ConvolutionalNet(self, inputs, outputs, rngs, dot_general)

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well."""
        return Recipe(batch=32, learning_rate=2e-3)


class ConvolutionalNet(nnx.Module):
    """See `Convolutional`."""

    def __init__(self, config: Convolutional, inputs: int, outputs: int, rngs, dot_general=None):
        """Draw the weights; the first dense layer takes what the convolutions leave."""
        channels = [1, config.filters, 2 * config.filters, 4 * config.filters]
        self.convolutions = nnx.List(
            nnx.Conv(
                n,
                m,
                kernel_size=(KERNEL,),
                strides=(STRIDE,),
                padding="VALID",
                kernel_init=jax.nn.initializers.glorot_uniform(),
                rngs=rngs,
            )
            for n, m in pairwise(channels)
        )
        features = remaining_length(inputs) * channels[-1]
        self.head = DenseNet([features, config.units, config.units, outputs], rngs, dot_general)

    def __call__(self, x: Float[Array, "batch input"]) -> Float[Array, "batch output"]:
        """Return the outputs in (0, 1)."""
        *first, last = self.convolutions
        x = x[..., None]
        for convolution in first:
            x = nnx.swish(convolution(x))
            x = nnx.avg_pool(x, window_shape=(POOL,), strides=(POOL,))
        x = nnx.swish(last(x))
        return self.head(jnp.reshape(x, (x.shape[0], -1)))


def remaining_length(inputs: int) -> int:
    """Return the length in time after all convolutions and poolings.

    Raises:
        ValueError: nothing is left.
    """
    length = inputs
    for stage in range(3):
        length = (length - KERNEL) // STRIDE + 1
        length = length // POOL if stage < 2 else length
    if length < 1:
        raise ValueError(f"inputs is {inputs}; this net needs at least 53 values in time")
    return length
