"""Products of a layer in lower precision, with sums and weights in float32."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def dot_general(precision: str) -> Callable[..., Array]:
    """Return the product to give to `nnx.Linear(dot_general=...)`.

    "float32" is `lax.dot_general`; "bfloat16" is `mixed_product`.
    """
    products = {"float32": lax.dot_general, "bfloat16": mixed_dot_general}
    if precision not in products:
        raise ValueError(f"precision is {precision!r}; it must be one of {sorted(products)}")
    return products[precision]


def mixed_dot_general(inputs: Array, kernel: Array, dimensions: Any, **options: Any) -> Array:
    """Contract the last axis of `inputs` with the first of `kernel` as `mixed_product` does.

    `options` (precision, sharding) say nothing to it and must be None.
    """
    last_with_first = (((inputs.ndim - 1,), (0,)), ((), ()))
    if dimensions != last_with_first or kernel.ndim != 2:
        raise ValueError(
            f"dimensions are {dimensions}; a bfloat16 product contracts the last axis of its "
            "inputs with the first of a matrix: use precision='float32' for other products"
        )
    given = {name: value for name, value in options.items() if value is not None}
    if given:
        raise ValueError(f"options are {given}; a bfloat16 product takes none: leave them out")
    rows = inputs.reshape(-1, inputs.shape[-1])
    return mixed_product(rows, kernel).reshape(*inputs.shape[:-1], kernel.shape[1])


@jax.custom_vjp
def mixed_product(
    inputs: Float[Array, "sample channel"], kernel: Float[Array, "channel unit"]
) -> Float[Array, "sample unit"]:
    """Return x W: factors rounded to bfloat16, sums in float32.

    The gradients are the same kind of product: dx = g Wᵀ and dW = xᵀ g, with g rounded too. Every
    factor loses at most 2⁻⁹ of itself, so a product of positive factors at most 2⁻⁸. Asking for
    float32 sums is what makes XLA use the processor's bfloat16 instruction.
    """
    return forward(inputs, kernel)[0]


def forward(inputs: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    """Return the product and its rounded factors."""
    x, w = inputs.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16)
    return contracted(x, w, 1, 0), (x, w)


def backward(factors: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    """Return (g Wᵀ, xᵀ g)."""
    x, w = factors
    g = gradient.astype(jnp.bfloat16)
    return contracted(g, w, 1, 1), contracted(x, g, 0, 0)


mixed_product.defvjp(forward, backward)


def contracted(left: Array, right: Array, of_left: int, of_right: int) -> Array:
    """Return the product of two matrices over the given axes, summed in float32."""
    return lax.dot_general(
        left, right, (((of_left,), (of_right,)), ((), ())), preferred_element_type=jnp.float32
    )
