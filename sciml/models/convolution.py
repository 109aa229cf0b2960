"""A square convolution that stays fast inside a compiled loop on CPUs.

XLA's CPU backend runs a convolution ten to twenty times slower inside a loop body than outside,
unless its operands are channels last and in the plain order (jax issue 12868, open since 2022).
A whole epoch is such a loop, and of the three convolutions of an update only the forward one is
in that order by itself. Here both gradients are written so that they are too:

    dx = dy ∗ (kernel turned by 180°, channels exchanged)     again a plain convolution
    dw[i, :] = (rows of x shifted by i, all columns side by side)ᵀ dy       a product per row
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

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
    """Return dw[i, j] = Σ over batch, y, x of x[y + i − r, x + j − r]ᵀ dy[y, x], r = side // 2."""
    _, height, width, inputs = x.shape
    edge = (side // 2, side // 2)
    padded = jnp.pad(x, ((0, 0), edge, edge, (0, 0)))
    columns = jnp.concatenate([padded[:, :, j : j + width] for j in range(side)], axis=-1)
    change = dy.reshape(-1, dy.shape[-1])
    rows = [columns[:, i : i + height].reshape(-1, side * inputs).T @ change for i in range(side)]
    return jnp.stack(rows).reshape(side, side, inputs, -1)


convolve.defvjp(forward, backward)


class Conv(nnx.Module):
    """`convolve` with a bias, on (batch, y, x, channel)."""

    def __init__(
        self, inputs: int, outputs: int, rngs: nnx.Rngs, *, gain: float = 2.0, side: int = 3
    ):
        """Draw the kernel with variance gain / (side² inputs) (He et al. 2015); the bias is 0."""
        scale = (gain / (side**2 * inputs)) ** 0.5
        shape = (side, side, inputs, outputs)
        self.kernel = nnx.Param(scale * jax.random.normal(rngs.params(), shape))
        self.bias = nnx.Param(jnp.zeros(outputs))

    def __call__(self, x: Image) -> Change:
        """Convolve."""
        return convolve(x, self.kernel[...]) + self.bias[...]
