"""From fine to coarse without loss of the mean."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Values = Array | np.ndarray  # what comes from files is NumPy; what goes out is JAX


def crop(field: Float[Values, "*batch y x"], factor: int) -> Float[Array, "*batch y_cut x_cut"]:
    """Return the largest part of `field`, from its first point on, that whole blocks cover.

    Raises:
        ValueError: the factor is not positive or larger than the field.
    """
    field = jnp.asarray(field)
    y, x = field.shape[-2:]
    if factor < 1 or factor > min(y, x):
        raise ValueError(
            f"factor is {factor} on a {y}×{x} field; it must be between 1 and {min(y, x)}"
        )
    return field[..., : y - y % factor, : x - x % factor]


def block_mean(field: Float[Values, "*batch y x"], factor: int) -> Float[Array, "*batch y_lo x_lo"]:
    """Return the mean of each factor × factor block: what a coarse model's cell stands for.

        coarse[J, I] = Σ_{j, i < f} fine[f J + j, f I + i] / f²

    It conserves the integral over any whole block (on a grid of equal cells).

    Raises:
        ValueError: the factor does not divide both sides; `crop` first.
    """
    field = jnp.asarray(field)
    y, x = field.shape[-2:]
    if factor < 1 or y % factor or x % factor:
        raise ValueError(
            f"factor is {factor} on a {y}×{x} field; it must divide both sides: "
            "crop(field, factor) first"
        )
    blocks = field.reshape(*field.shape[:-2], y // factor, factor, x // factor, factor)
    return blocks.mean(axis=(-3, -1))


def spread(coarse: Float[Values, "*batch y_lo x_lo"], factor: int) -> Float[Array, "*batch y x"]:
    """Return the fine field that is constant on each block."""
    return jnp.repeat(jnp.repeat(coarse, factor, axis=-2), factor, axis=-1)


def restore_means(
    fine: Float[Values, "*batch y x"], coarse: Float[Values, "*batch y_lo x_lo"]
) -> Float[Array, "*batch y x"]:
    """Shift each block of `fine` by a constant so that its mean is the coarse value.

        fine + spread(coarse − block_mean(fine))

    It is the orthogonal projection of `fine` onto the fields with these block means, so it never
    moves away from a truth that has them: the error falls or stays.

    Raises:
        ValueError: the sides of `fine` are not one common multiple of those of `coarse`.
    """
    factor = fine.shape[-1] // coarse.shape[-1]
    if fine.shape[-2:] != (factor * coarse.shape[-2], factor * coarse.shape[-1]):
        raise ValueError(
            f"fine is {fine.shape[-2:]} and coarse {coarse.shape[-2:]}; the fine sides must be one "
            "common multiple of the coarse ones"
        )
    fine, coarse = jnp.asarray(fine), jnp.asarray(coarse)
    return fine + spread(coarse - block_mean(fine, factor), factor)
