"""The convolutional net of the published inverse map."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml.models.inverse.dense import DenseNet
from sciml.models.shared.linear import glorot
from sciml.models.shared.presence import Inputs, Observed, series, shape
from sciml.models.shared.sizes import check_sizes
from sciml.train.recipe import Recipe

KERNEL, STRIDE, POOL = 3, 2, 2  # sourced: Rudi, Bessac, Lenzi, arXiv 2012.06691, Table 2


@dataclass(frozen=True)
class Convolutional:
    """Three convolutions over time, then two dense layers and a sigmoid.

    1 → f → 2f → 4f channels, kernel 3, stride 2, no padding, swish; mean pooling by 2 after the
    first two; then two dense layers of `units`. With 1000 inputs, 2 outputs, f = 8 and 32 units:
    lengths 499, 249, 124, 62, 30 and 33,874 parameters. Several channels are its first 1; with
    `missing`, NaN becomes 0 and a channel of presence is added to each.

    As an embedding (`embed`) it ends with the linear layer, without the sigmoid.

    Source: Rudi, Bessac, Lenzi, arXiv 2012.06691, Table 2 (the selected CNN).

    Raises:
        ValueError: filters or units is not a positive whole number.

    >>> Convolutional(filters=2, units=4)
    Convolutional(filters=2, units=4, missing=False)
    """

    targets: ClassVar[str] = "unit"

    filters: int = 8
    units: int = 32
    missing: bool = False

    def __post_init__(self):
        check_sizes(self, filters=1, units=1)

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None) -> "ConvolutionalNet":
        """Make the module; `dot_general` replaces the product of the dense layers' matrices."""
        return ConvolutionalNet(self, inputs, outputs, rngs, dot_general)

    def embed(self, inputs: Inputs, features: int, *, rngs, dot_general=None) -> "ConvolutionalNet":
        """Make the module that ends with a linear layer of `features` outputs."""
        return ConvolutionalNet(self, inputs, features, rngs, dot_general, linear_end=True)

    def recipe(self) -> Recipe:
        """Return the recipe under which it trains well."""
        return Recipe(batch=32, learning_rate=2e-3)


class ConvolutionalNet(nnx.Module):
    """See `Convolutional`."""

    def __init__(
        self,
        config: Convolutional,
        inputs: Inputs,
        outputs: int,
        rngs: nnx.Rngs,
        dot_general=None,
        *,
        linear_end: bool = False,
    ):
        """Draw the weights; the first dense layer takes what the convolutions leave."""
        self.missing = config.missing
        length, first = shape(inputs)
        first = 2 * first if config.missing else first
        channels = [first, config.filters, 2 * config.filters, 4 * config.filters]
        self.convolutions = nnx.List(
            nnx.Conv(
                n,
                m,
                kernel_size=(KERNEL,),
                strides=(STRIDE,),
                padding="VALID",
                kernel_init=glorot,
                rngs=rngs,
            )
            for n, m in pairwise(channels)
        )
        sizes = [remaining_length(length) * channels[-1], config.units, config.units, outputs]
        self.head = DenseNet(sizes, rngs, dot_general, linear_end=linear_end)

    def __call__(self, x: Observed) -> Float[Array, "batch output"]:
        """Return the outputs, in (0, 1) unless the end is linear."""
        *first, last = self.convolutions
        x = series(x, self.missing)
        for convolution in first:
            x = nnx.swish(convolution(x))
            x = nnx.avg_pool(x, window_shape=(POOL,), strides=(POOL,))
        x = nnx.swish(last(x))
        return self.head(jnp.reshape(x, (x.shape[0], -1)))


def remaining_length(inputs: int) -> int:
    """Return the length in time after all convolutions and poolings, or refuse none."""
    length = inputs
    for stage in range(3):
        length = (length - KERNEL) // STRIDE + 1
        length = length // POOL if stage < 2 else length
    if length < 1:
        raise ValueError(f"inputs is {inputs}; this net needs at least 53 values in time")
    return length
