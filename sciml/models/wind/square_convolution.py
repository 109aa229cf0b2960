"""A square convolution that stays fast inside a compiled loop on CPUs.

XLA's CPU backend runs a convolution ten to twenty times slower inside a loop body than outside,
unless its operands are channels last and in the plain order (jax issue 12868, open since 2022).
A whole epoch is such a loop, and of the three convolutions of an update only the forward one is
in that order by itself. Here both gradients are written so that they are too:

    dx = dy ∗ (kernel turned by 180°, channels exchanged)     again a plain convolution
    dw[i, j] = (columns of x shifted by j)ᵀ (rows of dy shifted by −i)    all i, j: one product
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from sciml._random import flat

Image = Float[Array, "batch y x in"]
Change = Float[Array, "batch y x out"]
Kernel = Float[Array, "side side in out"]  # an odd side

LAYOUT = ("NHWC", "HWIO", "NHWC")


@jax.custom_vjp
def convolve(x: Image, kernel: Kernel) -> Change:
    """Correlate `x` with the kernel, with zeros beyond the edges; the size stays."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)


def forward(x: Image, kernel: Kernel) -> tuple[Change, tuple[Image, Kernel]]:
    """Return the result and what the gradients need."""
    return convolve(x, kernel), (x, kernel)


def backward(saved: tuple[Image, Kernel], dy: Change) -> tuple[Image, Kernel]:
    """Return the gradients with respect to `x` and the kernel."""
    x, kernel = saved
    side = len(kernel)
    return convolve(dy, jnp.swapaxes(kernel[::-1, ::-1], 2, 3)), kernel_gradient(x, dy, side)


def kernel_gradient(x: Image, dy: Change, side: int) -> Kernel:
    """Return dw[i, j] = Σ over batch, y, x of x[y, x + j − r]ᵀ dy[y − i + r, x], r = side // 2."""
    inputs, outputs = x.shape[-1], dy.shape[-1]
    columns = jnp.concatenate([shifted(x, j - side // 2, 2) for j in range(side)], axis=-1)
    rows = jnp.concatenate([shifted(dy, side // 2 - i, 1) for i in range(side)], axis=-1)
    change = columns.reshape(-1, side * inputs).T @ rows.reshape(-1, side * outputs)
    return change.reshape(side, inputs, side, outputs).transpose(2, 0, 1, 3)


def shifted(image: Image, by: int, axis: int) -> Image:
    """Return the image at places `by` further along an axis, with zeros beyond the edge."""
    size = image.shape[axis]
    before, after = min(max(-by, 0), size), min(max(by, 0), size)
    kept = jax.lax.slice_in_dim(image, after, size - before, axis=axis)
    padding = [(0, 0)] * image.ndim
    padding[axis] = (before, after)
    return jnp.pad(kept, padding)


convolve.defvjp(forward, backward)


class Conv(nnx.Module):
    """`convolve` with a bias, on (batch, y, x, channel)."""

    def __init__(
        self, inputs: int, outputs: int, rngs: nnx.Rngs, *, gain: float = 2.0, side: int = 3
    ):
        """Draw the kernel with variance gain / (side² inputs) (He et al. 2015); the bias is 0."""
        scale = (gain / (side**2 * inputs)) ** 0.5
        shape = (side, side, inputs, outputs)
        self.kernel = nnx.Param(scale * flat(jax.random.normal, rngs.params(), shape, jnp.float32))
        self.bias = nnx.Param(jnp.zeros(outputs, jnp.float32))

    def __call__(self, x: Image) -> Change:
        """Convolve."""
        return convolve(x, self.kernel[...]) + self.bias[...]
